"""How did the incident spread over its nodes, and when was all of it back?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from analytics.failures.incidents import replay as playing
from analytics.failures.incidents.incident import HIT
from analytics.failures.incidents.recovery import NodeEventDays
from analytics.failures.incidents.replay import TITLES, State
from app.answers.columns import text
from app.answers.content import Chart, Missing
from app.answers.described import Rows, field
from app.words import numbers
from data.queries import incident_replay

if TYPE_CHECKING:
    from analytics.failures.incidents.incident import Incident
    from analytics.failures.incidents.recovery import Recovery
    from analytics.failures.incidents.replay import Replay
    from app.answers.content import Table
    from app.ask import Ask
    from data.store import Store

MARKS = (
    "Each mark is a node of the jobs that the incident hit and of its events; the ring marks where "
    "it began. Steps are moments at which something changes, so the time between them is not even. "
    "In service is said only where node events of the cluster were collected."
)
NO_NODE = Missing(
    "incident_replay",
    "No record of this incident names a node.",
    "The scheduler's records bring the nodes of each job:",
    ("faultline ingest sacct sacct.txt",),
)
QUOTED = 2
"""Records of the first event that are quoted."""


def replay(store: Store, incident_id: str, cluster: str, members: pd.DataFrame) -> Replay | None:  # noqa: ARG001 - the id tells one call from another
    """The states of an incident's nodes over time; None of an incident without a member."""
    if members.empty:
        return None
    hit = members["key"][members["kind"].isin(HIT)].tolist()
    named = members["node"].dropna().unique().tolist()
    attempts = incident_replay.attempts(store, cluster, hit)
    nodes = incident_replay.nodes(store, cluster, hit, named)
    from_at, to_at = playing.window(members, attempts)
    on = (cluster, nodes["node"].tolist(), from_at - playing.BEFORE, to_at)
    records = playing.Records(
        nodes=nodes,
        attempts=attempts,
        held=incident_replay.held(store, *on),
        outages=incident_replay.outages(store, *on),
        collected=collected(store, cluster),
        preemptors_known=incident_replay.preemptors_known(store, cluster),
    )
    return playing.replay(members, records)


def collected(store: Store, cluster: str) -> NodeEventDays:
    """When node events of a cluster were collected."""
    days = incident_replay.event_days(store, cluster)
    return NodeEventDays(days, incident_replay.job_days(store, cluster))


def of(ask: Ask, one: Incident) -> Replay | None:
    """The replay of an incident."""
    row = one.row
    return ask(replay, str(row["incident_id"]), str(row["cluster"]), one.members)


def chart(played: Replay | None, one: Incident) -> Chart | Missing:
    """The nodes as a grid, moment by moment."""
    if played is None or not played.nodes:
        return NO_NODE
    row = one.row
    data = played, str(row["cluster"]), str(row["domain"])
    return Chart(
        "failures.replay", "Replay", MARKS, data, "incident_replay", zoned=True, whole=True,
        opens="node", rows=changes(*data), during=(row["start_at"], row["end_at"]),
    )  # fmt: skip


def changes(played: Replay, cluster: str, domain: str) -> Rows:
    """A row a node and change of its state."""
    states = played.states
    described = (
        field("cluster", of=lambda _: cluster),
        field("domain", of=lambda _: domain),
        field("node", of=lambda change: played.nodes[change[0]]),
        field("rack", of=lambda change: played.racks[change[0]]),
        field("from_at", of=lambda change: pd.Timestamp(change[1], unit="us", tz="UTC")),
        field("state", of=lambda change: TITLES[State(change[2])]),
    )
    rows = zip(states.place.tolist(), states.at.tolist(), states.state.tolist(), strict=True)
    return Rows(described, list(rows))


def phases(played: Replay | None, one: Incident) -> Rows:
    """First event, spread, preemptions and recovery, as far as records show them."""
    described = (
        field("phase", "Phase", of="name"),
        field("from_at", "From", "second", unit="UTC", none="none recorded"),
        field("to_at", "To", "second", unit="UTC", none="none recorded"),
        field(
            "says",
            "What the records show",
            of=lambda phase: played and says(played, one, phase.name),
        ),
    )
    return Rows(described, () if played is None else played.phases)


def phases_table(played: Replay | None, one: Incident) -> Table:
    """The phases, and what is left out of the replay."""
    note = "" if played is None else left_out(played)
    return phases(played, one).table(
        "incident_phases", "Phases", empty="No record of it is left.", note=note
    )


def says(played: Replay, one: Incident, phase: str) -> str:
    """What the records show of a phase, or that they show nothing."""
    if phase != "first event":
        return follows(played, phase)
    texts = map(text, playing.first_records(one.members)["text"])
    records = list(dict.fromkeys(said for said in texts if said))
    more = f"; {len(records) - QUOTED:,} more" if len(records) > QUOTED else ""
    return "; ".join(records[:QUOTED]) + more


def follows(played: Replay, phase: str) -> str:
    """What the records show of a phase after the first event."""
    if phase == "preemptions":
        return _preemptions(played)
    if phase != "spread":
        return recovered(played.recovery)
    if not played.n_hit:
        return "no record names a node"
    if played.phase("spread").from_at is not None:
        return f"from {played.n_first:,} to {numbers.counted(played.n_hit, 'node')}"
    return "none, one node" if played.n_hit == 1 else f"none, {played.n_hit:,} nodes at once"


def _preemptions(played: Replay) -> str:
    if played.n_preempted:
        return f"{numbers.counted(played.n_preempted, 'job')} preempted by the requeue"
    if not played.recovery.n_jobs:
        return "none, it hit no job"
    if played.preemptors_known:
        return "none, no requeue of it preempted a job"
    return "no record says which job preempted which"


def recovered(back: Recovery) -> str:
    """How much is back, and after what time, as far as records show it."""
    jobs = f"{back.n_jobs_again:,} of {numbers.counted(back.n_jobs, 'job')} started again"
    out = f"{back.n_outages_over:,} of {numbers.counted(back.n_outages, 'outage')} over"
    parts = [jobs] * bool(back.n_jobs) + [out] * bool(back.n_outages)
    if not back.returns:
        return "no record"
    if back.complete:
        return f"{', '.join(parts)}: all back after {numbers.duration(back.hours)}"
    rest = "no record of the rest" if back.nodes_known else "no node events were collected"
    return f"{', '.join(parts)}: {rest}"


def left_out(played: Replay) -> str:
    """How many moments are not among those of the replay, and where following ended."""
    n, parts = len(played.moments), []
    if played.n_changes + 1 > n:
        parts.append(f"The replay shows {n:,} of {played.n_changes:,} moments of change.")
    last = played.phase("recovery").to_at
    if last is not None and last > played.followed_to:
        parts.append(f"It ends on {numbers.day(played.followed_to)}, before the last return.")
    return " ".join(parts)


def record(played: Replay | None, one: Incident) -> dict[str, Any] | None:
    """The replay as JSON prints it: phases, and nodes by state at each moment."""
    if played is None:
        return None
    return {
        "phases": phases(played, one).records(),
        "n_nodes": len(played.nodes),
        "first_nodes": played.first_nodes,
        "recovered_at": played.recovery.recovered_at,
        "recovery_hours": played.recovery.hours,
        "n_changes": played.n_changes,
        "moments": [
            {"at": moment.at, "phase": moment.phase,
             "counts": {state.name.lower(): n for state, n in moment.counts.items()}}
            for moment in played.moments
        ],
        "states": {state.name.lower(): title for state, title in TITLES.items()},
    }  # fmt: skip
