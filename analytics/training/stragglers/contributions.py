"""What fixing a part of a job gives, as a share of what fixing all of it gives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from analytics.training.stragglers.scenarios import Workers
from analytics.training.stragglers.simulation import simulate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.training.stragglers.what_if import WhatIf

    Times: TypeAlias = NDArray[np.float64]

SLOWEST_RATIO: Final = 0.03
"""Share of workers that the paper calls the slowest."""


@dataclass(frozen=True)
class Contribution:
    """Mean step times, seconds, with and without a part of the job; each up to its last end."""

    original_seconds: float
    """Every operation takes its own cost."""
    ideal_seconds: float
    """Every operation takes its ideal cost."""
    fixed_seconds: float
    """Those of the part take their ideal cost, all others their own."""
    kept_seconds: float | None = None
    """Those of the part take their own cost, all others the ideal one; None where not asked."""

    @property
    def fixed_ratio(self) -> float | None:
        """(T - T_fix) / (T - T_ideal): share of the loss that fixing the part recovers.

        Neither kept above 0 nor below 1 (ideal computes are the mean, which the part may raise or
        lower); None where there is no loss.

        Examples
        --------
        >>> Contribution(3.0, 2.0, 2.25).fixed_ratio
        0.75
        """
        return self._share(self.original_seconds - self.fixed_seconds)

    @property
    def kept_ratio(self) -> float | None:
        """(T_keep - T_ideal) / (T - T_ideal): share of the loss that the part alone makes."""
        if self.kept_seconds is None:
            return None
        return self._share(self.kept_seconds - self.ideal_seconds)

    def _share(self, seconds: float) -> float | None:
        loss = self.original_seconds - self.ideal_seconds
        return seconds / loss if loss else None


@dataclass(frozen=True)
class WorkerCurve:
    """What fixing the k slowest workers gives, for growing k."""

    order: NDArray[np.int64]
    """(dp_rank, stage) of all workers, S_w descending, ties by stage, then dp_rank."""
    points: dict[int, Contribution]
    """By k: 1, 2, 4, 8, ... and the paper's number of workers, up to half of all."""
    n_slowest: int
    """3 % of the workers, rounded up."""

    @property
    def slowest(self) -> Contribution:
        """The paper's M_W (equation 5)."""
        return self.points[self.n_slowest]


def worker_curve(model: WhatIf, by_worker: Times, *, original: float, ideal: float) -> WorkerCurve:
    """What fixing the slowest workers gives.

    Parameters
    ----------
    by_worker
        S_w of each worker, (ranks, stages).
    original, ideal
        Mean step times with all own and with all ideal costs, seconds.
    """
    n_dp, n_stages = by_worker.shape
    dp, stage = (at.ravel() for at in np.meshgrid(range(n_dp), range(n_stages), indexing="ij"))
    place = np.lexsort((dp, stage, -by_worker.ravel()))
    order = np.stack((dp[place], stage[place]), axis=1)
    n_slowest = math.ceil(SLOWEST_RATIO * len(order))
    doubling = {1 << power for power in range(len(order).bit_length())}
    numbers = sorted({k for k in doubling if 2 * k <= len(order)} | {n_slowest})
    masks = np.zeros((len(numbers) + 1, n_dp, n_stages), dtype=np.bool_)
    for mask, k in zip(masks, [*numbers, n_slowest], strict=True):
        mask[order[:k, 0], order[:k, 1]] = True
    masks[:-1] = ~masks[:-1]  # all but the last say what is fixed
    batch = Workers(masks, n_steps=len(model.trace.steps))
    last = simulate(model.plan, model.costs, batch).last.max(axis=-1)
    seconds = last.mean(axis=-1).tolist()
    points = {
        k: Contribution(original, ideal, fixed, seconds[-1] if k == n_slowest else None)
        for k, fixed in zip(numbers, seconds[:-1], strict=True)
    }
    return WorkerCurve(order, points, n_slowest)
