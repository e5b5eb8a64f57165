"""Which nodes are lemons: they have more against them than chance and their exposure explain."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from analytics import validate
from analytics.estimate import CONF_LEVEL
from analytics.nodes.chance import Expected, discoveries, expected, mean_counts, tail, weights
from analytics.nodes.episodes import KINDS, episodes
from analytics.nodes.one_user import Users
from analytics.nodes.ratios import rate_ratios
from analytics.nodes.records import EXPOSURES
from analytics.nodes.shared_faults import bad_groups, struck_at_once
from analytics.nodes.together import fell_together

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from analytics.arrays import Bools, Floats, Ints
    from analytics.estimate import Estimate
    from analytics.nodes.episodes import Episodes
    from analytics.nodes.one_user import OneUser
    from analytics.nodes.ratios import Ratios
    from analytics.nodes.records import NodeRecords
    from analytics.nodes.shared_faults import BadGroup
    from analytics.nodes.together import SharedFault

_NAMED: Final = re.compile(
    r"(^|[-_.])(login|head|mgmt|mgt|fe|frontend|front-end|gateway|gw|admin|master|ctl|slurmctld|submit)"
    r"[-_]?\d*($|[-_.])",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"(\d+)\D*$")
MOST_OUT: Final = 0.5
"""Share of its days that a node without jobs may be out and still count as one that serves."""


def front_ends(nodes: pd.DataFrame, out_days: Floats, stands_out: Bools) -> dict[int, str]:
    """Nodes that are no compute nodes, each with what says so.

    By their role; their name (login, head, mgmt, fe and the like); jobs, where they ran in the
    cluster and never there, though the node was in service; and in a cluster whose jobs are not
    known, the first number of its names, where it has more records than is usual: the front end of
    such clusters often counts as a node.

    Parameters
    ----------
    nodes
        As in `NodeRecords`.
    out_days
        Days out of service of each.
    stands_out
        Whether it has more records than is usual.
    """
    found: dict[int, str] = {}
    has_jobs = bool(nodes["holds_jobs"].any())
    first = None if has_jobs else _first_number(nodes["node"].tolist())
    rows = nodes[["node", "role", "holds_jobs", "present_days"]].itertuples(index=False)
    for at, (node, role, holds_jobs, present_days) in enumerate(rows):
        if role in ("front end", "service"):
            found[at] = f"the inventory calls it a {role} node"
        elif _NAMED.search(node):
            found[at] = "probably a front end, by its name"
        elif has_jobs and not holds_jobs:
            if stands_out[at] and out_days[at] < MOST_OUT * present_days:
                found[at] = "probably a service node: jobs ran in the cluster, never here"
        elif at == first and stands_out[at]:
            found[at] = "probably the front end: the first number of its cluster, with more records"
    return found


def _first_number(names: list[str]) -> int | None:
    """Place of the node with the least number, where one has it alone."""
    numbers = [_NUMBER.search(name) for name in names]
    if not names or not all(numbers):
        return None
    values = [int(number.group(1)) for number in numbers if number]
    least = min(values)
    return values.index(least) if values.count(least) == 1 and least <= 1 else None


Verdict = Literal["lemon", "watch", "fine", "front end", "unknown"]
MOST_EXCLUDERS: Final = 4
LEVEL: Final = 0.1
"""Share of false ones that is expected on the list at most."""
STILL: Final = 0.03
"""Largest chance of what is left of a lemon without what one week or one user explains."""
STRICT: Final = 0.001
"""The same without the jobs of one user whose node was lost, where none of others may have been."""
MOST_FAILING: Final = 9
"""Further failures that are tried."""


@dataclass(frozen=True)
class JudgedNode:
    """One node and what speaks against it."""

    cluster: str
    node: str
    verdict: Verdict
    score: float | None
    """-log10 of the chance that a healthy node has so much against it; None where not judged."""
    ratio: Estimate | None
    """Rate of its occasions over that of a healthy node of its exposure; n = occasions."""
    expected: float
    """Occasions of a healthy node."""
    occasions: dict[str, int]
    """By the gravest kind of record of each; kinds without a source are left out."""
    why: str
    """What decided, beyond the counts."""
    group: BadGroup | None = None
    fault: SharedFault | None = None
    """With whom it goes down together."""
    one_user: OneUser | None = None
    """What lays its failures on one user, where that is the doubt."""
    failing_days: int | None = None
    """Further days with a failure that would make it a lemon; None where it is not to be watched,
    or no such number would."""
    quiet_days: int | None = None
    """Days from now without a record after which it no longer stands out."""


@dataclass(frozen=True)
class JudgedCluster:
    """What the verdicts of one cluster rest on, node by node as in its records."""

    records: NodeRecords
    """Without what struck many nodes at once, or those of a shared fault together."""
    found: Episodes
    """Without those of front ends."""
    usual: Expected
    """With the ratios of bad groups in the means."""
    ratios: Ratios
    groups: tuple[BadGroup, ...]
    faults: tuple[SharedFault, ...]
    n_at_once: int
    nodes: tuple[JudgedNode, ...] = field(default=())

    @property
    def lemons(self) -> Bools:
        """Which nodes are lemons."""
        return np.array([node.verdict == "lemon" for node in self.nodes], dtype=bool)


@dataclass(frozen=True)
class _Evidence:
    """Chances of one cluster, before they are held against those of all."""

    cluster: JudgedCluster
    counts: Ints
    fronts: dict[int, str]
    known: Bools
    weight: list[Ints]
    p: Floats
    p_with_shared: Floats
    """The same where what struck several nodes together counts against each."""


@dataclass(frozen=True)
class _Seen:
    """Occasions of the nodes of a cluster beside what is usual."""

    counts: Ints
    exposure: Floats
    usual: Expected
    known: Bools

    @classmethod
    def of(cls, records: NodeRecords, found: Episodes) -> _Seen:
        """Of some occasions, and of the exclusions."""
        counts = np.column_stack([found.counts(len(records.nodes)), _excluders(records)])
        exposure = records.nodes[list(EXPOSURES)].to_numpy(dtype=np.float64)
        ran = (exposure[:, 1:].sum(axis=1) > 0) & bool(records.collected)
        known: Bools = (counts.sum(axis=1) > 0) | ran
        return cls(counts, exposure, _usual(counts, exposure), known)

    def without(self, places: Sequence[int]) -> _Seen:
        """Some nodes are none of those that say what is usual, and are not judged."""
        serves = np.isin(np.arange(len(self.counts)), places)
        counts = np.where(serves[:, None], 0, self.counts)
        usual = _usual(counts, np.where(serves[:, None], 0.0, self.exposure))
        return replace(self, usual=usual, known=self.known & ~serves)

    @property
    def weight(self) -> list[Ints]:
        """What occasions weigh on the nodes that are judged."""
        judged = self.usual.mean[self.known] if self.known.any() else self.usual.mean
        return weights(judged.mean(axis=0))

    def chances(self, mean: Floats) -> Floats:
        """That healthy nodes with such means have so much against them."""
        p = tail(self.counts, mean, self.weight, self.usual.variance)
        return np.where(self.known, p, 1.0)


def lemons(
    records: Sequence[NodeRecords], *, conf_level: float = CONF_LEVEL
) -> list[JudgedCluster]:
    """Verdicts on all nodes of some clusters.

    Each node gets the chance p that a healthy node of the same exposure has as much against it, by
    the weights of its occasions (`tail`); its score is -log10 p. All nodes of all
    clusters are held together against the false-discovery rate `LEVEL`. One that stands out is a
    lemon where it still would (p <= 0.03) if its worst seven days were one occasion, without the
    jobs of the one user whom it cost most or health checks that end nothing, and always without
    those who exclude it, who may do so on hearsay; else it is to be watched. What nodes do together
    (`fell_together`) counts against none of them, and one user's lost nodes only where that user is
    cleared (`Users.doubted`). A node without a record and without a job is unknown; it counts among
    those tested, for it could have had one.

    Parameters
    ----------
    records
        One a cluster.
    conf_level : float
        In (0, 1), of the intervals of ratios.

    Raises
    ------
    OutOfRangeError
        For a level outside (0, 1).

    References
    ----------
    Kokolis, A. et al. (2024). Revisiting Reliability in Large-Scale Machine Learning Research
    Clusters. arXiv 2410.21680: the signals and 28 days. Score and control are ours.
    """
    validate.conf_level(conf_level)
    evidence = [_evidence(of_cluster) for of_cluster in records if len(of_cluster.nodes)]
    if not evidence:
        return []
    out = discoveries(np.concatenate([of_cluster.p for of_cluster in evidence]), LEVEL)
    line = LEVEL * max(int(out.sum()), 1) / len(out)
    ends = np.cumsum([len(of_cluster.p) for of_cluster in evidence])
    return [
        _judged(of_cluster, rejected, line, conf_level)
        for of_cluster, rejected in zip(evidence, np.split(out, ends[:-1]), strict=True)
    ]


def _evidence(records: NodeRecords) -> _Evidence:
    """What one cluster shows by itself."""
    every, struck = episodes(records), struck_at_once(records.events, records.days)
    stormy = every.begun_by(records.events, struck)
    together = fell_together(records, every)
    gone = stormy | together.occasions
    kept = records.without(struck | every.of_records(records.events, gone))
    found = every.where(~gone)
    seen = with_shared = _Seen.of(records, every.where(~stormy))
    p_with_shared = with_shared.chances(with_shared.usual.mean)
    fronts = front_ends(records.nodes, _out_days(records), p_with_shared <= LEVEL)
    if together.faults:
        seen = _Seen.of(records, found)
    if fronts:
        seen = seen.without(list(fronts))
    own = slice(0, len(KINDS))
    usual = seen.usual.mean[:, own].sum(axis=1)
    groups = bad_groups(kept.cluster, kept.nodes, found, usual, LEVEL)
    mean = seen.usual.mean * _group_ratio(groups, kept)[:, None]
    live = found.live_share(len(kept.nodes), kept.days)
    n_own = seen.counts[:, own].sum(axis=1)
    ratios = rate_ratios(np.where(seen.known, n_own, 0), mean[:, own].sum(axis=1), live)
    expect = Expected(mean, seen.usual.variance)
    found = found.where(~np.isin(found.place, list(fronts)))
    cluster = JudgedCluster(
        kept, found, expect, ratios, tuple(groups), together.faults, int(struck.sum())
    )
    p = seen.chances(mean)
    return _Evidence(cluster, seen.counts, fronts, seen.known, seen.weight, p, p_with_shared)


def _usual(counts: Ints, exposure: Floats) -> Expected:
    """What is usual of occasions, and of exclusions by themselves."""
    own, excluded = np.split(counts, [len(KINDS)], axis=1)
    usual = expected(own, exposure)
    return Expected(np.hstack([usual.mean, mean_counts(excluded, exposure)]), usual.variance)


def _excluders(records: NodeRecords) -> Ints:
    """Users who excluded each node, four at most: that many know of one another."""
    rows = records.events[records.events["signal"] == "excluded"]
    n = rows.groupby("place")["user"].nunique().reindex(records.nodes.index, fill_value=0)
    found: Ints = np.minimum(n.to_numpy(dtype=np.int64), MOST_EXCLUDERS)
    return found


def _out_days(records: NodeRecords) -> Floats:
    """Days of the window that each node was out."""
    rows = records.events[records.events["signal"] == "out"]
    days = np.clip(rows["until_day"].fillna(records.days), 0, records.days) - rows["day"].clip(0)
    out: Floats = np.zeros(len(records.nodes))
    np.add.at(out, rows["place"].to_numpy(dtype=np.int64), days.clip(0).to_numpy())
    return out


def _group_ratio(groups: Sequence[BadGroup], records: NodeRecords) -> Floats:
    """Largest ratio of the bad groups of each node, 1 where it is in none."""
    ratio = np.ones(len(records.nodes))
    for group in groups:
        inside = records.nodes["node"].isin(group.nodes).to_numpy()
        ratio[inside] = np.maximum(ratio[inside], group.ratio)
    return ratio


def _judged(evidence: _Evidence, rejected: Bools, line: float, conf_level: float) -> JudgedCluster:
    """The cluster with a verdict for each node; one stands out by a chance up to the line."""
    cluster = evidence.cluster
    doubts = _doubts(evidence, rejected, line)
    quiet_days = _quiet_days(evidence, rejected, line)
    nodes = cluster.records.nodes["node"].tolist()
    ratios = cluster.ratios.estimates(conf_level)
    in_group = {node: group for group in cluster.groups for node in group.nodes}
    in_fault = {node: fault for fault in cluster.faults for node in fault.nodes}
    shared = discoveries(evidence.p_with_shared, LEVEL)
    judged = []
    for at, node in enumerate(nodes):
        verdict: Verdict = "fine"
        doubt = doubts.get(at, _Doubt(""))
        why = doubt.why
        if at in evidence.fronts:
            verdict, why = "front end", evidence.fronts[at]
        elif not evidence.known[at]:
            verdict, why = "unknown", "no record and no job in the window"
        elif rejected[at] or (shared[at] and node in in_fault):
            with_others = node in in_fault and not in_fault[node].mostly_alone(node)
            verdict = "watch" if why or with_others or not rejected[at] else "lemon"
        judged.append(
            JudgedNode(
                cluster.records.cluster,
                node,
                verdict,
                abs(float(np.log10(evidence.p[at]))) if evidence.known[at] else None,
                ratios[at] if evidence.known[at] else None,
                float(cluster.usual.mean[at, : len(KINDS)].sum()),
                {
                    kind: int(evidence.counts[at, k])
                    for k, kind in enumerate(KINDS)
                    if kind in cluster.records.collected
                },
                why,
                in_group.get(node),
                in_fault.get(node),
                doubt.one_user,
                doubt.failing_days,
                quiet_days.get(at),
            )
        )
    return replace(cluster, nodes=tuple(judged))


@dataclass(frozen=True)
class _Doubt:
    """Why a node that stands out may be none to drain, and how many further failures settle it."""

    why: str
    failing_days: int | None = None
    one_user: OneUser | None = None


def _doubts(evidence: _Evidence, rejected: Bools, line: float) -> dict[int, _Doubt]:
    """Nodes that stand out by one thing alone, and by which."""
    records, found = evidence.cluster.records, evidence.cluster.found
    places = np.flatnonzero(rejected)
    doubts: dict[int, _Doubt] = {}
    users = Users.of(records, found)
    for at, k in _still(evidence, found.without_top_owner(), places, min(line, STRICT)).items():
        one_user = users.doubted(at)
        if one_user is not None:
            doubts[at] = _Doubt("the jobs of one user may be the cause", k, one_user)
    tests = (
        (found, "stands out only by the users who exclude it"),
        (found.without_top_user(), "stands out only by the jobs of one user, or by checks alone"),
        (found.worst_week_as_one(), "stands out only by one week"),
    )
    for kept, why in tests:
        for at, k in _still(evidence, kept, places, STILL).items():
            doubts.setdefault(at, _Doubt(why, k))
    return doubts


def _still(evidence: _Evidence, kept: Episodes, places: Ints, most: float) -> dict[int, int | None]:
    """Nodes of which what is left is chance, and the further failed jobs with which it is not."""
    counts = kept.counts(len(evidence.p))[places]
    more = np.zeros((MOST_FAILING + 1, 1, len(KINDS)), dtype=np.int64)
    more[:, 0, 0] = np.arange(MOST_FAILING + 1)
    p = _tails(evidence, (counts + more).reshape(-1, len(KINDS)), np.tile(places, len(more)))
    clear = p.reshape(len(more), len(places)) <= most
    found: dict[int, int | None] = {}
    for column, at in enumerate(places.tolist()):
        if not clear[0, column]:
            found[at] = int(clear[:, column].argmax()) or None
    return found


def _quiet_days(evidence: _Evidence, rejected: Bools, line: float) -> dict[int, int]:
    """Days after which each node no longer stands out, as its records leave the window."""
    found = evidence.cluster.found
    quiet: dict[int, int] = {}
    for at in np.flatnonzero(rejected).tolist():
        mine = found.where(found.place == at)
        left = [mine.where(mine.day >= day).counts(len(evidence.p))[at] for day in mine.day]
        counts = np.array([*left[1:], np.zeros(len(KINDS), dtype=np.int64)])
        p = _tails(evidence, counts, np.full(len(counts), at))
        quiet[at] = int(np.ceil(mine.day[int((p > line).argmax())])) if len(mine.day) else 0
    return quiet


def _tails(evidence: _Evidence, counts: Ints, places: Ints) -> Floats:
    """Chances that the nodes at these places have so many occasions were they healthy."""
    own, usual = slice(0, len(KINDS)), evidence.cluster.usual
    return tail(counts, usual.mean[places, own], evidence.weight[own], usual.variance)
