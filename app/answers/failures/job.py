"""What became of a job, attempt by attempt? What do its verdicts rest on, what does its log say?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from analytics.failures.certainty import in_words
from app.answers.columns import columns
from app.answers.content import Answer, Chart, Excerpt, LogLine, Missing, Part, Table
from app.answers.failures.taxonomy import cause_titles
from app.ask import EVERYTHING
from app.words import domains, escaping, numbers, terms
from app.words.cells import Column
from app.words.glossary import of_failures
from app.words.plain import one_line, printable, shortened
from data.errors import DataError
from data.queries import failures as failure_queries
from data.queries import targets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.failures.taxonomy import Taxonomy
    from app.ask import Ask
    from data.store import Store

NO_VERDICT = "no verdict: it did not fail"
ATTEMPTS = (
    Column("attempt", "Attempt", "count"),
    *columns("state"),
    Column("cause", "Cause", none=NO_VERDICT),
    Column("domain", "Domain", none=NO_VERDICT),
    Column("confidence", "Confidence", "ratio", none=NO_VERDICT, help=terms.CONFIDENCE.definition),
    *columns("node", "submit_at", "start_at", "end_at", "n_nodes", "n_gpus"),
    Column("exit_code", "Exit code", "count", none="not stated by the source"),
    Column("exit_signal", "Signal", "count", none="not stated by the source"),
    *columns("reason"),
    Column("failed_node", "Failed node", none="the scheduler names none"),
    Column("restarts", "Restarts", "count", none="not stated by the source"),
    Column("node_list", "Node list", none="not stated by the source"),
    *columns("partition", "user", "account", "name"),
    Column("submit_line", "Submitted as", none="not stated by the source"),
    Column("preempted_by", "Preempted by", none="by no other job"),
    Column("job_id", "Job"),
    *columns("cluster", "attempt_key"),
)
EVIDENCE = (
    Column("when", "When"),
    Column("role", "Role"),
    Column("check", "Check"),
    *columns("severity", "node", "cause", "text"),
    Column("why", "Why"),
    Column("n", "Records", "count", help=of_failures.RECORDS_ALIKE.definition),
    Column("at", "Time", "second", "UTC"),
    Column("key", "Key", help=of_failures.RECORD_KEY.definition),
    *columns(hidden=("cluster",)),
)
ROLES = {
    "cause": "speaks for the verdict",
    "other": "speaks for another cause, or too weakly for any",
    "consequence": "follows from the cause",
    "excluded": "does not count",
    "context": "seen near the end, no reason to fail",
}
"""What each role means, for the line below the table."""
METHODS = {
    "scheduler": "the scheduler's record",
    "health_event": "health events on its nodes",
    "log_rule": "its log, by a rule",
    "log_model": "its log, by a model trained on labelled logs",
    "human": "a person's decision",
}
READ_LINES = 20_000
"""Lines of a log that are read for an excerpt."""
LONGEST = 400
"""Characters of a line."""
LOG_LINES = (
    Column("file", "File"),
    Column("line_no", "Line", "count"),
    Column("logged_at", "Logged", "second", "UTC", none="the line has no time"),
    *columns("node"),
    Column("rank", "Rank", "count", none="the line names none"),
    *columns("text"),
)
NO_LOG = Missing(
    "log",
    "No log of this attempt is in the store.",
    "Logs of jobs often name the first cause:",
    ("faultline ingest job-log LOGS_DIRECTORY",),
)


@dataclass(frozen=True)
class Job:
    """All attempts of one job."""

    job_id: str
    attempts: pd.DataFrame
    """One row an attempt, oldest first: the columns of `jobs` and those of its verdict; evidence
    and alternatives as lists, NaN where the attempt has no verdict."""


def job(store: Store, job_id: str, *, cluster: str | None = None) -> Job:
    """The attempts of a job.

    Raises
    ------
    DataError
        Where no cluster has such a job.
    """
    attempts = failure_queries.job_attempts(store, cluster, job_id)
    if attempts.empty:
        near = [] if job_id.isdigit() else targets.nearest(store, "attempt", job_id)
        raise DataError(
            f"job {job_id!r} is not in the store: "
            + (f"did you mean attempt {near[0]}?" if near else "see the list of failures")
        )
    for column in ("evidence", "alternatives"):
        attempts[column] = attempts[column].map(json.loads, na_action="ignore")
    return Job(job_id, attempts)


def answer(ask: Ask, one: Job) -> Answer:
    """What became of a job, and why did it fail?"""
    titles, drawn = ask(cause_titles), one.attempts[[column.key for column in ATTEMPTS]]
    says = "Attempts of the job along time, with their ends. The table has the values."
    chart = Chart(
        "failures.attempts",
        "What became of each attempt?",
        says,
        (drawn,),
        options={"titles": titles},
        zoned=True,
        whole=True,
        rows=drawn,
    )
    table = Table("attempts_table", "All attempts", ATTEMPTS, one.attempts)
    return Answer(sentence(one, titles), blocks=(chart, table))


def sentence(one: Job, titles: Mapping[str, str]) -> str:
    """What became of it, and why."""
    attempts = one.attempts
    last, judged = attempts.iloc[-1], attempts[attempts["cause"].notna()]
    name, state = f"Job {one.job_id}", _text(last["state"])
    if judged.empty:
        count = (
            "" if len(attempts) == 1 else f" after {len(attempts):,} attempts, none of them failed"
        )
        return f"{name} {state}{count}."
    failed = judged.iloc[-1]
    where = f" on {failed['node']}" if _is_text(failed["node"]) else ""
    known = failed["cause"] != "unknown"
    cause = titles.get(failed["cause"], failed["cause"]) if known else "no evidence of a cause"
    why = f"{_text(failed['state'])}: {cause}{where if known else ''}"
    if len(attempts) == 1:
        return f"{name} {why}."
    of = f"{len(judged):,} of {len(attempts):,} attempts failed"
    if len(judged) == 1:
        return f"{name} {why}; {of}, the last one {state}."
    return f"{name} {why}; {of}, and this one last; the last attempt {state}."


def basis(one: Job) -> str:
    """What the job was: name, user, size, cluster."""
    last = one.attempts.iloc[-1]
    gpus = last["n_gpus"]
    parts = [
        f"cluster {', '.join(one.attempts['cluster'].unique())}",
        *(str(last[c]) for c in ("name", "user", "account", "partition") if _is_text(last[c])),
        "" if pd.isna(gpus) else numbers.counted(int(gpus), "GPU"),
    ]
    return " · ".join(part for part in parts if part)


def named_cause(attempt: Mapping[Any, Any], known: Taxonomy) -> str:
    """Cause and domain of a verdict, as markdown."""
    if attempt["cause"] == attempt["domain"] == numbers.UNKNOWN:
        return "**Cause unknown**"
    cause = known.causes.get(attempt["cause"])
    title = escaping.escaped(cause.title if cause else str(attempt["cause"]))
    return f"**{title}** · {domains.title(attempt['domain'])}"


def rests_on(attempt: Mapping[Any, Any], known: Taxonomy) -> str:
    """What names the cause, how surely, the symptom, and what a person decided over it."""
    method, derived = attempt["method"], attempt["derived_cause"]
    by = f"By {METHODS.get(method, method)}, confidence {numbers.percent(attempt['confidence'])}"
    if method in ("log_rule", "log_model"):
        by += f" ({in_words(attempt['confidence'])})"
    parts = ["No evidence names a cause" if method == "none" else by]
    symptom = known.symptoms.get(str(attempt["symptom"]))
    if symptom and symptom.name != "unknown":
        parts.append(f", symptom {symptom.title}")
    if method == "human" and derived != attempt["cause"]:
        cause = known.causes.get(derived)
        parts.append(f"; the evidence names: {cause.title if cause else derived}")
    return "".join(parts)


def without_verdict(attempt: Mapping[Any, Any]) -> str:
    """Why an attempt has no verdict."""
    if pd.isna(attempt["end_at"]):
        return "The attempt has not ended."
    return f"It ended {attempt['state']}, which is no failure."


def evidence(attempt: Mapping[Any, Any], titles: Mapping[str, str]) -> Table:
    """What a verdict rests on, what counts first."""
    order, pieces = list(ROLES), attempt["evidence"]
    ranked = sorted(pieces, key=lambda e: order.index(e["role"]) if e["role"] in order else 9)
    return Table(
        "evidence",
        "Evidence",
        EVIDENCE,
        [_piece(piece, attempt, titles) for piece in ranked],
        "No health event, node event, scheduler's reason or log line near the end of this "
        "attempt was recorded: nothing says why it ended.",
    )


def _piece(
    piece: Mapping[str, Any], attempt: Mapping[Any, Any], titles: Mapping[str, str]
) -> tuple[Any, ...]:
    offset, end_at, xid = piece.get("offset_s"), attempt["end_at"], piece.get("xid")
    at = None if offset is None or pd.isna(end_at) else end_at + pd.Timedelta(seconds=offset)
    check = str(piece.get("check") or piece.get("kind"))
    if isinstance(xid, int | float) and xid == xid:
        check += f" {xid:.0f}"
    cause = titles.get(str(piece.get("cause")), piece.get("cause"))
    severity, node, *said = (piece.get(name) for name in ("severity", "node", "text", "why", "n"))
    key, cluster = piece.get("key"), attempt["cluster"]
    return (relative(offset), piece["role"], check, severity, node, cause, *said, at, key, cluster)


def relative(offset_s: float | None) -> str:
    """A time relative to the end of the attempt.

    >>> relative(-44.5), relative(0.0), relative(150.0)
    ('44.5 s before the end', 'at the end', '2.50 min after the end')
    """
    if offset_s is None or pd.isna(offset_s):
        return numbers.UNKNOWN
    if not offset_s:
        return "at the end"
    side = "before" if offset_s < 0 else "after"
    return f"{numbers.duration(abs(offset_s) / 3600.0)} {side} the end"


def _text(value: object) -> str:
    return str(value) if _is_text(value) else numbers.UNKNOWN


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def log_lines(ask: Ask, cluster: str, attempt_key: str) -> pd.DataFrame:
    """The first lines of an attempt's log."""
    return ask(failure_queries.log_lines, cluster, attempt_key, limit=READ_LINES)


def log_table(ask: Ask, cluster: str, attempt_key: str, *, limit: int = EVERYTHING) -> Table:
    """Every line."""
    read = ask(failure_queries.log_lines, cluster, attempt_key, limit=limit)
    total = len(log_lines(ask, cluster, attempt_key))
    everything = Part("Log", log_table, (cluster, attempt_key), total=total)
    return Table("log", "Log", LOG_LINES, read, NO_LOG.finding, everything=everything)


def lines_named(evidence: Sequence[Mapping[str, Any]]) -> set[tuple[str, int]]:
    """File and number of the lines that evidence names.

    >>> lines_named([{"kind": "job_log", "key": "slurm-7.out:12"}, {"kind": "health_event"}])
    {('slurm-7.out', 12)}
    """
    keys = [str(piece.get("key")) for piece in evidence if piece.get("kind") == "job_log"]
    parts = [key.rpartition(":") for key in keys]
    return {(file, int(number)) for file, _, number in parts if number.isdecimal()}


def excerpts(
    log: pd.DataFrame,
    evidence: Sequence[Mapping[str, Any]],
    *,
    title: str,
    around: int,
    last: int,
    most: int | None = None,
) -> tuple[Excerpt, ...]:
    """Of each file the lines that evidence names with those around them, else its last ones.

    So many lines stand before and after each that is named (`around`), or at the end of a log
    (`last`); of a file at `most` so many are kept. The title stands before its name.
    """
    counting = lines_named(evidence)
    whole = [
        LogLine(
            int(number),
            shortened(printable(str(text or "")), LONGEST),
            (str(file), int(number)) in counting,
        )
        for file, number, text in zip(log["file"], log["line_no"], log["text"], strict=True)
    ]
    kept = places([line.counts for line in whole], around=around, last=last)
    by_file: dict[str, list[LogLine]] = {}
    for place in kept:
        by_file.setdefault(str(log["file"].iloc[place]), []).append(whole[place])
    shown = []
    for file, quoted in by_file.items():
        cut = (
            f" (first {most} of {len(quoted):,} lines)" if len(quoted[:most]) < len(quoted) else ""
        )
        shown.append(Excerpt(f"{title}{one_line(file)}{cut}", tuple(quoted[:most])))
    return tuple(shown)


def places(marked: Sequence[bool], *, around: int, last: int) -> list[int]:
    """Places of the marked lines and of so many before and after each; without any, the last.

    >>> places([False, True, False, False, True], around=1, last=2)
    [0, 1, 2, 3, 4]
    >>> places([False, False, False], around=1, last=2)
    [1, 2]
    """
    if not any(marked):
        return list(range(max(0, len(marked) - last), len(marked)))
    near = {
        at
        for place, is_marked in enumerate(marked)
        if is_marked
        for at in range(place - around, place + around + 1)
    }
    return sorted(at for at in near if 0 <= at < len(marked))
