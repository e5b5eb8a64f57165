"""What the logs of failed attempts say around the lines that count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app import questions
from app.figures import numbers
from app.reports import log_lines
from app.reports.content import Excerpt, LogLine, Section, one_line, printable, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from app.reports.redaction import Names
    from data.store import Store

ATTEMPTS = 3
"""Failed attempts whose logs are quoted."""
READ = 20_000
"""Lines of a log that are read."""
AROUND = 4
"""Lines quoted before and after a line that counts."""
LAST = 12
"""Lines quoted of the end of a log in which none does."""
MOST = 60
"""Lines quoted of a log."""
LONGEST = 400
"""Characters of a line."""


def section(store: Store, verdicts: pd.DataFrame, names: Names) -> Section:
    """Excerpts of logs: of attempts whose log told something first, each group by time."""
    rows = sorted(verdicts.to_dict("records"), key=_is_silent)
    found = tuple(each for row in rows[:ATTEMPTS] for each in _excerpts(store, row, names))
    said = () if len(rows) <= ATTEMPTS else (
        f"Looked at: the logs of {ATTEMPTS} of {numbers.counted(len(rows), 'failed attempt')}"
        + ("." if found else "; none is in the store."),
    )  # fmt: skip
    return Section("What its jobs logged", found, said)


def _is_silent(verdict: Mapping[str, Any]) -> bool:
    """Whether no line of a log is among its evidence."""
    return not log_lines.named(verdict["evidence"])


def _excerpts(store: Store, verdict: Mapping[str, Any], names: Names) -> list[Excerpt]:
    """Of each file of the log of one attempt."""
    log = names.frame(
        questions.log_lines(store, verdict["cluster"], verdict["attempt_key"], limit=READ)
    )
    named = log_lines.named(verdict["evidence"])
    return [
        _excerpt(f"Log of job {verdict['job_id']}: {one_line(str(file))}", lines,
                 {number for name, number in named if name == file})
        for file, lines in log.groupby("file", sort=True)
    ]  # fmt: skip


def _excerpt(title: str, lines: pd.DataFrame, named: set[int]) -> Excerpt:
    """Lines around those named; the last ones where none is."""
    numbered, texts = lines["line_no"].astype(int).tolist(), lines["text"].tolist()
    kept = log_lines.places([n in named for n in numbered], around=AROUND, last=LAST)
    cut = f" (first {MOST} of {len(kept):,} lines)" if len(kept) > MOST else ""
    return Excerpt(
        f"{title}{cut}",
        tuple(
            LogLine(
                numbered[place],
                shortened(printable(str(texts[place] or "")), LONGEST),
                numbered[place] in named,
            )
            for place in kept[:MOST]
        ),
    )
