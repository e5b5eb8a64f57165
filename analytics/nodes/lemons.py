"""Which nodes are lemons: they have more against them than chance and their exposure explain."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy import special

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate
from analytics.nodes.chance import Expected, discoveries, expected, mean_counts, tail, weights
from analytics.nodes.episodes import KINDS, episodes
from analytics.nodes.records import EXPOSURES
from analytics.nodes.shared_faults import bad_groups, struck_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from analytics.arrays import Bools, Floats, Ints
    from analytics.nodes.episodes import Episodes
    from analytics.nodes.records import NodeRecords
    from analytics.nodes.shared_faults import BadGroup

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


LEAST_RATIO: Final = 2.0
MOST_RATIO: Final = 200.0
"""Between these the rates of lemons are spread evenly in their logarithm."""
GRID: Final = np.geomspace(0.02, MOST_RATIO, 200)
STEPS: Final = 50


@dataclass(frozen=True)
class Ratios:
    """What is known of each node's rate over that of a healthy node of the same exposure.

    Attributes
    ----------
    posterior
        Probability of each ratio of `GRID`, shape (nodes, ratios).
    lemon_share
        Share of nodes that are not healthy.
    n
        Occasions of each node.
    """

    posterior: Floats
    lemon_share: float
    n: Ints

    def estimates(self, conf_level: float) -> list[Estimate]:
        """Mean and interval of each node."""
        below, means = self.posterior.cumsum(axis=1), self.posterior @ GRID
        tails = ((1 - conf_level) / 2, (1 + conf_level) / 2)
        lower, upper = (
            GRID[np.minimum((below < tail).sum(axis=1), len(GRID) - 1)] for tail in tails
        )
        columns = (means, np.minimum(lower, means), np.maximum(upper, means), self.n)
        return [
            Estimate(mean, low, high, conf_level, n)
            for mean, low, high, n in zip(*(column.tolist() for column in columns), strict=True)
        ]


def rate_ratios(n: Ints, mean: Floats, variance: float) -> Ratios:
    """Ratio of each node, by empirical Bayes.

    .. math:: n_i \\sim Poisson(\\lambda_i E_i), \\quad
        \\lambda \\sim (1 - \\pi) \\Gamma(1 / v, 1 / v) + \\pi\\, U(\\log 2, \\log 200)

    The share pi of lemons is found by maximum likelihood over all nodes (EM); how far their rates
    lie above is left open. A few occasions of an else healthy node are so drawn towards 1, and
    those of a lemon are not.

    Parameters
    ----------
    n
        Occasions by node.
    mean
        Expected ones of a healthy node, >= 0.
    variance
        Of the rates of healthy nodes.
    """
    shape = 1 / variance
    healthy = np.exp(shape * np.log(GRID) - shape * GRID - special.gammaln(shape))
    lemon = ((GRID >= LEAST_RATIO) & (GRID <= MOST_RATIO)).astype(np.float64)
    healthy, lemon = healthy / healthy.sum(), lemon / lemon.sum()
    counts, rate = n[:, None], np.maximum(mean, 1e-9)[:, None] * GRID
    log_likely = counts * np.log(rate) - rate
    likely = np.exp(log_likely - log_likely.max(axis=1, keepdims=True))
    of_healthy, of_lemon = likely @ healthy, likely @ lemon
    share = 0.01
    for _ in range(STEPS):
        chance = share * of_lemon / (share * of_lemon + (1 - share) * of_healthy)
        share = float(chance.mean()) if len(chance) else share
    prior = (1 - share) * healthy + share * lemon
    posterior = likely * prior
    return Ratios(posterior / posterior.sum(axis=1, keepdims=True), share, n)


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


def lemons(
    records: Sequence[NodeRecords], *, conf_level: float = CONF_LEVEL
) -> list[JudgedCluster]:
    """Verdicts on all nodes of some clusters.

    Each node gets the chance p that a healthy node of the same exposure has as much against it, by
    the weights of its occasions (`tail`); its score is -log10 p. All nodes of all
    clusters are held together against the false-discovery rate `LEVEL`. One that stands out is a
    lemon where it still would (p <= 0.03) if its worst seven days were one occasion, without the
    jobs of the one user whom it cost most or health checks that end nothing, and always without
    those who exclude it, who may do so on hearsay; else it is to be watched. A node without a
    record and without a job is unknown; it counts among those tested, for it could have had one.

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
    ends = np.cumsum([len(of_cluster.p) for of_cluster in evidence])
    return [
        _judged(of_cluster, rejected, conf_level)
        for of_cluster, rejected in zip(evidence, np.split(out, ends[:-1]), strict=True)
    ]


def _evidence(records: NodeRecords) -> _Evidence:
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
    fronts = front_ends(kept.nodes, _out_days(kept), p <= LEVEL)
    known[list(fronts)] = False
    if fronts:
        serves = np.isin(np.arange(n), list(fronts))[:, None]
        usual = _usual(np.where(serves, 0, counts), np.where(serves, 0.0, exposure))
    own = slice(0, len(KINDS))
    groups = bad_groups(kept.cluster, kept.nodes, found, usual.mean[:, own].sum(axis=1), LEVEL)
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


def _weights(usual: Expected, known: Bools) -> list[Ints]:
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


def _judged(evidence: _Evidence, rejected: Bools, conf_level: float) -> JudgedCluster:
    """The cluster with a verdict for each node."""
    cluster = evidence.cluster
    doubts = _doubts(evidence, rejected)
    nodes = cluster.records.nodes["node"].tolist()
    ratios = cluster.ratios.estimates(conf_level)
    in_group = {node: group for group in cluster.groups for node in group.nodes}
    judged = []
    for at, node in enumerate(nodes):
        verdict: Verdict = "fine"
        why = doubts.get(at, "")
        if at in evidence.fronts:
            verdict, why = "front end", evidence.fronts[at]
        elif not evidence.known[at]:
            verdict, why = "unknown", "no record and no job in the window"
        elif rejected[at]:
            verdict = "watch" if why else "lemon"
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
            )
        )
    return JudgedCluster(
        cluster.records, cluster.found, cluster.usual, cluster.ratios, cluster.groups,
        cluster.n_at_once, tuple(judged),
    )  # fmt: skip


def _doubts(evidence: _Evidence, rejected: Bools) -> dict[int, str]:
    """Nodes that stand out by one thing alone, and by which."""
    cluster, found = evidence.cluster, evidence.cluster.found
    places = np.flatnonzero(rejected)
    own = slice(0, len(KINDS))
    tests = (
        (found, "stands out only by the users who exclude it"),
        (found.without_top_user(), "stands out only by the jobs of one user, or by checks alone"),
        (found.worst_week_as_one(), "stands out only by one week"),
    )
    doubts: dict[int, str] = {}
    for kept, why in tests:
        counts = kept.counts(len(evidence.p))[places]
        p = tail(
            counts, cluster.usual.mean[places, own], evidence.weight[own], cluster.usual.variance
        )
        for at in places[p > STILL].tolist():
            doubts.setdefault(at, why)
    return doubts
