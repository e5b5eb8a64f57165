"""Which nodes are lemons: they have more against them than chance and their exposure explain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from analytics import validate
from analytics.estimate import CONF_LEVEL
from analytics.nodes.episodes import KINDS, episodes
from analytics.nodes.expected import Expected, expected, mean_counts
from analytics.nodes.front_ends import front_ends
from analytics.nodes.rate_ratio import rate_ratios
from analytics.nodes.records import EXPOSURES
from analytics.nodes.shared_faults import bad_groups, struck_at_once
from analytics.nodes.tail import discoveries, tail, weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.estimate import Estimate
    from analytics.nodes.episodes import Episodes
    from analytics.nodes.rate_ratio import Ratios
    from analytics.nodes.records import NodeRecords
    from analytics.nodes.shared_faults import BadGroup

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

Verdict = Literal["lemon", "watch", "fine", "front end", "unknown"]
MOST_EXCLUDERS: Final = 4
LEVEL: Final = 0.1
"""Share of false ones that is expected on the list at most."""
STILL: Final = 0.03
"""Largest chance of what is left of a lemon without what one week or one user explains."""


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


@dataclass(frozen=True)
class JudgedCluster:
    """What the verdicts of one cluster rest on, node by node as in its records."""

    records: NodeRecords
    """Without what struck many nodes at once."""
    found: Episodes
    usual: Expected
    """With the ratios of bad groups in the means."""
    ratios: Ratios
    groups: tuple[BadGroup, ...]
    n_at_once: int
    nodes: tuple[JudgedNode, ...] = field(default=())

    @property
    def lemons(self) -> NDArray[np.bool_]:
        """Which nodes are lemons."""
        return np.array([each.verdict == "lemon" for each in self.nodes], dtype=bool)


@dataclass(frozen=True)
class _Evidence:
    """Chances of one cluster, before they are held against those of all."""

    cluster: JudgedCluster
    counts: Ints
    fronts: dict[int, str]
    known: NDArray[np.bool_]
    weight: list[Ints]
    p: Floats


def lemons(
    records: Sequence[NodeRecords], *, level: float = LEVEL, conf_level: float = CONF_LEVEL
) -> list[JudgedCluster]:
    """Verdicts on all nodes of some clusters.

    Each node gets the chance p that a healthy node of the same exposure has as much against it, by
    the weights of its occasions (`tail`); its score is -log10 p. All nodes of all
    clusters are held together against the false-discovery rate `level`. One that stands out is a
    lemon where it still would (p <= 0.03) if its worst seven days were one occasion, without the
    jobs of the one user whom it cost most or health checks that end nothing, and always without
    those who exclude it, who may do so on hearsay; else it is to be watched. A node without a
    record and without a job is unknown; it counts among those tested, for it could have had one.

    Parameters
    ----------
    records
        One a cluster.
    level : float
        In (0, 1).
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
    validate.conf_level(level)
    validate.conf_level(conf_level)
    evidence = [_evidence(each, level) for each in records if len(each.nodes)]
    if not evidence:
        return []
    out = discoveries(np.concatenate([each.p for each in evidence]), level)
    ends = np.cumsum([len(each.p) for each in evidence])
    return [
        _judged(each, rejected, conf_level)
        for each, rejected in zip(evidence, np.split(out, ends[:-1]), strict=True)
    ]


def _evidence(records: NodeRecords, level: float) -> _Evidence:
    """What one cluster shows by itself."""
    struck = struck_at_once(records.events, records.days)
    kept = records.without(struck)
    found, n = episodes(kept), len(kept.nodes)
    counts = np.column_stack([found.counts(n), _excluders(kept)])
    exposure = kept.nodes[list(EXPOSURES)].to_numpy(dtype=np.float64)
    total = counts.sum(axis=1)
    known = (total > 0) | (exposure[:, 1:].sum(axis=1) > 0) & bool(kept.collected)
    usual = _usual(counts, exposure)
    p = tail(counts, usual.mean, _weights(usual, known), usual.variance)
    fronts = front_ends(kept.nodes, _out_days(kept), p <= level)
    known[list(fronts)] = False
    if fronts:
        serves = np.isin(np.arange(n), list(fronts))[:, None]
        usual = _usual(np.where(serves, 0, counts), np.where(serves, 0.0, exposure))
    own = slice(0, len(KINDS))
    groups = bad_groups(kept.cluster, kept.nodes, found, usual.mean[:, own].sum(axis=1), level)
    mean = usual.mean * _group_ratio(groups, kept)[:, None]
    weight = _weights(usual, known)
    if fronts or groups:
        p = tail(counts, mean, weight, usual.variance)
    p = np.where(known, p, 1.0)
    ratios = rate_ratios(counts[:, own].sum(axis=1), mean[:, own].sum(axis=1), usual.variance)
    cluster = JudgedCluster(
        kept, found, Expected(mean, usual.variance), ratios, tuple(groups), int(struck.sum())
    )
    return _Evidence(cluster, counts, fronts, known, weight, p)


def _weights(usual: Expected, known: NDArray[np.bool_]) -> list[Ints]:
    """What occasions weigh on the nodes that are judged."""
    judged = usual.mean[known] if known.any() else usual.mean
    return weights(judged.mean(axis=0))


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


def _judged(each: _Evidence, rejected: NDArray[np.bool_], conf_level: float) -> JudgedCluster:
    """The cluster with a verdict for each node."""
    cluster = each.cluster
    doubts = _doubts(each, rejected)
    nodes = cluster.records.nodes["node"].tolist()
    ratios = cluster.ratios.estimates(conf_level)
    in_group = {node: group for group in cluster.groups for node in group.nodes}
    judged = []
    for at, node in enumerate(nodes):
        verdict: Verdict = "fine"
        why = doubts.get(at, "")
        if at in each.fronts:
            verdict, why = "front end", each.fronts[at]
        elif not each.known[at]:
            verdict, why = "unknown", "no record and no job in the window"
        elif rejected[at]:
            verdict = "watch" if why else "lemon"
        judged.append(
            JudgedNode(
                cluster.records.cluster,
                node,
                verdict,
                abs(float(np.log10(each.p[at]))) if each.known[at] else None,
                ratios[at] if each.known[at] else None,
                float(cluster.usual.mean[at, : len(KINDS)].sum()),
                {
                    kind: int(each.counts[at, k])
                    for k, kind in enumerate(KINDS)
                    if kind in cluster.records.collected
                },
                why,
                in_group.get(node),
            )
        )
    return JudgedCluster(
        cluster.records, cluster.found, cluster.usual, cluster.ratios, cluster.groups,
        cluster.n_at_once, tuple(judged),
    )  # fmt: skip


def _doubts(each: _Evidence, rejected: NDArray[np.bool_]) -> dict[int, str]:
    """Nodes that stand out by one thing alone, and by which."""
    cluster, found = each.cluster, each.cluster.found
    places = np.flatnonzero(rejected)
    own = slice(0, len(KINDS))
    tests = (
        (found, "stands out only by the users who exclude it"),
        (found.without_top_user(), "stands out only by the jobs of one user, or by checks alone"),
        (found.worst_week_as_one(), "stands out only by one week"),
    )
    doubts: dict[int, str] = {}
    for kept, why in tests:
        counts = kept.counts(len(each.p))[places]
        p = tail(counts, cluster.usual.mean[places, own], each.weight[own], cluster.usual.variance)
        for at in places[p > STILL].tolist():
            doubts.setdefault(at, why)
    return doubts
