"""An incident played again: the state of each of its nodes, moment by moment, and its phases.

The states follow from spans that records give.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.failures.columns import SECOND, microseconds
from analytics.failures.incidents.incident import HIT
from analytics.failures.incidents.recovery import Recovery, recovery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.arrays import Bools, Ints
    from analytics.failures.incidents.recovery import NodeEventDays


class State(IntEnum):
    """What a node does; of several that hold at once the one with the larger number counts."""

    NOT_COLLECTED = 0
    IDLE = 1
    OTHER_JOB = 2
    AGAIN = 3
    HIT_JOB = 4
    PREEMPTED = 5
    FAILED = 6
    EVIDENCE = 7
    OUT = 8


TITLES = {
    State.NOT_COLLECTED: "not collected",
    State.IDLE: "in service, no job seen",
    State.OTHER_JOB: "another job",
    State.AGAIN: "job running again",
    State.HIT_JOB: "job it will hit",
    State.PREEMPTED: "job preempted",
    State.FAILED: "job failed",
    State.EVIDENCE: "evidence on it",
    State.OUT: "out of service",
}
"""States in words, in the order of their numbers."""


@dataclass(frozen=True)
class NodeSpans:
    """From when to when something holds of nodes: places from 0, microseconds, end excluded."""

    place: Ints
    begin: Ints
    end: Ints
    state: Ints


@dataclass(frozen=True)
class NodeStates:
    """Changes of state by place and time; the first of each place stands at the begin."""

    place: Ints
    at: Ints
    """Microseconds."""
    state: Ints
    n_places: int
    begin: int
    until: int

    def at_moments(self, moments: Ints) -> NDArray[np.int8]:
        """State of every place at these moments, shape (places, moments)."""
        width = self.until - self.begin + 2
        known = self.place * width + (self.at - self.begin)
        asked = np.arange(self.n_places)[:, None] * width + (moments - self.begin)[None, :]
        found = np.searchsorted(known, asked.ravel(), "right") - 1
        return self.state[found].reshape(asked.shape).astype(np.int8)

    def changes(self) -> tuple[Ints, Bools]:
        """Moments after the begin at which a state changes, and whether the incident shows in it:
        a job that was hit, evidence or an outage begins or ends."""
        later = np.flatnonzero(self.at > self.begin)
        shows = np.maximum(self.state[later], self.state[later - 1]) >= State.HIT_JOB
        at, number = np.unique(self.at[later], return_inverse=True)
        marked = np.zeros(len(at), dtype=bool)
        np.logical_or.at(marked, number, shows)
        return at, marked


def node_states(spans: Sequence[NodeSpans], *, n_places: int, begin: int, until: int) -> NodeStates:
    """States of every place from `begin` to `until`, both included.

    Of spans that overlap the state with the largest number counts; where no span lies, nothing is
    known, and the state is `NOT_COLLECTED`.

    Examples
    --------
    >>> def span(begin, end, state):
    ...     return NodeSpans(*(np.array([v]) for v in (0, begin, end, state)))
    >>> found = node_states([span(0, 9, State.IDLE), span(3, 5, State.OUT)],
    ...                     n_places=1, begin=0, until=9)
    >>> [(int(at), State(state).name) for at, state in zip(found.at, found.state)]
    [(0, 'IDLE'), (3, 'OUT'), (5, 'IDLE'), (9, 'NOT_COLLECTED')]
    """
    columns = [(one.place, one.begin, one.end, one.state) for one in spans]
    place, first, last, state = (
        np.concatenate([np.zeros(0, dtype=np.int64), *column]).astype(np.int64)
        for column in (zip(*columns, strict=True) if columns else [()] * 4)
    )
    first, last = np.maximum(first, begin), np.minimum(last, until + 1)
    kept = (place >= 0) & (first < last)
    place, first, last, state = place[kept], first[kept], last[kept], state[kept]
    every = np.arange(n_places)
    places = np.concatenate([every, place, place])
    at = np.concatenate([np.full(n_places, begin), first, last])
    of = np.concatenate([np.zeros(n_places, dtype=np.int64), state, state])
    step = np.concatenate([np.ones(n_places), np.ones(len(place)), -np.ones(len(place))])
    order = np.lexsort((at, places))
    places, at, of, step = places[order], at[order], of[order], step[order]
    holds = np.zeros(len(at), dtype=np.int64)
    for one in State:
        if one is not State.NOT_COLLECTED:  # every span ends, so each place starts from 0 again
            holds[np.cumsum(np.where(of == one, step, 0.0)) > 0] = one
    settled = np.append((np.diff(places) != 0) | (np.diff(at) != 0), True) & (at <= until)
    places, at, holds = places[settled], at[settled], holds[settled]
    fresh = np.append(True, (np.diff(places) != 0) | (np.diff(holds) != 0))[: len(at)]
    return NodeStates(places[fresh], at[fresh], holds[fresh], n_places, begin, until)


MOST_MOMENTS = 60
"""Moments that are shown at most; the others are left out, and counted."""
LONGEST = pd.Timedelta(days=14)
"""Time after the last record of an incident over which its nodes are followed at most."""
BEFORE = pd.Timedelta(minutes=1)
"""The replay begins so long before the first record."""
PHASES = ("first event", "spread", "preemptions", "recovery")
_DAY = 86_400 * SECOND


@dataclass(frozen=True)
class Records:
    """What was recorded around an incident, besides its members."""

    nodes: pd.DataFrame
    """Nodes of the attempts it hit and of its events: node (once), rack (null where unknown)."""
    attempts: pd.DataFrame
    """Attempts it hit: attempt_key, job_id, end_at, restarted_at (the job's next start)."""
    held: pd.DataFrame
    """Attempts of any job on these nodes: node, attempt_key, job_id, start_at, end_at."""
    outages: pd.DataFrame
    """Of these nodes, planned ones too: node, start_at, end_at (null while one lasts)."""
    collected: NodeEventDays
    """When node events of the cluster were collected."""
    preemptors_known: bool
    """Whether any record of the cluster says which job preempted another."""


@dataclass(frozen=True)
class Phase:
    """A part of an incident; both times are None where no record shows it."""

    name: str
    from_at: pd.Timestamp | None = None
    to_at: pd.Timestamp | None = None


@dataclass(frozen=True)
class Moment:
    """A moment at which something changed."""

    at: pd.Timestamp
    phase: str
    """The phases it lies in, or after which it lies; else `before` or `recovered`."""
    counts: dict[State, int]
    """Nodes by state, those that have none left out."""


@dataclass(frozen=True)
class Replay:
    """The states of the nodes of an incident over time."""

    nodes: tuple[str, ...]
    """In order of rack and name."""
    racks: tuple[str | None, ...]
    first_nodes: tuple[str, ...]
    """Those that the first records which name any name: failures and critical events before
    outages of the same moment."""
    states: NodeStates
    moments: tuple[Moment, ...]
    shown: NDArray[np.int8]
    """State of each node at each moment, shape (nodes, moments)."""
    n_changes: int
    """Moments at which a state changes; of many only some are shown."""
    phases: tuple[Phase, ...]
    n_first: int
    """Nodes hit at the first event ..."""
    n_hit: int
    """... and in the end, those of preempted jobs left out."""
    n_preempted: int
    """Jobs that a requeue preempted."""
    preemptors_known: bool
    recovery: Recovery
    followed_to: pd.Timestamp
    """End of the time over which the nodes were followed."""

    def phase(self, name: str) -> Phase:
        """One of its phases."""
        return next(phase for phase in self.phases if phase.name == name)


def window(members: pd.DataFrame, attempts: pd.DataFrame) -> tuple[pd.Timestamp, pd.Timestamp]:
    """From the first record of an incident to the return of what it hit, `LONGEST` at most.

    Parameters
    ----------
    members : DataFrame
        Columns start_at, end_at, kind; at least one row.
    attempts : DataFrame
        Column restarted_at.
    """
    last = members["start_at"].max()
    out = members.loc[members["kind"].eq("node_event"), "end_at"]
    returns = [at for at in (out.max(), attempts["restarted_at"].max()) if not pd.isna(at)]
    return members["start_at"].min(), min(max([last, *returns]), last + LONGEST)


def replay(members: pd.DataFrame, records: Records) -> Replay:
    """The states of an incident's nodes from a minute before its first record to its recovery.

    Of what holds of a node at once the first of these counts: out of service (a node event says
    so); evidence on it (a critical event, or a failure that its verdict lays there); its job
    failed; its job was preempted; a job runs that will be hit; one runs again that was hit;
    another job runs; in service. Evidence and failed jobs hold until a job starts on the node or
    an outage of it ends. A node is in service only where node events of its cluster were collected
    (see `NodeEventDays`); else, and where no job runs, its state is not known.

    Phases are the first failure, critical event or outage; the nodes hit after it (spread); the
    attempts that requeues preempted; and, after the last failure or event, jobs that started
    again and nodes that came back (recovery).

    Parameters
    ----------
    members : DataFrame
        Members of the incident, at least one: kind, key, start_at, end_at, node, text, role.
    records : Records
        What was recorded of its nodes.

    Returns
    -------
    Replay
        With at most `MOST_MOMENTS` moments: those at which phases begin and end always, then
        those at which the incident shows, evenly chosen, then those of other jobs.
    """
    first, last = window(members, records.attempts)
    begin, until = microseconds(pd.Series([first, last])).tolist()
    begin -= int(BEFORE.total_seconds()) * SECOND
    nodes = _ordered(records.nodes)
    of_nodes = pd.Index(nodes["node"])
    spans = _Spans(of_nodes, begin, until)
    states = node_states(
        [
            spans.of(records.outages, State.OUT),
            *_of_jobs(spans, members, records),
            *_marks(spans, members, records),
            *_collected(spans, records),
        ],
        n_places=len(of_nodes),
        begin=begin,
        until=until,
    )
    back = _recovery(members, records)
    hits = _hits(members, records)
    phases = _phases(members, hits, back)
    changes, marked = states.changes()
    moments = _chosen(changes, marked, [begin, *_times(phases)], (begin, until))
    shown = states.at_moments(moments)
    return Replay(
        nodes=tuple(nodes["node"]),
        racks=tuple(rack if isinstance(rack, str) else None for rack in nodes["rack"]),
        first_nodes=_first_nodes(members),
        states=states,
        moments=tuple(
            _moment(at, column, phases, complete=back.complete)
            for at, column in zip(moments.tolist(), shown.T, strict=True)
        ),
        shown=shown,
        n_changes=len(changes),
        phases=phases,
        n_first=int((hits == hits.min()).sum()) if len(hits) else 0,
        n_hit=len(hits),
        n_preempted=members.loc[members["kind"].eq("preemption"), "job_id"].nunique(),
        preemptors_known=records.preemptors_known,
        recovery=back,
        followed_to=last,
    )


@dataclass(frozen=True)
class _Spans:
    """Turns records of nodes into spans within the time of the replay."""

    nodes: pd.Index[str]
    begin: int
    until: int

    def of(self, rows: pd.DataFrame, state: State | NDArray[Any]) -> NodeSpans:
        """Rows with node, start_at and end_at; what has no end goes on."""
        known = rows["start_at"].notna().to_numpy()
        rows = rows[known]
        end = np.where(rows["end_at"].isna(), self.until + 1, microseconds(rows["end_at"]))
        of_state = np.broadcast_to(np.asarray(state), known.shape)[known]
        place = self.nodes.get_indexer(pd.Index(rows["node"]))
        return NodeSpans(place, microseconds(rows["start_at"]), end, of_state)

    def marks(
        self, node: pd.Series, at: pd.Series, clears: pd.DataFrame, state: State
    ) -> NodeSpans:
        """From moments on nodes to what clears them there, the first at or after each."""
        place = self.nodes.get_indexer(pd.Index(node))
        start = np.clip(microseconds(at), self.begin, self.until + 1)
        width = self.until - self.begin + 3
        bounded = np.clip(microseconds(clears["at"]), self.begin - 1, self.until + 1)
        known = np.sort(
            self.nodes.get_indexer(pd.Index(clears["node"])) * width + bounded - self.begin + 1
        )
        last = place * width + self.until - self.begin + 2
        found = np.searchsorted(known, place * width + start - self.begin + 1)
        cleared = np.minimum(np.append(known, np.iinfo(np.int64).max)[found], last)
        end = cleared - place * width + self.begin - 1
        return NodeSpans(place, start, end, np.full(len(place), int(state)))


def _ordered(nodes: pd.DataFrame) -> pd.DataFrame:
    """Nodes in order of rack and name, numbers in names by their size; those of no rack last."""
    digits = nodes["node"].str.replace(r"\d+", lambda found: found[0].zfill(9), regex=True)
    rows = nodes.assign(digits=digits).sort_values(["rack", "digits"], na_position="last")
    return rows.reset_index(drop=True)


def _of_jobs(spans: _Spans, members: pd.DataFrame, records: Records) -> list[NodeSpans]:
    """Attempts on the nodes: those that were hit, later ones of the same jobs, and others."""
    held, hit = records.held, records.attempts
    first_end = hit.groupby("job_id")["end_at"].min()
    later = held["start_at"] >= held["job_id"].map(first_end)
    was_hit = held["attempt_key"].isin(members["key"][members["kind"].isin(HIT)])
    state = np.where(was_hit, State.HIT_JOB, np.where(later, State.AGAIN, State.OTHER_JOB))
    return [spans.of(held, state)]


def _marks(spans: _Spans, members: pd.DataFrame, records: Records) -> list[NodeSpans]:
    """Evidence, and the ends of attempts that were hit, each until it is cleared."""
    held, outages = records.held, records.outages
    clears = pd.concat(
        [
            held[["node", "start_at"]].set_axis(["node", "at"], axis=1),
            outages[["node", "end_at"]].set_axis(["node", "at"], axis=1),
        ]
    ).dropna()
    seeds = members[members["role"].eq("seed") & members["node"].notna()]
    found = [spans.marks(seeds["node"], seeds["start_at"], clears, State.EVIDENCE)]
    for kind, state in zip(HIT, (State.FAILED, State.PREEMPTED), strict=True):
        ended = held[held["attempt_key"].isin(members["key"][members["kind"].eq(kind)])]
        ended = ended[ended["end_at"].notna()]
        found.append(spans.marks(ended["node"], ended["end_at"], clears, state))
    return found


def _collected(spans: _Spans, records: Records) -> list[NodeSpans]:
    """All nodes, over the days of which node events were collected."""
    days = range(spans.begin // _DAY, spans.until // _DAY + 1)
    seen = np.array([day for day in days if records.collected.hold(day)], dtype=np.int64)
    place = np.repeat(np.arange(len(spans.nodes)), len(seen))
    begin = np.tile(seen * _DAY, len(spans.nodes))
    return [NodeSpans(place, begin, begin + _DAY, np.full(len(place), int(State.IDLE)))]


def _seeds(members: pd.DataFrame) -> pd.DataFrame:
    """What an incident can begin with: failures, critical events, outages."""
    return members[members["role"].eq("seed") | members["kind"].eq("node_event")]


def first_records(members: pd.DataFrame) -> pd.DataFrame:
    """What an incident began with: its seeds and outages of the first moment."""
    seeds = _seeds(members)
    return seeds[seeds["start_at"].eq(seeds["start_at"].min())]


def _first_nodes(members: pd.DataFrame) -> tuple[str, ...]:
    """Nodes that the first records which name any name."""
    first = first_records(members[members["node"].notna()])
    seeds = first[first["role"].eq("seed")]
    return tuple(dict.fromkeys((first if seeds.empty else seeds)["node"]))


def _recovery(members: pd.DataFrame, records: Records) -> Recovery:
    """When its jobs ran again and its nodes were back."""
    out = members[members["kind"].eq("node_event")]
    return recovery(_seeds(members)["start_at"].min(), records.attempts, out, records.collected)


def _hits(members: pd.DataFrame, records: Records) -> Ints:
    """When each node was first hit, in microseconds: evidence, an outage, or its job failed."""
    failed = members["key"][members["kind"].eq("failure")]
    held = records.held[records.held["attempt_key"].isin(failed)]
    seeds = _seeds(members)
    times = pd.concat(
        [
            held[["node", "end_at"]].set_axis(["node", "at"], axis=1),
            seeds[["node", "start_at"]].set_axis(["node", "at"], axis=1),
        ]
    ).dropna()
    return microseconds(times.groupby("node")["at"].min())


def _phases(members: pd.DataFrame, hits: Ints, back: Recovery) -> tuple[Phase, ...]:
    """The four phases, with the times that records show."""
    seeds = _seeds(members)
    first = hits.min() if len(hits) else 0
    later = pd.to_datetime(hits[hits > first], unit="us", utc=True)
    aside = members.loc[members["kind"].eq("preemption"), "start_at"]
    last = members.loc[members["role"].eq("seed"), "start_at"].max()
    returned = [at for at in back.returns if pd.isna(last) or at >= last]
    began = seeds["start_at"].min()
    spans = ([began], later, aside, returned or back.returns[-1:])
    return tuple(
        Phase(name, min(times), max(times)) if len(times) else Phase(name)
        for name, times in zip(PHASES, spans, strict=True)
    )


def _times(phases: Sequence[Phase]) -> list[int]:
    """When phases begin and end, in microseconds."""
    known = [at for phase in phases for at in (phase.from_at, phase.to_at) if at is not None]
    return [int(at) for at in microseconds(pd.Series(known, dtype="datetime64[us, UTC]"))]


def _chosen(changes: Ints, marked: Bools, needed: Sequence[int], within: tuple[int, int]) -> Ints:
    """Moments to show: those needed, then marked changes, then others, evenly where too many."""
    begin, until = within
    kept = np.unique([at for at in needed if begin <= at <= until])[:MOST_MOMENTS]
    for group in (changes[marked], changes[~marked]):
        rest = np.setdiff1d(group, kept)
        room = MOST_MOMENTS - len(kept)
        if len(rest) > room:
            rest = rest[np.linspace(0, len(rest) - 1, room).round().astype(int)]
        kept = np.union1d(kept, rest)
    return kept.astype(np.int64)


def _moment(
    at: int, states: NDArray[np.int8], phases: Sequence[Phase], *, complete: bool
) -> Moment:
    """A moment with its phase and the number of nodes in each state."""
    moment = pd.Timestamp(at, unit="us", tz="UTC")
    found, n = np.unique(states, return_counts=True)
    counts = {State(int(one)): int(count) for one, count in zip(found, n, strict=True)}
    return Moment(moment, _phase(moment, phases, complete=complete), counts)


def _phase(moment: pd.Timestamp, phases: Sequence[Phase], *, complete: bool) -> str:
    """Where in the incident a moment lies."""
    begun = [(p.from_at, p.to_at, p.name) for p in phases if p.from_at and p.from_at <= moment]
    if not begun:
        return "before"
    recovered_at = phases[-1].to_at
    if complete and recovered_at is not None and moment >= recovered_at:
        return "recovered"
    lasting = [name for _, to_at, name in begun if to_at is not None and moment <= to_at]
    return " and ".join(lasting) or f"after {max(begun)[2]}"
