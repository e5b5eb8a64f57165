"""Which nodes' benchmark results fall short of the fleet's, by similarity of distributions."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy import special

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.estimate import CONF_LEVEL, Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.arrays import Floats


SIMILARITY: Final = 0.95
"""Similarity below which a result is regressed, where the fleet is no wider."""
FENCE: Final = 4.5
"""Deviations below the fleet's usual similarity from which a result is regressed at all."""
MAD: Final = 1.4826
LEAST_NODES: Final = 5
"""Nodes below which there is no fleet to compare with."""
MOST_POINTS: Final = 64
"""Quantiles by which a result is known."""
CENTRES: Final = 15
"""Nodes nearest to the median of all that are tried as the centre."""
ROUNDS: Final = 10
_LOWER = re.compile(
    r"(^|[/_\-:.])(lat|latency|overhead|cost|delay|duration)([/_\-:.]|$)|time", re.I
)
_HIGHER = re.compile(
    r"(^|[/_\-:.])(\w*bw|bandwidth|\w*flops|throughput|iops|write|read|h2d|d2h|htod|dtoh|dtod|fp\d+\w*"
    r"|tf\d+\w*|bf\d+\w*|int\d+\w*)([/_\-:.]|$)",
    re.IGNORECASE,
)
Better = Literal["higher", "lower", "unknown"]


@dataclass(frozen=True)
class Regression:
    """One metric of one node that falls short of the fleet's."""

    node: str
    metric: str
    better: Better
    similarity: float
    """To the fleet's centre, in [0, 1]; only what is worse counts, where the better is known."""
    threshold: float
    """Below which it is regressed."""
    ratio: Estimate
    """Mean of the node over the fleet's centre; n = its samples."""
    n_nodes: int
    """Nodes with this metric."""


@dataclass(frozen=True)
class Criterion:
    """What one metric is judged by."""

    metric: str
    better: Better
    centre: float
    """Mean of the result that is most like all others."""
    threshold: float
    repeatability: float
    """Mean similarity of the nodes that are not regressed to the centre."""
    n_nodes: int


@dataclass(frozen=True)
class Regressions:
    """What results of benchmarks say of nodes."""

    found: tuple[Regression, ...]
    """Least similar first."""
    criteria: tuple[Criterion, ...]
    nodes: tuple[str, ...]
    """All nodes with a result."""
    failed: Mapping[str, tuple[str, ...]]
    """Node -> benchmarks that ended with an error."""
    too_few: tuple[str, ...]
    """Metrics of fewer than five nodes: not judged."""

    @property
    def regressed(self) -> tuple[str, ...]:
        """Nodes with a regressed metric or a failed benchmark, the worst first."""
        return tuple(dict.fromkeys([*self.failed, *(each.node for each in self.found)]))


def better_of(metric: str) -> Better:
    """Whether more is better, by the words of a metric's name.

    >>> better_of("mem-bw/h2d_bw"), better_of("kernel-launch/event_time"), better_of("x/y")
    ('higher', 'lower', 'unknown')
    """
    benchmark, _, name = metric.partition("/")
    for part in (name, benchmark):
        if _LOWER.search(part):
            return "lower"
        if _HIGHER.search(part):
            return "higher"
    return "unknown"


def similarity(one: Floats, other: Floats, better: Better = "unknown") -> float:
    """How alike two results are: 1 for the same distribution, 0 for nothing in common.

    .. math:: s = 1 - \\frac{\\int |F(x) - G(x)| dx}{\\int \\max(1 - F(x), 1 - G(x)) dx}

    with F and G the empirical distributions of samples >= 0. Of single values it is the smaller
    over the larger. Where the better direction is known, only where `one` is worse counts.

    References
    ----------
    Xiong, Y. et al. (2024). SuperBench: Improving Cloud AI Infrastructure Reliability with
    Proactive Validation. arXiv 2402.06194: one minus a normalised distance of distributions. The
    norm is ours.

    Examples
    --------
    >>> import numpy as np
    >>> similarity(np.array([95.0]), np.array([100.0]))
    0.95
    >>> similarity(np.array([105.0]), np.array([100.0]), "higher")
    1.0
    """
    points = _points([one, other])
    return float(_similar(points[:1], points[1], better)[0])


def regressions(
    results: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    least_similarity: float = SIMILARITY,
    conf_level: float = CONF_LEVEL,
) -> Regressions:
    """Nodes whose results are unlike the fleet's, metric by metric.

    The centre is the result most similar to all others. A node is regressed where its similarity
    to the centre is below `least_similarity`, and below what lies 4.5 deviations (MAD) under the
    fleet's usual similarity, so that a metric that scatters by itself flags nobody. Regressed
    nodes are left out and the centre is found again until nothing changes.

    Parameters
    ----------
    results
        Node -> metric -> samples (of its GPUs, of repeated runs); NaN are left out. A metric
        `.../return_code` other than 0 is a failed benchmark. Metrics with values below 0, or
        whose centre is 0, are not judged.
    least_similarity : float
        In (0, 1).
    conf_level : float
        In (0, 1), of the interval of a node's mean over the centre.

    Raises
    ------
    OutOfRangeError
        For a similarity or a level outside (0, 1).

    References
    ----------
    Xiong, Y. et al. (2024). arXiv 2402.06194.
    """
    validate.conf_level(conf_level)
    if not 0 < least_similarity < 1:
        raise OutOfRangeError("similarity", "in (0, 1)", least_similarity, "pass e.g. 0.95")
    by_metric: dict[str, dict[str, Floats]] = {}
    failed: dict[str, tuple[str, ...]] = {}
    for node, metrics in results.items():
        for metric, values in metrics.items():
            samples = np.asarray(values, dtype=np.float64)
            samples = samples[np.isfinite(samples)]
            if metric.endswith("return_code"):
                if (samples != 0).any():
                    failed[node] = (*failed.get(node, ()), metric.rpartition("/")[0])
            elif len(samples):
                by_metric.setdefault(metric, {})[node] = samples
    found: list[Regression] = []
    criteria: list[Criterion] = []
    for metric, of_node in by_metric.items():
        if len(of_node) < LEAST_NODES or min(each.min() for each in of_node.values()) < 0:
            continue
        judged = _judged(metric, of_node, least_similarity, conf_level)
        if judged is not None:
            criteria.append(judged[0])
            found.extend(judged[1])
    too_few = tuple(sorted(m for m, of in by_metric.items() if len(of) < LEAST_NODES))
    found.sort(key=lambda each: each.similarity)
    return Regressions(tuple(found), tuple(criteria), tuple(results), failed, too_few)


def _judged(
    metric: str, of_node: Mapping[str, Floats], least: float, conf_level: float
) -> tuple[Criterion, list[Regression]] | None:
    """The criterion of a metric and who falls below it; None where the centre is 0."""
    nodes, better, points = list(of_node), better_of(metric), _points(list(of_node.values()))
    kept = np.ones(len(nodes), dtype=bool)
    for _ in range(ROUNDS):
        centre = _centre(points[kept])
        if not centre.mean() > 0:
            return None
        alike = _similar(points, centre, "unknown")
        usual = float(np.median(alike[kept]))
        spread = MAD * float(np.median(np.abs(alike[kept] - usual)))
        threshold = min(least, usual - FENCE * spread)
        worse = _similar(points, centre, better)
        still = worse >= threshold
        if (still == kept).all() or still.sum() < LEAST_NODES:
            break
        kept = still
    criterion = Criterion(
        metric, better, float(centre.mean()), threshold, float(alike[kept].mean()), len(nodes)
    )
    regressed = [
        Regression(
            nodes[at],
            metric,
            better,
            float(worse[at]),
            threshold,
            _ratio(of_node[nodes[at]] / centre.mean(), conf_level),
            len(nodes),
        )
        for at in np.flatnonzero(worse < threshold)
    ]
    return criterion, regressed


def _points(results: Sequence[Floats]) -> Floats:
    """Each result by as many quantiles as the longest has samples, 64 at most."""
    n = min(MOST_POINTS, max(map(len, results)))
    places = (np.arange(n) + 0.5) / n
    return np.stack([np.quantile(each, places, method="inverted_cdf") for each in results])


def _similar(points: Floats, centre: Floats, better: Better) -> Floats:
    """Similarity of each result to the centre; integrals over x are means over quantiles."""
    apart = points - centre
    if better == "higher":
        worse = np.maximum(-apart, 0)
    elif better == "lower":
        worse = np.maximum(apart, 0)
    else:
        worse = np.abs(apart)
    whole = np.maximum(points, centre).mean(axis=1)
    found: Floats = 1 - worse.mean(axis=1) / np.where(whole > 0, whole, 1)
    return found


def _centre(points: Floats) -> Floats:
    """The result most similar to all others, of those nearest to the median of all."""
    near = np.argsort(-_similar(points, np.median(points, axis=0), "unknown"))[:CENTRES]
    means = [_similar(points, points[at], "unknown").mean() for at in near]
    centre: Floats = points[near[int(np.argmax(means))]]
    return centre


def _ratio(ratios: Floats, conf_level: float) -> Estimate:
    """Mean ratio with Student's interval; unknown bounds for one sample."""
    n, mean = len(ratios), float(ratios.mean())
    if n < 2:
        return Estimate(mean, None, None, conf_level, n)
    error = float(special.stdtrit(n - 1, (1 + conf_level) / 2) * ratios.std(ddof=1)) / math.sqrt(n)
    return Estimate(mean, mean - error, mean + error, conf_level, n)
