"""In which state each node of an incident was at every moment, from spans that records give."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.failures.columns import Ints


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

    def changes(self) -> tuple[Ints, NDArray[np.bool_]]:
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
