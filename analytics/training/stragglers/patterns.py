"""How a job straggles: when over its steps, and where over its workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from analytics.training.stragglers.arrays import median
from analytics.training.stragglers.slowdown import STRAGGLING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.training.stragglers.slowdown import Slowdowns

    Times: TypeAlias = NDArray[np.float64]

LEAST_SIDE: Final = 3
"""Steps before and after an onset, at least."""
LEAST_RISE: Final = 0.03
"""Rise of the step time, over that before, for an onset."""
SIGNIFICANT: Final = 6.0
"""Standard errors of a rise for an onset: the step is the likeliest of all."""


@dataclass(frozen=True)
class Onset:
    """A step from which on steps take longer."""

    step: int
    """First of the longer steps."""
    rise_ratio: float
    """Mean step time from there on over that before, less 1."""


@dataclass(frozen=True)
class Concentration:
    """How unevenly slowdown is spread over parts of a job."""

    n_parts: int
    gini: float | None
    """0 where all are alike, (n - 1) / n where one has all; None where there is none at all."""
    top: tuple[int, ...]
    """The part with most: (dp_rank, stage), (dp_rank,) or (stage,)."""
    top_share_ratio: float | None
    """Its share of all; None where there is none."""


@dataclass(frozen=True)
class StragglerPatterns:
    """When over its steps, and where over its workers, a job straggles."""

    autocorrelation: float | None
    """Correlation of a step's S with that of the next traced one; None where nothing varies."""
    straggling_steps_ratio: float
    """Share of steps whose S exceeds 1.1."""
    onset: Onset | None
    """Where slowness begins; None where it is there throughout, comes and goes, or is absent."""
    workers: Concentration
    dp_ranks: Concentration
    stages: Concentration


def patterns(slow: Slowdowns) -> StragglerPatterns:
    """When and where a job straggles.

    Over steps by S of each step, over workers, ranks and stages by what each alone costs (S_w
    exact, S_dp, S_pp). Stages differ by design as well, and of a slow stage every rank has its
    share: a low Gini over ranks and a high one over stages.
    """
    return StragglerPatterns(
        autocorrelation=autocorrelation(slow.step_slowdown),
        straggling_steps_ratio=float((slow.step_slowdown > STRAGGLING).mean()),
        onset=onset(slow.steps, slow.original_seconds),
        workers=concentration(slow.by_worker_exact - 1.0),
        dp_ranks=concentration(slow.by_dp - 1.0),
        stages=concentration(slow.by_stage - 1.0),
    )


def node_concentration(
    slow: Slowdowns, node_of: Mapping[tuple[int, int], str]
) -> tuple[str, Concentration] | None:
    """The node whose workers cost most by themselves, and how unevenly nodes do.

    Parameters
    ----------
    slow
        Slowdowns of the job.
    node_of
        Node of each worker (dp_rank, stage); None is returned where it names none.
    """
    names = sorted(set(node_of.values()))
    if not names:
        return None
    excess = dict.fromkeys(names, 0.0)
    for worker, name in node_of.items():
        excess[name] += max(float(slow.by_worker_exact[worker]) - 1.0, 0.0)
    spread = concentration(np.array(list(excess.values())))
    return names[spread.top[0]], spread


def concentration(excess: Times) -> Concentration:
    """Gini coefficient and top share of non-negative amounts.

    .. math:: G = \\frac{2 \\sum_i i x_{(i)}}{n \\sum_i x_i} - \\frac{n + 1}{n}

    with x_(i) the i-th smallest of n amounts; negative ones count as 0.

    Examples
    --------
    >>> spread = concentration(np.array([0.0, 0.0, 0.0, 0.4]))
    >>> spread.gini, spread.top, spread.top_share_ratio
    (0.75, (3,), 1.0)
    """
    amounts = np.maximum(excess, 0.0)
    flat, n, total = np.sort(amounts, axis=None), amounts.size, float(amounts.sum())
    top = tuple(int(at) for at in np.unravel_index(int(amounts.argmax()), amounts.shape))
    if total <= 0:
        return Concentration(n, None, top, None)
    places = np.arange(1, n + 1)
    gini = 2.0 * float((places * flat).sum()) / (n * total) - (n + 1) / n
    return Concentration(n, gini, top, float(flat[-1]) / total)


def autocorrelation(values: Times) -> float | None:
    """Correlation of each value with the next, None of fewer than four or of equal ones.

    Examples
    --------
    >>> autocorrelation(np.array([1.0, -1.0, 1.0, -1.0]))
    -0.75
    """
    gap = values - values.mean()
    variance = float((gap**2).sum())
    if len(values) < LEAST_SIDE + 1 or variance <= len(values) * 1e-24 * float(values.mean()) ** 2:
        return None
    return float((gap[1:] * gap[:-1]).sum()) / variance


def onset(steps: NDArray[np.int64], seconds: Times) -> Onset | None:
    """The step from which on steps take longer, by the best division of them in two.

    The division that leaves the least squares within both parts, where at least three steps lie on
    each side, the mean rises by 3 % or more and by 6 standard errors, of which the standard
    deviation is that of differences between neighbours (so that a slow drift is no onset).

    Examples
    --------
    >>> onset(np.arange(8), np.array([1.0, 1.01, 1.0, 1.01, 1.5, 1.51, 1.5, 1.51]))
    Onset(step=4, rise_ratio=0.497...)
    """
    n = len(seconds)
    if n < 2 * LEAST_SIDE:
        return None
    n_before = np.arange(LEAST_SIDE, n - LEAST_SIDE + 1)
    sums = np.cumsum(seconds)
    before = sums[n_before - 1] / n_before
    after = (sums[-1] - sums[n_before - 1]) / (n - n_before)
    weight = n_before * (n - n_before) / n
    at = int((weight * (after - before) ** 2).argmax())
    rise = float(after[at] - before[at])
    noise = float(median(np.abs(np.diff(seconds)))) * 1.4826 / np.sqrt(2.0)
    if rise < LEAST_RISE * before[at] or rise < SIGNIFICANT * noise / np.sqrt(weight[at]):
        return None
    first = int(steps[n_before[at]])
    return Onset(first, rise / float(before[at]))
