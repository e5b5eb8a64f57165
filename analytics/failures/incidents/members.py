"""What may belong to an incident: seeding failures, severe bursts and unplanned outages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.failures.bursts import SEVERITIES, severity_rank
from analytics.failures.columns import NEVER, Spans, joint_codes, microseconds, require
from analytics.failures.crash_loops import CrashLoops, crash_loops, requeue_preemptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.failures.incidents.options import IncidentOptions

    Ints = NDArray[np.int64]

INFRASTRUCTURE = ("hardware", "system_software")
_FAILURE = (
    "cluster", "attempt_key", "job_id", "cause", "domain", "state", "failed_at", "start_at",
    "node", "n_gpus",
)  # fmt: skip
_BURST = ("burst_id", "cluster", "node", "severity", "first_at", "last_at", "n", "check_name")
_OUTAGE = ("cluster", "node", "start_at", "end_at", "state", "reason", "planned")
_PREEMPTED = ("cluster", "attempt_key", "job_id", "preempted_by", "start_at", "end_at", "n_gpus")


@dataclass(frozen=True)
class Frames:
    """The frames given, each checked for its columns."""

    failures: pd.DataFrame
    attempt_nodes: pd.DataFrame
    bursts: pd.DataFrame
    node_events: pd.DataFrame
    nodes: pd.DataFrame
    preempted: pd.DataFrame

    def __post_init__(self) -> None:
        require("failures", self.failures, _FAILURE)
        require("attempt_nodes", self.attempt_nodes, ("cluster", "attempt_key", "node"))
        require("bursts", self.bursts, _BURST)
        require("node_events", self.node_events, _OUTAGE)
        require("nodes", self.nodes, ("cluster", "node", "rack", "pod"))
        require("preempted", self.preempted, _PREEMPTED)


@dataclass(frozen=True)
class Members:
    """Candidates in one numbering: failures, then severe bursts, then outages.

    Places are codes of (cluster, node); times are microseconds.
    """

    failures: pd.DataFrame
    """The failures that seed."""
    infrastructure: NDArray[np.bool_]
    """Of each of them: not there as a member of a crash loop alone."""
    loop: Ints
    """Crash loop of each, -1 where none."""
    loops: CrashLoops
    """Without what they pushed aside: `preempted` holds it."""
    severe: pd.DataFrame
    """Critical and fatal bursts."""
    mild: pd.DataFrame
    """The other bursts."""
    mild_spans: Spans
    """Where and when they were; member is the row."""
    outages: pd.DataFrame
    """Intervals out of service that were not planned."""
    preempted: pd.DataFrame
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
    def n_seeds(self) -> int:
        """Failures and severe bursts."""
        return len(self.failures) + len(self.severe)

    def occupied(self) -> Spans:
        """Each failure at its node; at every node of its attempt where none is named."""
        failure, place = self.of_attempts
        named = self.place[failure] >= 0
        keep = ~named | (place == self.place[failure])
        return self.at(failure[keep], place[keep])

    def at(self, member: Ints, place: Ints, *, before: int = 0, after: int = 0) -> Spans:
        """Members at places, widened in time."""
        return Spans(place, self.first[member] - before, self.last[member] + after, member)


def members_of(frames: Frames, options: IncidentOptions) -> Members:
    """The candidates of all incidents, in an order that does not depend on that of the rows."""
    loops = crash_loops(
        frames.failures,
        min_failures=options.loop_failures,
        within_hours=options.loop_hours,
    )
    rows = _seeding(frames.failures, loops.number)
    failures = frames.failures.iloc[rows].reset_index(drop=True)
    severe, mild = _by_severity(frames.bursts)
    outages = _unplanned(frames.node_events)
    attempt, attempt_nodes = _nodes_of(failures, frames.attempt_nodes)
    tables = (failures, severe, outages, mild, attempt_nodes, frames.nodes)
    pairs = [table[["cluster", "node"]].astype(object) for table in tables]
    of_failures, of_severe, of_outages, of_mild, of_attempts, of_nodes = joint_codes(
        pairs, ["cluster", "node"]
    )
    both = np.concatenate([of_failures, of_severe, of_outages, of_mild, of_attempts, of_nodes])
    ends = [microseconds(failures["failed_at"]), microseconds(outages["start_at"])]
    by, aside = _pushed_aside(frames, rows)
    return Members(
        failures=failures,
        infrastructure=_infrastructure(failures),
        loop=loops.number[rows],
        loops=loops,
        severe=severe,
        mild=mild,
        mild_spans=_spans(mild, of_mild),
        outages=outages,
        preempted=frames.preempted.iloc[aside].reset_index(drop=True),
        preempted_by=by,
        place=np.concatenate([of_failures, of_severe, of_outages]),
        first=np.concatenate([ends[0], microseconds(severe["first_at"]), ends[1]]),
        last=np.concatenate([ends[0], microseconds(severe["last_at"]), ends[1]]),
        of_attempts=_with_failed(attempt, of_attempts, of_failures),
        names=_names(both, pairs),
        place_groups={
            name: _groups(frames.nodes, of_nodes, name, int(both.max(initial=-1)) + 1)
            for name in ("rack", "pod")
        },
    )


def _spans(bursts: pd.DataFrame, place: Ints) -> Spans:
    """Where and when bursts were."""
    first, last = (microseconds(bursts[name]) for name in ("first_at", "last_at"))
    return Spans(place, first, last, np.arange(len(bursts))).known()


def _pushed_aside(frames: Frames, rows: Ints) -> tuple[Ints, Ints]:
    """Number of the seed and row of each attempt that its requeue preempted."""
    jobs = frames.failures["job_id"]
    same = np.flatnonzero(jobs.isin(jobs.iloc[rows]) & jobs.notna())
    by, aside = requeue_preemptions(frames.failures.iloc[same], frames.preempted)
    number = np.full(len(frames.failures), -1, dtype=np.int64)
    number[rows] = np.arange(len(rows))
    seed = number[same[by]]
    order = np.argsort(frames.preempted["attempt_key"].to_numpy(dtype=object)[aside].astype(str))
    seed, aside = seed[order], aside[order]
    return seed[seed >= 0], aside[seed >= 0]


def _infrastructure(failures: pd.DataFrame) -> NDArray[np.bool_]:
    """Failures of hardware or system software, and lost nodes whatever their verdict."""
    lost = failures["state"].eq("NODE_FAIL")
    if "node_lost" in failures.columns:
        lost |= failures["node_lost"].astype("boolean").fillna(False).astype(bool)
    return (failures["domain"].isin(INFRASTRUCTURE) | lost).to_numpy()


def _seeding(failures: pd.DataFrame, loop: Ints) -> Ints:
    """Rows of the failures that seed incidents, by time and key; each attempt once."""
    at = microseconds(failures["failed_at"])
    seeds = (_infrastructure(failures) | (loop >= 0)) & (at != NEVER)
    rows = np.flatnonzero(seeds)
    keys = failures[["cluster", "attempt_key"]].iloc[rows].astype(str)
    order = np.lexsort((keys["cluster"], keys["attempt_key"], at[rows]))
    once = ~keys.iloc[order].duplicated().to_numpy()
    kept: Ints = rows[order][once]
    return kept


def _by_severity(bursts: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Critical and fatal bursts by time and id, and the others, where time and node are known."""
    at = microseconds(bursts["first_at"])
    known = (at != NEVER) & bursts["node"].notna().to_numpy()
    critical = severity_rank(bursts["severity"]) >= SEVERITIES.index("critical")
    severe = np.flatnonzero(known & critical)
    ids = bursts["burst_id"].to_numpy(dtype=object)[severe].astype(str)
    severe = severe[np.lexsort((ids, at[severe]))]
    return (
        bursts.iloc[severe].reset_index(drop=True),
        bursts[known & ~critical].reset_index(drop=True),
    )


def _unplanned(node_events: pd.DataFrame) -> pd.DataFrame:
    """Outages that were not announced before, by time and node; unknown counts as not announced."""
    at = microseconds(node_events["start_at"])
    planned = node_events["planned"].astype("boolean").fillna(False).to_numpy(dtype=bool)
    rows = np.flatnonzero(~planned & (at != NEVER) & node_events["node"].notna().to_numpy())
    nodes = node_events[["cluster", "node"]].iloc[rows].astype(str)
    order = np.lexsort((nodes["cluster"], nodes["node"], at[rows]))
    found = node_events.iloc[rows[order]]
    return found.drop_duplicates(["cluster", "node", "start_at"]).reset_index(drop=True)


def _nodes_of(failures: pd.DataFrame, attempt_nodes: pd.DataFrame) -> tuple[Ints, pd.DataFrame]:
    """Nodes of the seeding attempts, and the failure of each."""
    ours = attempt_nodes[attempt_nodes["attempt_key"].isin(failures["attempt_key"])]
    number = failures[["cluster", "attempt_key"]].assign(failure=np.arange(len(failures)))
    found = ours[["cluster", "attempt_key", "node"]].merge(number, on=["cluster", "attempt_key"])
    found = found.drop_duplicates(["failure", "node"])
    return found["failure"].to_numpy(dtype=np.int64), found


def _with_failed(attempt: Ints, place: Ints, failed: Ints) -> tuple[Ints, Ints]:
    """Failure and place of the attempts' nodes and of the failed nodes, each pair once."""
    failure = np.concatenate([attempt, np.arange(len(failed))])
    places = np.concatenate([place, failed])
    pairs = pd.DataFrame({"failure": failure, "place": places})
    pairs = pairs[pairs["place"] >= 0].drop_duplicates().sort_values(["failure", "place"])
    return pairs["failure"].to_numpy(), pairs["place"].to_numpy()


def _names(place: Ints, pairs: list[pd.DataFrame]) -> NDArray[np.object_]:
    """Name of the node of each place."""
    names = np.empty(int(place.max(initial=-1)) + 1, dtype=object)
    known = place >= 0
    names[place[known]] = np.concatenate([pair["node"].to_numpy() for pair in pairs])[known]
    return names


def _groups(nodes: pd.DataFrame, place: Ints, column: str, n_places: int) -> Ints:
    """Code of the rack or pod of each place; of several spells of a node the last one counts."""
    found = np.full(n_places + 1, -1, dtype=np.int64)
    group = joint_codes([nodes[["cluster", column]].astype(object)], ["cluster", column])[0]
    spell = [nodes[column].astype(str).to_numpy(dtype=object)]
    if "last_seen_at" in nodes.columns:
        spell.append(microseconds(nodes["last_seen_at"]))
    order = np.lexsort(tuple(spell))
    order = order[(group[order] >= 0) & (place[order] >= 0)]
    found[place[order]] = group[order]
    return found
