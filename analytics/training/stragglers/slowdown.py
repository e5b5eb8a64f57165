"""How much faster a job would train without stragglers, and which of its parts make it slow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from analytics.errors import AnalysisError
from analytics.training.stragglers.launch import GATE, launch_slowdowns
from analytics.training.stragglers.simulation import Kept, Standard, simulate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.training.stragglers.alignment import DroppedStep
    from analytics.training.stragglers.launch import LaunchSlowdowns
    from analytics.training.stragglers.operations import Times
    from analytics.training.stragglers.simulation import Ends
    from analytics.training.stragglers.step_model import StepModel

STRAGGLING: Final = 1.1
"""Slowdown above which a job is said to straggle (Lin et al.)."""
LARGEST_ERROR: Final = 0.05
"""Simulation error above which a trace is left out, as Lin et al. do."""
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


class Worker(NamedTuple):
    """A worker and its label in the trace; None where the trace has none."""

    dp: int
    stage: int
    rank: int | None


@dataclass(frozen=True)
class SlowestWorkers:
    """What fixing the slowest workers gives, for several numbers of them."""

    workers: tuple[Worker, ...]
    """3 % of the workers, rounded up, S_w descending."""
    contribution: Contribution
    """What fixing these gives: the paper's M_W (equation 5)."""
    fixed_ratio: Mapping[int, float | None]
    """`Contribution.fixed_ratio` of the k slowest workers, by k: 1, 2, 4, 8, ... and the paper's
    number, up to half of all."""


@dataclass(frozen=True)
class Slowdowns:
    """Slowdown of a job, by type, stage, data-parallel rank, worker and step.

    Step times are seconds, one a step in order of `steps`. S of a part is the step time where the
    part alone takes its own costs, over the ideal one.
    """

    steps: NDArray[np.int64]
    """Numbers of the steps, ascending."""
    traced_seconds: Times
    """As traced: last end - first start."""
    original_seconds: Times
    """Simulated with all own costs, without launch delays: last end."""
    step_slowdown: Times
    """S of each step."""
    ideal_seconds: float
    """Simulated with all ideal costs, up to the last optimizer; mean over the steps."""
    ideal_spread_seconds: float
    """Longest less shortest ideal step: about 0, as all are alike."""
    slowdown: float
    """S = T / T_ideal, ratio of mean step times (equation 1); about 1 without stragglers."""
    launch_slowdown: float
    """Traced over simulated time: what launch delays and the model's errors add."""
    by_type: Mapping[str, float]
    """S_t: slowdown where one type alone keeps its costs (equation 2), slowest first."""
    by_stage: Times
    """S_pp: slowdown where one stage alone keeps its costs; (stages,)."""
    by_dp: Times
    """S_dp: slowdown where one data-parallel rank alone keeps its costs; (ranks,)."""
    by_worker_exact: Times
    """S_w where that worker alone keeps its costs (equation 4); (ranks, stages)."""
    stages: tuple[Contribution, ...]
    """What fixing each stage gives; the last is the paper's M_S."""
    slowest: SlowestWorkers
    launch: LaunchSlowdowns | None
    """Launch slowdowns by group; None where all is less than 3 %."""
    dropped_steps: tuple[DroppedStep, ...]
    """Steps of the trace left out, ascending."""

    @property
    def by_worker(self) -> Times:
        """S_w as the paper approximates it, min(S_dp, S_pp); (ranks, stages)."""
        return np.minimum(self.by_dp[:, None], self.by_stage)

    @property
    def workers(self) -> list[tuple[int, int]]:
        """All workers (dp_rank, stage), exact S_w descending."""
        order = np.argsort(-self.by_worker_exact, axis=None, kind="stable")
        return [divmod(at, len(self.by_stage)) for at in order.tolist()]

    @property
    def steps_ranked(self) -> dict[int, float]:
        """S by the number of the step, slowest first."""
        return {int(self.steps[at]): s for at, s in ranked(self.step_slowdown).items()}

    @property
    def straggles(self) -> bool:
        """Whether S is above 1.1."""
        return self.slowdown > STRAGGLING

    @property
    def wasted_ratio(self) -> float:
        """Share of the job's GPU-hours that stragglers waste, 1 - 1 / S (equation 3)."""
        return 1.0 - 1.0 / self.slowdown

    @property
    def simulation_error(self) -> float:
        """Distance of the simulated from the traced time, as a share of the simulated one."""
        return abs(self.launch_slowdown - 1.0)

    @property
    def inaccurate(self) -> bool:
        """Whether the simulation is so far off that the paper leaves such a trace out."""
        return self.simulation_error > LARGEST_ERROR


def slowdowns(model: StepModel) -> Slowdowns:
    """Slowdown of a traced job and of each of its parts.

    .. math:: S = \\bar T / \\bar T_{ideal}, \\quad S_x = \\bar T_{ideal}^{-x} / \\bar T_{ideal}

    with T the step time simulated with the traced costs of all operations, T_ideal with the ideal
    cost of its type for each, and T_ideal^{-x} with ideal costs for all but the operations of x (a
    type, a stage, a data-parallel rank or a worker); bars are means over steps.

    Assumes that the job keeps its schedule, that a cost does not depend on when it falls, and that
    a type should cost the same on every stage: a stage with more layers is a straggler by this
    measure. Ideal computes are the mean, which stragglers raise: S understates what a job could
    gain. Meaningless where launch delays are large (see `simulation_error`).

    Raises
    ------
    AnalysisError
        Where an ideal step takes no time.

    References
    ----------
    Lin et al., Understanding Stragglers in Large Model Training Using What-if Analysis, OSDI 2025,
    arXiv 2505.05713, equations 1 to 5.

    Examples
    --------
    Two ranks, forwards of 1 and 3 s, backwards of 2 s: 5 s a step, 4 s if both took the mean.

    >>> from analytics.training.stragglers.operations import optype_codes
    >>> from analytics.training.stragglers.trace import TraceRows
    >>> from analytics.training.stragglers.step_model import StepModel
    >>> names = ["forward-compute", "backward-compute", "gc", "layernorm-grads-all-reduce",
    ...          "optimizer-clip-main-grad", "optimizer"]
    >>> zero, rank = np.zeros(12, dtype=int), np.repeat([0, 1], 6)
    >>> start = np.array([0, 1, 3, 3, 3, 5, 0, 3, 5, 5, 5, 5.0])
    >>> seconds = np.array([1, 2, 0, 0, 2, 0, 3, 2, 0, 0, 0, 0.0])
    >>> codes = np.tile(optype_codes(names), 2)
    >>> rows = TraceRows(zero, rank, zero, codes, zero, zero, start, seconds)
    >>> two = slowdowns(StepModel.of_rows(rows))
    >>> two.slowdown, two.by_dp.tolist()
    (1.25, [1.0, 1.25])
    """
    trace = model.trace
    batch = Standard(trace.n_stages, model.labels, trace.n_dp)
    ends = simulate(model.plan, model.costs, batch)
    ideal_steps = ends.optimizer[batch.ideal].max(axis=-1)
    ideal = float(ideal_steps.mean())
    if not ideal > 0:
        raise AnalysisError(
            "the ideal step takes no time: give durations in seconds, of which some are above 0"
        )
    traced = trace.step_seconds.astype(np.float64)
    undelayed = float(ends.optimizer[batch.original].max(axis=-1).mean())
    launch_slowdown = float(traced.mean() / undelayed)
    last, last_ideal = (ends.last[at].max(axis=-1) for at in (batch.original, batch.ideal))
    means = {"original": float(last.mean()), "ideal": float(last_ideal.mean())}
    by_dp = batch.kept_dp(ends.optimizer).T.mean(axis=-1) / ideal
    by_stage = batch.stage(ends.optimizer).mean(axis=-1) / ideal
    by_worker = batch.kept_worker(ends.optimizer).transpose(2, 0, 1)
    return Slowdowns(
        steps=trace.steps,
        traced_seconds=traced,
        original_seconds=last,
        step_slowdown=last / ideal_steps,
        ideal_seconds=ideal,
        ideal_spread_seconds=float(ideal_steps.max() - ideal_steps.min()),
        slowdown=means["original"] / ideal,
        launch_slowdown=launch_slowdown,
        by_type=_by_type(batch.types(ends.optimizer), ideal),
        by_stage=by_stage,
        by_dp=by_dp,
        by_worker_exact=by_worker.mean(axis=-1) / ideal,
        stages=_stages(batch, ends, **means),
        slowest=_slowest_workers(model, np.minimum(by_dp[:, None], by_stage), **means),
        launch=launch_slowdowns(model, undelayed) if launch_slowdown >= GATE else None,
        dropped_steps=trace.dropped_steps,
    )


def ranked(by_part: Times) -> dict[int, float]:
    """Slowdowns by the number of the part, slowest first, ties by number.

    Examples
    --------
    >>> ranked(np.array([1.0, 1.5, 1.0]))
    {1: 1.5, 0: 1.0, 2: 1.0}
    """
    return {at: float(by_part[at]) for at in np.argsort(-by_part, kind="stable").tolist()}


def _by_type(seconds_of: Mapping[str, Times], ideal: float) -> dict[str, float]:
    """Slowdowns by type, slowest first."""
    ratios = {name: float(seconds.mean()) / ideal for name, seconds in seconds_of.items()}
    return dict(sorted(ratios.items(), key=lambda item: -item[1]))


def _stages(
    batch: Standard, ends: Ends, *, original: float, ideal: float
) -> tuple[Contribution, ...]:
    """What each stage contributes."""
    fixed = batch.fixed_stage(ends.last).mean(axis=-1).tolist()
    kept = batch.stage(ends.last).mean(axis=-1).tolist()
    pairs = zip(fixed, kept, strict=True)
    return tuple(Contribution(original, ideal, *pair) for pair in pairs)


def slowest_first(by_worker: Times) -> NDArray[np.int64]:
    """(dp_rank, stage) of all workers, S_w (ranks, stages) descending, ties by stage, then dp_rank.

    Examples
    --------
    >>> slowest_first(np.array([[1.0, 1.2], [1.0, 1.3]])).tolist()
    [[1, 1], [0, 1], [0, 0], [1, 0]]
    """
    dp, stage = (at.ravel() for at in np.indices(by_worker.shape))
    place = np.lexsort((dp, stage, -by_worker.ravel()))
    return np.stack((dp[place], stage[place]), axis=1)


def _slowest_workers(
    model: StepModel, by_worker: Times, *, original: float, ideal: float
) -> SlowestWorkers:
    """What fixing the slowest workers gives, by S_w (ranks, stages) and mean step times."""
    order = slowest_first(by_worker)
    n_slowest = math.ceil(SLOWEST_RATIO * len(order))
    doubling = {1 << power for power in range(len(order).bit_length())}
    numbers = sorted({k for k in doubling if 2 * k <= len(order)} | {n_slowest})
    masks = np.zeros((len(numbers) + 1, *by_worker.shape), dtype=np.bool_)
    for mask, k in zip(masks, [*numbers, n_slowest], strict=True):
        mask[order[:k, 0], order[:k, 1]] = True
    masks[:-1] = ~masks[:-1]  # all but the last say what is fixed
    wide = np.repeat(masks[:, None], len(model.trace.steps), axis=1)
    of_stage = [wide[..., stage].copy() for stage in range(model.trace.n_stages)]
    batch = Kept([of_stage[stage] for stage in model.trace.operations.stage.tolist()])
    last = simulate(model.plan, model.costs, batch).last.max(axis=-1)
    *fixed, kept = last.mean(axis=-1).tolist()
    points = {
        k: Contribution(original, ideal, seconds) for k, seconds in zip(numbers, fixed, strict=True)
    }
    ranks = model.trace.ranks
    return SlowestWorkers(
        workers=tuple(
            Worker(dp, stage, None if ranks is None else int(ranks[dp, stage]))
            for dp, stage in order[:n_slowest].tolist()
        ),
        contribution=Contribution(original, ideal, points[n_slowest].fixed_seconds, kept),
        fixed_ratio={k: point.fixed_ratio for k, point in points.items()},
    )
