"""How much faster a job would train without stragglers, and which of its parts make it slow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from analytics.errors import AnalysisError
from analytics.training.stragglers.contributions import (
    Contribution,
    WorkerCurve,
    worker_curve,
)
from analytics.training.stragglers.launch import GATE, LaunchSlowdowns, launch_slowdowns
from analytics.training.stragglers.scenarios import Standard
from analytics.training.stragglers.simulation import simulate
from analytics.training.stragglers.what_if import WhatIf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.training.stragglers.simulation import Ends
    from analytics.training.stragglers.trace import Trace

    Times: TypeAlias = NDArray[np.float64]

STRAGGLING: Final = 1.1
"""Slowdown above which a job is said to straggle (Lin et al.)."""


@dataclass(frozen=True)
class StragglerAnalysis:
    """Slowdown of a job, by type, stage, data-parallel rank, worker and step.

    Step times are seconds, one a step in order of `what_if.trace.steps`. A part's step times are
    those of the step in which it alone takes its own costs.
    """

    what_if: WhatIf
    """The model, for any other question (`fix`, `keep`, `timeline`)."""
    traced_seconds: Times
    """As traced: last end - first start."""
    original_seconds: Times
    """Simulated with all own costs, without launch delays: last end."""
    original_optimizer_seconds: Times
    """The same up to the last optimizer."""
    ideal_seconds: Times
    """Simulated with all ideal costs, up to the last optimizer; the same for every step."""
    type_seconds: Mapping[str, Times]
    """By type, (steps,) each."""
    stage_seconds: Times
    """(stages, steps)."""
    dp_seconds: Times
    """(ranks, steps)."""
    worker_seconds: Times
    """(ranks, stages, steps)."""
    stages: tuple[Contribution, ...]
    """What fixing each stage gives; the last is the paper's M_S."""
    workers: WorkerCurve
    """What fixing the slowest workers gives, for several numbers of them; the paper's M_W among."""

    @cached_property
    def slowdown(self) -> float:
        """S = T / T_ideal, ratio of mean step times (equation 1); about 1 without stragglers."""
        return self._ratio(self.original_seconds)

    @property
    def wasted_ratio(self) -> float:
        """Share of the job's GPU-hours that stragglers waste, 1 - 1 / S (equation 3)."""
        return 1.0 - 1.0 / self.slowdown

    @property
    def step_slowdown(self) -> Times:
        """S of each step."""
        return self.original_seconds / self.ideal_seconds

    @property
    def by_type(self) -> dict[str, float]:
        """S_t: slowdown where one type alone keeps its costs (equation 2)."""
        return {name: self._ratio(seconds) for name, seconds in self.type_seconds.items()}

    @cached_property
    def by_stage(self) -> Times:
        """S_pp: slowdown where one stage alone keeps its costs; (stages,)."""
        return self._ratios(self.stage_seconds)

    @cached_property
    def by_dp(self) -> Times:
        """S_dp: slowdown where one data-parallel rank alone keeps its costs; (ranks,)."""
        return self._ratios(self.dp_seconds)

    @property
    def by_worker(self) -> Times:
        """S_w as the paper approximates it, min(S_dp, S_pp); (ranks, stages)."""
        return np.minimum(self.by_dp[:, None], self.by_stage)

    @cached_property
    def by_worker_exact(self) -> Times:
        """S_w where that worker alone keeps its costs (equation 4); (ranks, stages)."""
        return self._ratios(self.worker_seconds)

    @property
    def launch_slowdown(self) -> float:
        """Traced over simulated time: what launch delays and the model's errors add."""
        return float(self.traced_seconds.mean() / self.original_optimizer_seconds.mean())

    @cached_property
    def launch(self) -> LaunchSlowdowns | None:
        """Launch slowdowns by group, computed when asked for; None where all is less than 3 %."""
        if self.launch_slowdown < GATE:
            return None
        return launch_slowdowns(self.what_if, float(self.original_optimizer_seconds.mean()))

    @property
    def simulation_error(self) -> float:
        """Distance of the simulated from the traced time, as a share of the simulated one."""
        return abs(self.launch_slowdown - 1.0)

    @property
    def _ideal(self) -> float:
        return float(self.ideal_seconds.mean())

    def _ratios(self, seconds: Times) -> Times:
        ratios: Times = seconds.mean(axis=-1) / self._ideal
        return ratios

    def _ratio(self, seconds: Times) -> float:
        return float(seconds.mean()) / self._ideal


def analyse(trace: Trace) -> StragglerAnalysis:
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
        Where the operations do not form a step, or an ideal step takes no time.

    References
    ----------
    Lin et al., Understanding Stragglers in Large Model Training Using What-if Analysis, OSDI 2025,
    arXiv 2505.05713, equations 1 to 5.

    Examples
    --------
    Two ranks, forwards of 1 and 3 s, backwards of 2 s: 5 s a step, 4 s if both took the mean.

    >>> from analytics.training.stragglers.operations import optype_codes
    >>> from analytics.training.stragglers.rows import TraceRows
    >>> from analytics.training.stragglers.trace import Trace
    >>> names = ["forward-compute", "backward-compute", "gc", "layernorm-grads-all-reduce",
    ...          "optimizer-clip-main-grad", "optimizer"]
    >>> zero, rank = np.zeros(12, dtype=int), np.repeat([0, 1], 6)
    >>> start = np.array([0, 1, 3, 3, 3, 5, 0, 3, 5, 5, 5, 5.0])
    >>> seconds = np.array([1, 2, 0, 0, 2, 0, 3, 2, 0, 0, 0, 0.0])
    >>> codes = np.tile(optype_codes(names), 2)
    >>> rows = TraceRows(zero, rank, zero, codes, zero, zero, start, seconds)
    >>> found = analyse(Trace.of_columns(rows))
    >>> found.slowdown, found.by_dp.tolist()
    (1.25, [1.0, 1.25])
    """
    model = WhatIf.of(trace)
    batch = Standard(trace.n_stages, model.labels, trace.n_dp)
    ends = simulate(model.plan, model.costs, batch)
    ideal = ends.optimizer[batch.ideal].max(axis=-1)
    if not ideal.mean() > 0:
        raise AnalysisError(
            "the ideal step takes no time: give durations in seconds, of which some are above 0"
        )
    original = ends.optimizer[batch.original].max(axis=-1)
    traced = trace.step_seconds.astype(np.float64)
    stage_seconds = batch.stage(ends.optimizer)
    dp_seconds = batch.kept_dp(ends.optimizer).T
    by_worker = np.minimum(dp_seconds.mean(axis=-1)[:, None], stage_seconds.mean(axis=-1))
    last, last_ideal = (ends.last[at].max(axis=-1) for at in (batch.original, batch.ideal))
    means = {"original": float(last.mean()), "ideal": float(last_ideal.mean())}
    return StragglerAnalysis(
        what_if=model,
        traced_seconds=traced,
        original_seconds=last,
        original_optimizer_seconds=original,
        ideal_seconds=ideal,
        type_seconds=batch.types(ends.optimizer),
        stage_seconds=stage_seconds,
        dp_seconds=dp_seconds,
        worker_seconds=batch.kept_worker(ends.optimizer).transpose(2, 0, 1),
        stages=_stages(batch, ends, **means),
        workers=worker_curve(model, by_worker / ideal.mean(), **means),
    )


def _stages(
    batch: Standard, ends: Ends, *, original: float, ideal: float
) -> tuple[Contribution, ...]:
    """What each stage contributes."""
    fixed = batch.fixed_stage(ends.last).mean(axis=-1).tolist()
    kept = batch.stage(ends.last).mean(axis=-1).tolist()
    pairs = zip(fixed, kept, strict=True)
    return tuple(Contribution(original, ideal, *pair) for pair in pairs)
