"""What may belong to an incident: seeding failures, severe bursts and unplanned outages.

`IncidentOptions` says what counts as near.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from analytics import validate
from analytics.failures.columns import (
    MINUTE,
    NEVER,
    Spans,
    codes,
    columns_of,
    joint_codes,
    require,
    taken,
)
from analytics.failures.crash_loops import CrashLoops, crash_loops, requeue_preemptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.arrays import Bools, Ints
    from analytics.frames import Columns

SHARED_CAUSES: Mapping[str, str] = {
    "filesystem_mount": "storage",
    "object_storage": "storage",
    "connection_error": "services",
    "scheduler": "services",
    "system_service": "services",
    "container_runtime": "services",
    "network": "network",
    "ib_link": "network",
    "ethernet_link": "network",
    "power": "facility",
    "cooling": "facility",
    "facility": "facility",
    "node_lost": "node_lost",
}
"""Causes that strike several nodes at once, with the class in which they count as one."""


@dataclass(frozen=True)
class IncidentOptions:
    """Times and counts by which failures and events are joined.

    Raises
    ------
    OutOfRangeError
        For a number outside its range.
    """

    before_minutes: float = 10.0
    """Evidence counts from this long before a failure (Kokolis et al., section II) ..."""
    after_minutes: float = 5.0
    """... to this long after it; their sum joins failures, and events, of one node."""
    shared_minutes: float = 5.0
    """Failures of one rack, pod or shared cause within this time may be one storm ..."""
    shared_nodes: int = 3
    """... from this many nodes on ..."""
    fleet_nodes: int = 10
    """... and, whatever their causes and places, from this many nodes of the cluster on."""
    chance_per_year: float = 1.0
    """Storms that chance may be expected to make up in a year, of each kind of place or cause."""
    longest_hours: float = 24.0
    """A chain of members longer than this is cut; a crash loop is held together."""
    loop_failures: int = 3
    """Failures of one run in a row that make a crash loop ..."""
    loop_hours: float = 24.0
    """... when they fall within this time."""
    lost_minutes: float = 30.0
    """Work lost by an attempt at most: half the interval between hourly checkpoints."""
    shared_causes: Mapping[str, str] = field(default_factory=lambda: SHARED_CAUSES)
    """Cause to class, as `SHARED_CAUSES`."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Cause to its title in plain words; a cause without one is named by its id."""

    @property
    def window(self) -> tuple[int, int]:
        """Microseconds before and after a failure within which evidence counts."""
        return int(self.before_minutes * MINUTE), int(self.after_minutes * MINUTE)

    def __post_init__(self) -> None:
        for name in ("before_minutes", "after_minutes", "shared_minutes", "lost_minutes"):
            validate.nonnegative(name, getattr(self, name), "pass minutes")
        for name in ("shared_nodes", "fleet_nodes", "longest_hours", "loop_hours"):
            validate.positive(name, getattr(self, name), "pass e.g. 3 nodes or 24 hours")
        validate.nonnegative("chance_per_year", self.chance_per_year, "pass storms a year, e.g. 1")


INFRASTRUCTURE = ("hardware", "system_software")
_NEEDED = {
    "failures": ("cluster", "attempt_key", "job_id", "cause", "domain", "state", "failed_at",
                 "start_at", "node", "n_gpus"),
    "attempt_nodes": ("cluster", "attempt_key", "node"),
    "bursts": ("burst_id", "cluster", "node", "severity", "first_at", "last_at", "n", "check_name"),
    "node_events": ("cluster", "node", "start_at", "end_at", "state", "reason", "planned"),
    "nodes": ("cluster", "node", "rack", "pod"),
    "preempted": ("cluster", "attempt_key", "job_id", "preempted_by", "start_at", "end_at",
                  "n_gpus"),
}  # fmt: skip
_OF_BURSTS = {"cause": None, "domain": None, "message": None, "xid": np.nan, "sxid": np.nan}
"""What a burst may tell besides, and what stands for it where none does."""


class Given(NamedTuple):
    """The tables given, each as `columns_of` gives it."""

    failures: Columns
    attempt_nodes: Columns
    bursts: Columns
    node_events: Columns
    nodes: Columns
    preempted: Columns


def given(tables: Mapping[str, pd.DataFrame | Columns]) -> Given:
    """The tables by their names, each checked for its columns."""
    for name, columns in _NEEDED.items():
        require(name, tables[name], columns)
    return Given(**{name: columns_of(table) for name, table in tables.items()})


@dataclass(frozen=True)
class Members:
    """Candidates in one numbering: failures, then severe bursts, then outages.

    Places are codes of (cluster, node); times are microseconds. Tables are as `columns_of` gives
    them.
    """

    failures: Columns
    """The failures that seed."""
    infrastructure: Bools
    """Of each of them: not there as a member of a crash loop alone."""
    loop: Ints
    """Crash loop of each, -1 where none."""
    loops: CrashLoops | None
    """Without what they pushed aside: `preempted` holds it; None where there are too few."""
    severe: Columns
    """Critical and fatal bursts."""
    mild: Columns
    """The other bursts."""
    mild_spans: Spans
    """Where and when they were; member is the row."""
    outages: Columns
    """Intervals out of service that were not planned."""
    preempted: Columns
    """Attempts preempted by a requeue."""
    preempted_by: Ints
    """The failure behind each."""
    place: Ints
    """Of each member; -1 where the node is not known."""
    first: Ints
    last: Ints
    """Start and end of each member: failures and outages are moments."""
    of_attempts: tuple[Ints, Ints]
    """Failure and place of every node of the seeding attempts, the failed one included."""
    names: NDArray[np.object_]
    """Name of the node of each place."""
    place_groups: dict[str, Ints]
    """Code of the rack and of the pod of each place; -1 where unknown, and so at place -1."""

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.place)

    @property
    def n_failures(self) -> int:
        """Failures that seed."""
        return len(self.loop)

    @property
    def n_seeds(self) -> int:
        """Failures and severe bursts."""
        return len(self.loop) + len(self.severe["n"])

    def occupied(self) -> Spans:
        """Each failure at its node; at every node of its attempt where none is named."""
        failure, place = self.of_attempts
        named = self.place[failure] >= 0
        keep = ~named | (place == self.place[failure])
        return self.at(failure[keep], place[keep])

    def at(self, member: Ints, place: Ints, window: tuple[int, int] = (0, 0)) -> Spans:
        """Members at places, widened by the microseconds before and after them."""
        before, after = window
        return Spans(place, self.first[member] - before, self.last[member] + after, member)


def members_of(given: Given, options: IncidentOptions) -> Members:
    """The candidates of all incidents, in an order that does not depend on that of the rows."""
    loops, loop = None, np.full(len(given.failures["cluster"]), -1, dtype=np.int64)
    if len(loop) >= options.loop_failures:
        loops = crash_loops(
            given.failures,
            min_failures=options.loop_failures,
            within_hours=options.loop_hours,
        )
        loop = loops.number
    rows = _seeding(given.failures, loop)
    failures = taken(given.failures, rows)
    severe, mild = _by_severity(given.bursts)
    outages = _unplanned(given.node_events)
    nodes = given.nodes
    attempt, attempt_nodes = _nodes_of(failures, given.attempt_nodes)
    tables = (failures, severe, outages, mild, attempt_nodes, nodes)
    places = joint_codes(tables, ["cluster", "node"])
    of_failures, of_severe, of_outages, of_mild, of_attempts, of_nodes = places
    by, aside = _pushed_aside(given, rows)
    names = _names(np.concatenate(places), np.concatenate([table["node"] for table in tables]))
    return Members(
        failures=failures,
        infrastructure=_infrastructure(failures),
        loop=loop[rows],
        loops=loops,
        severe=severe,
        mild=mild,
        mild_spans=Spans(
            of_mild, mild["first_at"], mild["last_at"], np.arange(len(of_mild))
        ).known(),
        outages=outages,
        preempted=taken(given.preempted, aside),
        preempted_by=by,
        place=np.concatenate([of_failures, of_severe, of_outages]),
        first=np.concatenate([failures["failed_at"], severe["first_at"], outages["start_at"]]),
        last=np.concatenate([failures["failed_at"], severe["last_at"], outages["start_at"]]),
        of_attempts=_with_failed(attempt, of_attempts, of_failures),
        names=names,
        place_groups={name: _groups(nodes, of_nodes, name, len(names)) for name in ("rack", "pod")},
    )


def _pushed_aside(given: Given, rows: Ints) -> tuple[Ints, Ints]:
    """Number of the seed and row of each attempt that its requeue preempted."""
    jobs, preempted = given.failures["job_id"], given.preempted["attempt_key"]
    if not len(preempted):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    same = np.flatnonzero(pd.Index(jobs).isin(jobs[rows]) & pd.notna(jobs))
    by, aside = requeue_preemptions(taken(given.failures, same), given.preempted)
    number = np.full(len(jobs), -1, dtype=np.int64)
    number[rows] = np.arange(len(rows))
    seed = number[same[by]]
    order = np.argsort(preempted[aside].astype(str))
    seed, aside = seed[order], aside[order]
    return seed[seed >= 0], aside[seed >= 0]


def _infrastructure(failures: Columns) -> Bools:
    """What the definition counts, where `counted` says so; else hardware, system software and lost
    nodes whatever their verdict."""
    if "counted" in failures:
        return failures["counted"].astype(bool)
    lost = failures["state"] == "NODE_FAIL"
    if "node_lost" in failures:
        lost |= failures["node_lost"].astype(bool)
    hardware, system_software = (failures["domain"] == name for name in INFRASTRUCTURE)
    found: Bools = hardware | system_software | lost
    return found


def _seeding(failures: Columns, loop: Ints) -> Ints:
    """Rows of the failures that seed incidents, by time and key; each attempt once."""
    at = failures["failed_at"]
    rows = np.flatnonzero((_infrastructure(failures) | (loop >= 0)) & (at != NEVER))
    rows = _ordered(failures, rows, ("cluster", "attempt_key", "failed_at"))
    return rows[_first_of(codes(taken(failures, rows), ["cluster", "attempt_key"]))]


def _ordered(table: Columns, rows: Ints, by: tuple[str, str, str]) -> Ints:
    """Rows by these columns, the last one first."""
    other, name, at = by
    texts = (table[column][rows].astype(str) for column in (other, name))
    return rows[np.lexsort((*texts, table[at][rows]))]


def _first_of(number: Ints) -> Ints:
    """Positions of the first row of each number, in order."""
    first: Ints = np.sort(np.unique(number, return_index=True)[1])
    return first


def _by_severity(given: Columns) -> tuple[Columns, Columns]:
    """Critical and fatal bursts by time and id, and the others, where time and node are known."""
    n_bursts = len(given["burst_id"])
    bursts = {name: np.full(n_bursts, value, object) for name, value in _OF_BURSTS.items()} | {
        **given
    }
    at = bursts["first_at"]
    known = (at != NEVER) & pd.notna(bursts["node"])
    critical = (bursts["severity"] == "critical") | (bursts["severity"] == "fatal")
    severe = np.flatnonzero(known & critical)
    severe = severe[np.lexsort((bursts["burst_id"][severe].astype(str), at[severe]))]
    return taken(bursts, severe), taken(bursts, known & ~critical)


def _unplanned(node_events: Columns) -> Columns:
    """Outages that were not announced before, by time and node; unknown counts as not announced."""
    at = node_events["start_at"]
    planned = node_events["planned"].astype(bool)
    rows = np.flatnonzero(~planned & (at != NEVER) & pd.notna(node_events["node"]))
    outages = taken(node_events, _ordered(node_events, rows, ("cluster", "node", "start_at")))
    return taken(outages, _first_of(codes(outages, ["cluster", "node", "start_at"])))


def _nodes_of(failures: Columns, attempt_nodes: Columns) -> tuple[Ints, Columns]:
    """Nodes of the seeding attempts, and the failure of each."""
    of_failures, of_nodes = joint_codes([failures, attempt_nodes], ["cluster", "attempt_key"])
    number = np.full(len(of_failures) + len(of_nodes) + 1, -1, dtype=np.int64)
    number[of_failures] = np.arange(len(of_failures))
    number[-1] = -1  # where cluster or key are not known
    rows = np.flatnonzero(number[of_nodes] >= 0)
    node = codes(taken(attempt_nodes, rows), ["node"])
    rows = rows[_first_of(number[of_nodes][rows] * (len(rows) + 1) + node)]
    return number[of_nodes][rows], taken(attempt_nodes, rows)


def _with_failed(attempt: Ints, place: Ints, failed: Ints) -> tuple[Ints, Ints]:
    """Failure and place of the attempts' nodes and of the failed nodes, each pair once."""
    failure = np.concatenate([attempt, np.arange(len(failed))])
    places = np.concatenate([place, failed])
    width = int(places.max(initial=0)) + 1
    pairs = np.unique(failure[places >= 0] * width + places[places >= 0])
    return pairs // width, pairs % width


def _names(place: Ints, nodes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Name of the node of each place."""
    names = np.empty(int(place.max(initial=-1)) + 1, dtype=object)
    names[place[place >= 0]] = nodes[place >= 0]
    return names


def _groups(nodes: Columns, place: Ints, column: str, n_places: int) -> Ints:
    """Code of the rack or pod of each place; of several spells of a node the last one counts."""
    found = np.full(n_places + 1, -1, dtype=np.int64)
    group = joint_codes([nodes], ["cluster", column])[0]
    known = np.flatnonzero((group >= 0) & (place >= 0))
    spell = [nodes[column][known].astype(str)]
    if "last_seen_at" in nodes:
        spell.append(nodes["last_seen_at"][known])
    order = known[np.lexsort(tuple(spell))]
    found[place[order]] = group[order]
    return found
