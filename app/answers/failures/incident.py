"""What happened here, why, what did it hit, and what now?"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd

from analytics.efficiency.goodput import lost_gpu_hours
from analytics.estimate import CONF_LEVEL, unknown
from analytics.failures.incidents.incident import Incident
from analytics.failures.incidents.wording import NO_CAUSE
from app.answers.columns import columns, texts
from app.answers.content import Answer, Chart, Number, Part, Table, composed
from app.answers.described import Rows, field
from app.answers.efficiency import ledger_parts
from app.answers.failures import incidents, replay, said, similar
from app.answers.failures.taxonomy import cause_titles, taxonomy
from app.answers.nodes.told import drain_command
from app.answers.reliability import sight
from app.ask import EVERYTHING
from app.words import domains, numbers, terms
from app.words.cells import Column
from app.words.glossary import of_failures
from data.errors import DataError
from data.filters import Selection
from data.queries import efficiency
from data.queries import incidents as incident_queries
from data.queries.lemons import uses_slurm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.estimate import Estimate
    from analytics.failures.incidents.incident import Timeline
    from app.ask import Ask
    from app.words.terms import Term
    from data.store import Store

MARKS = (
    "Filled: failures and critical events, which make it an incident. Ring: context. Diamond, dark "
    "bar: consequences. Pale bar: an attempt that ran."
)
_NOT_AN_ATTEMPT = "no attempt is about it"
_OF_ATTEMPTS = ("job_id", "attempt", "state", "n_gpus", "cause", "domain", "confidence")
MEMBERS = (
    Column("start_at", "Time", "second", "UTC"),
    Column("seconds_after_start", "After the start (s)", "number", wide=True,
           help=of_failures.AFTER_START.definition),
    Column("source", "Source"),
    *columns("node", "severity"),
    Column("role", "Role", help=of_failures.ROLE.definition),
    Column("text", "Record"),
    Column("signal", "Signal", none="no check or code", wide=True),
    *(replace(column, none=_NOT_AN_ATTEMPT)
      for column in columns(*_OF_ATTEMPTS, wide=_OF_ATTEMPTS)),
    Column("end_at", "Ended", "second", "UTC", none="a moment, or no end recorded", wide=True),
    Column("account", "Account", none=_NOT_AN_ATTEMPT, wide=True),
    Column("user", "User", none=_NOT_AN_ATTEMPT, wide=True),
    Column("kind", "Kind", wide=True),
    *columns("cluster", wide=("cluster",)),
    Column("key", "Key", wide=True, help=of_failures.RECORD_KEY.definition),
)  # fmt: skip
OF_JOBS = ("n_jobs", "n_failed_jobs", "n_preempted_jobs", "lost_gpu_hours", "lost")
"""Keys of the JSON that are unknown where no job was recorded."""
OF_A_MARK = ("source", "lane", "start_at", "end_at", "role", "severity", "signal", "n", "text")
VERDICTS = (
    *columns("job_id", "attempt", "state"),
    Column("failed_at", "Failed at", "second", "UTC"),
    *columns("node", "cause", "method", "confidence", "n_gpus", hidden=("cluster", "attempt_key")),
)
PREEMPTED = (
    *columns("job_id"),
    Column("start_at", "Preempted at", "second", "UTC"),
    Column("text", "Record"),
    *columns("n_gpus", hidden=("attempt", "cluster")),
)
ALTERNATIVES = (
    *columns("job_id", "cause"),
    field("why_not", "Why not", of=lambda other: other.get("reason") or "less evidence"),
    *columns("confidence"),
)


def incident(store: Store, incident_id: str) -> Incident:
    """An incident with its members and verdicts.

    An id that was merged into another answers with that one; `latest` and `largest` stand for
    the last to begin and the one that lost most GPU-time.

    Raises
    ------
    DataError
        Where no incident has this id.
    """
    if incident_id in incident_queries.FIRST_BY:
        incident_id = incident_queries.first_by(store, incident_id) or incident_id
    rows = incident_queries.incident(store, incident_id)
    if rows.empty:
        near = incident_queries.near_ids(store, incident_id[:4]) if incident_id else []
        raise DataError(
            f"incident {incident_id!r} is not in the store: "
            + (f"did you mean {near[0]}?" if near else "`faultline incidents` lists them")
        )
    row = {str(name): value for name, value in incidents.listed(rows).iloc[0].to_dict().items()}
    heir = row["superseded_by"]
    if isinstance(heir, str):
        return replace(incident(store, heir), asked_id=incident_id)
    causes = taxonomy(store).causes
    verdicts = incident_queries.verdicts(store, incident_id)
    during = Selection(row["cluster"], row["start_at"], row["end_at"] + timedelta(microseconds=1))
    for column in ("evidence", "alternatives"):
        verdicts[column] = verdicts[column].map(json.loads)
    return Incident(
        row=row,
        members=incident_queries.members(store, incident_id),
        cause=causes.get(row["cause"], causes["unknown"]),
        asked_id=incident_id,
        verdicts=verdicts,
        emptied=incident_id in store.arranged.emptied,
        # where no job of then was recorded, nobody knows that it hit none
        jobs_known=bool(row["n_jobs"]) or not sight.sight(store, during).jobs_unknown,
        lost=_lost(store, incident_id, row) if efficiency.has_ledger(store) else None,
    )


def _lost(store: Store, incident_id: str, row: Mapping[str, Any]) -> Estimate:
    """What its attempts lost; unknown where nobody knows it of any."""
    if row["n_unmeasured"] and pd.isna(row["lost_gpu_hours"]):
        return unknown(CONF_LEVEL, 0)
    return lost_gpu_hours(incident_queries.losses(store, incident_id))


def answer(ask: Ask, incident_id: str) -> Answer:
    """What happened here, why, what did it hit, and what now?"""
    one = ask(incident, incident_id)
    titles = ask(cause_titles)
    played, like = replay.of(ask, one), similar.found(ask, one)
    return Answer(
        f"{one.row['summary']}.",
        (
            composed(of_failures.WHO_ACTS, one.cause.owner, one.cause.action),
            *facts(one),
            *blast_radius(one),
            *said.who(one.row),
            said.doing(one.row),
        ),
        (
            timeline(one),
            replay.chart(played, one),
            replay.phases_table(played, one),
            evidence(one.dated_members),
            *loop(one),
            *hit(one, titles),
            alternatives(one.verdicts.to_dict("records"), titles),
            similar.table(like, one),
        ),
        notes=(
            *standing(one),
            *ask(said.arrangement, str(one.row["incident_id"])),
            *decided(one, titles),
        ),
        record=incidents.record(one.row)
        | {"lost": one.lost}
        | ({} if one.jobs_known else dict.fromkeys(OF_JOBS))
        | {"title": one.cause.title, "suggested_owner": one.cause.owner, "action": one.cause.action}
        | {"confidence": one.confidence, "evidence": one.members}
        | {"replay": replay.record(played, one), "similar": similar.record(like)},
        sheet=one.members,
    )


def drain_commands(ask: Ask, one: Incident) -> tuple[str, ...]:
    """Lines that drain the nodes that its evidence names; they are for a person to run."""
    row = one.row
    if not row["nodes_named"]:
        return ()
    slurm = ask(uses_slurm, str(row["cluster"]))
    why = f"incident {row['incident_id']}: {one.cause.title.partition(' (')[0]}"
    return tuple(drain_command(node, why, uses_slurm=slurm) for node in row["nodes"])


def who_acts(one: Incident) -> str:
    """Who does what."""
    return f"{one.cause.owner[:1].upper()}{one.cause.owner[1:]}: {one.cause.action}"


def basis(one: Incident, timezone: str) -> str:
    """Of which domain it is, which incident, where and when."""
    row, hours = one.row, one.lasted_hours
    decided_by = ", as a person decided" if row["decided"] else ""
    return " · ".join(
        [
            f"{domains.title(str(row['domain']))}{decided_by}",
            f"incident {row['incident_id']}",
            f"cluster {row['cluster']}",
            f"began {numbers.moment(row['start_at'], timezone)}",
            f"signals over {numbers.duration(hours)}" if hours else "all signals at one moment",
        ]
    )


def facts(one: Incident) -> tuple[Number, ...]:
    """Cause, domain, status, and the crash loop where it is one."""
    row = one.row
    shown = (
        Number(of_failures.CAUSE, one.cause.title),
        Number(of_failures.DOMAIN, domains.title(str(row["domain"]))),
        Number(of_failures.STATUS, str(row["status"])),
    )
    if not row["loop_failures"]:
        return shown
    requeues = numbers.counted(int(row["loop_requeues"]), "requeue")
    loop = composed(terms.CRASH_LOOPS, f"{row['loop_failures']:,} failures in a row", requeues)
    return (*shown, loop)


def blast_radius(one: Incident) -> tuple[Number, ...]:
    """Jobs, GPU-hours and nodes, and how sure the cause is, each with its rows."""
    row, arguments = one.row, (str(one.row["incident_id"]),)

    def number(
        term: Term, text: str, parts: str, exact: float | None, unit: str, of: Any
    ) -> Number:
        opens = Part("Behind the number", of, arguments)
        return composed(term, text, parts, exact=exact, unit=unit, opens=opens)

    jobs = (
        f"{row['n_failed_jobs']:,} failed ({numbers.gpu_count(row['n_failed_gpus'])}), "
        f"{row['n_preempted_jobs']:,} preempted ({numbers.gpu_count(row['n_preempted_gpus'])})"
    )
    named = len(row["nodes"]) if row["nodes_named"] else 0
    nodes = f"{named:,} with evidence" if named else "none with evidence"
    if 0 < named < row["n_nodes"]:
        nodes += f", {row['n_nodes'] - named:,} without"
    verdicts = numbers.counted(len(one.verdicts), "verdict")
    hit, surely = numbers.count(row["n_jobs"]), numbers.percent(one.confidence)
    shown = (
        number(terms.BLAST_RADIUS, hit, jobs, row["n_jobs"], "jobs", _jobs),
        replace(loss(one), opens=Part("Behind the number", _jobs, arguments)),
        number(
            terms.NODES_HIT, numbers.count(row["n_nodes"]), nodes, row["n_nodes"], "nodes", _by_node
        ),
        number(terms.INCIDENT_CONFIDENCE, surely, verdicts, one.confidence, "ratio", _verdicts),
    )
    if one.jobs_known:
        return shown
    of_jobs = (terms.BLAST_RADIUS, terms.LOST_IN_INCIDENT)
    return (*(Number(term, numbers.UNKNOWN, sight.NO_JOBS) for term in of_jobs), *shown[2:])


def loss(one: Incident) -> Number:
    """What its attempts lost; a lower bound where the loss of some is not known."""
    term, lost, n_unknown = terms.LOST_IN_INCIDENT, one.lost, one.row["n_unmeasured"]
    if lost is None:
        return Number(term, ledger_parts.NOT_COMPUTED, ledger_parts.NOT_BUILT, unit="GPU-hours")
    others = f"{numbers.counted(int(n_unknown), 'attempt')} of unknown loss" if n_unknown else ""
    if lost.value is None:
        return Number(term, numbers.UNKNOWN, others, exact=lost, unit="GPU-hours")
    value, spread = numbers.number(lost.value), numbers.spread(lost)
    if n_unknown:
        value = f"{value} and more" if spread else f"at least {value}"
    level, second_order = numbers.level(lost), one.row["second_order_gpu_hours"]
    parts = [
        f"{spread} ({level})" if spread else "",
        f"{numbers.number(second_order)} second order" if second_order else "",
        others,
    ]
    return Number(
        term, value, "; ".join(filter(None, parts)), spread,
        numbers.count(lost.n), lost, "GPU-hours",
        says=f"{spread}, and {others}" if spread and others else "",
    )  # fmt: skip


def cost(one: Incident) -> tuple[str, ...]:
    """What it hit and lost, in words."""
    shown = blast_radius(one)[:3]
    return tuple(f"{number.term.label}: {number.value} ({number.basis})." for number in shown)


def timeline(one: Incident) -> Chart:
    """What happened when, on lanes."""
    return Chart(
        "failures.timeline", "Timeline", MARKS, (one.timeline,), "incident_timeline",
        captioned=True, zoned=True, whole=True, rows=marks(one.timeline),
    )  # fmt: skip


def marks(drawn: Timeline) -> Rows:
    """A row a mark of the timeline."""
    rows = [
        vars(mark) | {"source": lane.source, "lane": lane.title}
        for lane in drawn.lanes
        for mark in lane.marks
    ]
    return Rows(OF_A_MARK, rows)


def evidence(members: pd.DataFrame) -> Table:
    """Members of an incident in order of time."""
    return _members(members, "evidence", "Evidence in order of time")


def hit(one: Incident, titles: Mapping[str, str]) -> tuple[Table, ...]:
    """Failed attempts with their verdicts, then those that a requeue preempted."""
    failed = _failed(one, titles)
    aside = one.dated_members[one.members["kind"] == "preemption"]
    if aside.empty:
        return (failed,)
    preempted = _members(aside, "preempted", "Preempted by the requeue")
    return (failed, replace(preempted, columns=PREEMPTED))


def alternatives(verdicts: Sequence[Mapping[Any, Any]], titles: Mapping[str, str]) -> Table:
    """Causes that were considered and not chosen."""
    others = [
        {"confidence": None}
        | other
        | {"job_id": row["job_id"], "cause": titles.get(other["cause"], other["cause"])}
        for row in verdicts
        for other in row["alternatives"]
    ]
    return Rows(ALTERNATIVES, others).table(
        "other_causes", "Other causes considered", empty="No other cause was considered."
    )


def _members(members: pd.DataFrame, key: str, title: str) -> Table:
    sources = members["source"].str.replace("_", " ")
    return Table(key, title, MEMBERS, texts(members.assign(source=sources), "text"), "No record.")


def _failed(one: Incident, titles: Mapping[str, str]) -> Table:
    gpus = dict(zip(one.members["key"], one.members["n_gpus"], strict=True))
    verdicts = one.verdicts
    rows = verdicts.assign(
        n_gpus=verdicts["attempt_key"].map(gpus),
        cause=verdicts["cause"].replace(dict(titles)),
        method=verdicts["method"].str.replace("_", " "),
    )
    empty = "No attempt failed." if one.jobs_known else f"Which failed is unknown: {sight.NO_JOBS}."
    return Table("failed_attempts", "Failed attempts", VERDICTS, rows, empty)


def loop(one: Incident) -> tuple[Table, ...]:
    """The job that failed in a row, and what its requeues pushed aside; nothing without one."""
    row = one.row
    if not row["loop_failures"]:
        return ()
    aside = "They preempted no other job."
    if row["n_preempted_jobs"]:
        jobs = numbers.counted(int(row["n_preempted_jobs"]), "job")
        aside = f"They preempted {jobs} ({numbers.gpu_count(row['n_preempted_gpus'])})."
    note = (
        f"One job failed {row['loop_failures']:,} times in a row, with "
        f"{numbers.counted(int(row['loop_requeues']), 'requeue')} between. {aside} Hold it until "
        "the cause is mended: every further round takes its nodes again."
    )
    failures = one.dated_members[one.members["kind"].eq("failure")]
    return (replace(_members(failures, "loop", "Crash loop"), note=note),)


def _jobs(ask: Ask, incident_id: str, *, limit: int = EVERYTHING) -> Table:
    one = ask(incident, incident_id)
    hit = one.dated_members.index.isin(one.attempts.index)
    return _members(one.dated_members[hit].head(limit), "incident_jobs", "Jobs hit")


def _by_node(ask: Ask, incident_id: str, *, limit: int = EVERYTHING) -> Table:
    members = ask(incident, incident_id).dated_members
    return _members(members[members["node"].notna()].head(limit), "by_node", "Nodes")


def _verdicts(ask: Ask, incident_id: str, *, limit: int = EVERYTHING) -> Table:
    one = ask(incident, incident_id)
    first = replace(one, verdicts=one.verdicts.head(limit))
    return replace(_failed(first, ask(cause_titles)), key="incident_verdicts")


def standing(one: Incident) -> tuple[str, ...]:
    """That the id led elsewhere, or that the incident is none any more."""
    name, notes = one.row["incident_id"], []
    if one.asked_id != name:
        notes.append(f"Incident {one.asked_id} was merged into {name}, which is shown.")
    if one.emptied:
        notes.append(
            "Empty: people took every failure out of it. What follows is what the records say; "
            "undo what they said to have it back."
        )
    elif one.row["retired"]:
        notes.append(
            "Retired: with the records that are now in the store, its members are no incident any "
            "more. What follows is how it stood last."
        )
    return tuple(notes)


def decided(one: Incident, titles: Mapping[str, str]) -> tuple[str, ...]:
    """What a person decided or wrote, and what the evidence says of it."""
    row, notes = one.row, []
    derived = str(row["derived_cause"])
    if row["decided"] and derived in NO_CAUSE:
        notes.append("A person decided the cause; no evidence names one.")
    elif row["decided"] and derived == row["cause"]:
        notes.append("A person confirmed the cause that the evidence names.")
    elif row["decided"]:
        named = titles.get(derived, derived)
        notes.append(f"A person decided the cause; the evidence names: {named}.")
    return (*notes, f"Note: {row['note']}") if isinstance(row["note"], str) else tuple(notes)
