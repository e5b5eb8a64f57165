"""Stragglers over all traced jobs: how many straggle, and what share of GPU-hours they waste."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.estimate import Estimate, unknown
from analytics.proportion import proportion
from analytics.training.stragglers.operations import quantiles
from analytics.training.stragglers.slowdown import LARGEST_ERROR, STRAGGLING

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

QUANTILES: Final = (0.5, 0.9, 0.99)
PUBLISHED_QUANTILES: Final = {0.5: 7.8, 0.9: 21.3, 0.99: 45.0}
"""Wasted share of a job (%) at these quantiles, of the 3,079 jobs of Lin et al."""
PUBLISHED_STRAGGLING, PUBLISHED_WASTED = 42.5, 10.4
"""Share of these jobs that straggle, and of their GPU-hours that stragglers waste (%)."""
RESAMPLES: Final = 2000


@dataclass(frozen=True)
class CauseShare:
    """Straggling jobs by their strongest cause."""

    cause: str
    """`unknown` where none is stored with the trace."""
    ratio: Estimate
    """Share of the straggling traces; n = these."""
    n_traces: int
    mean_slowdown: float


@dataclass(frozen=True)
class WastedDistribution:
    """What share of traces wastes at most so much; all traces of known slowdown."""

    wasted_ratio: NDArray[np.float64]
    """Wasted share of each trace, ascending."""
    traces_ratio: NDArray[np.float64]
    """Share of traces up to it."""

    @classmethod
    def of(cls, wasted: ArrayLike) -> WastedDistribution:
        """The distribution of wasted shares in any order.

        Examples
        --------
        >>> WastedDistribution.of([0.2, 0.1]).traces_ratio.tolist()
        [0.5, 1.0]
        """
        ordered = np.sort(np.asarray(wasted, dtype=np.float64))
        return cls(ordered, np.arange(1, len(ordered) + 1) / max(len(ordered), 1))


@dataclass(frozen=True)
class StragglerFleet:
    """Stragglers over many traces, each of one job in some of its steps."""

    n_traces: int
    """Traces counted."""
    n_inaccurate: int
    """Traces left out: the simulation is more than 5 % off."""
    n_without_gpu_hours: int
    """Traces counted whose run's GPU-hours are unknown: they are not in `wasted_ratio`."""
    straggling_ratio: Estimate
    """Share of traces with S above 1.1; n = traces."""
    wasted_ratio: Estimate
    """Share of the GPU-hours of traced runs that stragglers wasted; n = traces."""
    wasted_gpu_hours: Estimate
    """The same in GPU-hours."""
    quantiles: dict[float, Estimate]
    """Wasted share of a trace, 1 - 1 / S, by quantile."""
    by_cause: tuple[CauseShare, ...]
    """Of straggling traces, most frequent first."""
    distribution: WastedDistribution


def straggler_fleet(traces: pd.DataFrame, *, conf_level: float = 0.90) -> StragglerFleet:
    """Share of jobs that straggle, of GPU-hours wasted, and of each cause.

    .. math:: w = \\frac{\\sum_i h_i (1 - 1 / S_i)}{\\sum_i h_i}

    with h_i the GPU-hours of the run of trace i and S_i its slowdown. What a trace shows in some
    steps is taken to hold for the whole run. Shares of traces have Clopper and Pearson's interval,
    quantiles that of order statistics (a bound that so few traces cannot give is None), w resamples
    traces (percentiles, seeded).

    Parameters
    ----------
    traces
        `slowdown`, `simulation_error_ratio` (NaN: taken as accurate), `gpu_hours` (NaN where
        unknown) and `cause` of each.
    conf_level
        In (0, 1).

    References
    ----------
    Lin et al., arXiv 2505.05713, section 4.
    """
    validate.conf_level(conf_level)
    inaccurate = traces["simulation_error_ratio"] > LARGEST_ERROR
    known = traces["slowdown"].notna()
    counted = traces[known & ~inaccurate]
    slowdown = counted["slowdown"].to_numpy(dtype=np.float64)
    wasted, hours = 1.0 - 1.0 / slowdown, counted["gpu_hours"].to_numpy(dtype=np.float64)
    weighed = hours > 0
    share = _weighted(wasted[weighed], hours[weighed], conf_level)
    total = float(hours[weighed].sum())
    return StragglerFleet(
        n_traces=len(counted),
        n_inaccurate=int((known & inaccurate).sum()),
        n_without_gpu_hours=int((~weighed).sum()),
        straggling_ratio=proportion(int((slowdown > STRAGGLING).sum()), len(counted), conf_level),
        wasted_ratio=share,
        wasted_gpu_hours=share.scaled(total),
        quantiles={q: _quantile(wasted, q, conf_level) for q in QUANTILES},
        by_cause=_by_cause(counted[counted["slowdown"] > STRAGGLING], conf_level),
        distribution=WastedDistribution.of(1.0 - 1.0 / traces.loc[known, "slowdown"]),
    )


def _weighted(wasted: NDArray[np.float64], hours: NDArray[np.float64], level: float) -> Estimate:
    """A mean weighted by GPU-hours; one trace has no interval."""
    n = len(wasted)
    if n == 0:
        return unknown(level, 0)
    value = float((hours * wasted).sum() / hours.sum())
    if n == 1:
        return Estimate(value, None, None, level, n)
    drawn = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    means = (hours * wasted)[drawn].sum(axis=1) / hours[drawn].sum(axis=1)
    lower, upper = quantiles(means, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Estimate(value, min(lower, value), max(upper, value), level, n)


def _quantile(values: NDArray[np.float64], q: float, level: float) -> Estimate:
    """A quantile between two order statistics, by the binomial number of values below it."""
    n = len(values)
    if n == 0:
        return unknown(level, 0)
    ordered, tail = np.sort(values), (1.0 - level) / 2.0
    below = special.bdtr(np.arange(n + 1), n, q)  # scipy.stats takes half a second to import
    low, high = np.searchsorted(below, [tail, 1.0 - tail]) - [1, 0]
    return Estimate(
        float(np.quantile(ordered, q, method="inverted_cdf")),
        float(ordered[low]) if low >= 0 else None,
        float(ordered[high]) if high < n else None,
        level,
        n,
    )


def _by_cause(straggling: pd.DataFrame, level: float) -> tuple[CauseShare, ...]:
    """Straggling traces by cause."""
    groups = straggling.assign(cause=straggling["cause"].fillna("unknown")).groupby("cause")
    shares = [
        CauseShare(
            str(cause),
            proportion(len(group), len(straggling), level),
            len(group),
            float(group["slowdown"].mean()),
        )
        for cause, group in groups
    ]
    return tuple(sorted(shares, key=lambda each: (-each.n_traces, each.cause)))
