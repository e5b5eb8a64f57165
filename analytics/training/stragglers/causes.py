"""Why a job straggles, each cause by what fixing it alone gives back; when, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.compute_causes import compute_causes
from analytics.training.stragglers.fixes import Part, saved_estimate
from analytics.training.stragglers.launch import delayed_seconds, first_delays
from analytics.training.stragglers.operations import median
from analytics.training.stragglers.slowdown import STRAGGLING
from analytics.training.stragglers.step_model import changed_seconds, most_gained
from analytics.training.stragglers.transfer_causes import dp_links, optimizers, pp_links

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.estimate import Estimate
    from analytics.training.stragglers.operations import Times
    from analytics.training.stragglers.slowdown import Slowdowns
    from analytics.training.stragglers.step_model import Candidate, Cause, Number, StepModel, Target

LEAST_GAIN: Final = 0.01
"""Share of the step time that fixing a cause must give back for it to be named."""
LEAST_ALONE: Final = 0.02
"""Share that a cause hidden behind others must cost where all others are fixed."""
LEAST_WAIT: Final = 0.02
"""The same for waiting for data, of the step with the wait: some launch delay is always there."""
LEAST_SIDE: Final = 3
"""Steps before and after an onset, at least."""
LEAST_RISE: Final = 0.03
"""Rise of the step time, over that before, for an onset."""
ONSET_ERRORS: Final = 6.0
"""Standard errors of a rise for an onset: the step is the likeliest of all."""


@dataclass(frozen=True)
class StragglerCause:
    """One cause, what it is about and what fixing it gives."""

    cause: Cause
    target: Target | None
    """What is slow; None for a cause of the whole job."""
    gain_ratio: float
    """(T - T_fix) / T: share of the step time that fixing this alone gives back."""
    alone_ratio: float | None
    """(T_only - T_none) / T: share that it costs where all other candidates are fixed; None where
    fixing the strongest gives nearly as much as fixing all, and nothing can be hidden behind it."""
    evidence: Mapping[str, Number]
    """Numbers by which it was recognised."""
    gain_estimate: Estimate | None = None
    """The gain with its interval over the traced steps; None of `none`, and where a store keeps a
    result of before there were any."""

    @property
    def dp(self) -> int | None:
        """Data-parallel rank that it is about; None where it is about no single one."""
        rank: int | None = self._named("dp_rank")
        return rank

    @property
    def stage(self) -> int | None:
        """Stage that it is about; None where it is about no single one."""
        stage: int | None = self._named("stage")
        return stage

    @property
    def stages(self) -> tuple[int, ...]:
        """Both stages of a link between them; empty for other causes."""
        return tuple(self._named("stages") or ())

    @property
    def workers(self) -> tuple[tuple[int, int], ...]:
        """Workers (dp_rank, stage) that it is about, slowest first, eight at most; empty where it
        is about more than those."""
        if listed := self._named("workers"):
            return tuple((worker["dp_rank"], worker["stage"]) for worker in listed)
        return () if self.dp is None or self.stage is None else ((self.dp, self.stage),)

    @property
    def n_workers(self) -> int:
        """Number of workers that it is about, those included that `workers` leaves out."""
        n_workers = self._named("n_workers")
        return len(self.workers) if n_workers is None else n_workers

    @property
    def part(self) -> Part | None:
        """What can be fixed of it, a worker or a stage; None where it is about neither alone."""
        return None if self.stage is None else Part(dp=self.dp, stage=self.stage)

    def _named(self, name: str) -> Any:
        return None if self.target is None else self.target.get(name)


def causes(model: StepModel, slow: Slowdowns) -> tuple[StragglerCause, ...]:
    r"""Causes of a job's stragglers, strongest first; a single `none` where there is none.

    .. math:: gain = (\bar T - \bar T_{fix}) / \bar T

    with T the step time simulated with all own costs and T_fix that with the costs as they would be
    without the cause, bars being means over steps; both shares of a step in [0, 1]. A cause needs
    evidence of its own (METHODS.md) and a gain of 1 % (data loading 2 %, of the step with the
    wait), or to cost 2 % where all other candidates are fixed: of two equally slow stages, fixing
    one gives little.

    Assumes that a minority is slow: what is slow on more than half of its like counts as usual.
    With one data-parallel rank a slow worker is a slow stage; a stage that holds more parameters
    looks like a slow link.

    References
    ----------
    Lin et al., Understanding Stragglers in Large Model Training Using What-if Analysis, OSDI 2025,
    arXiv 2505.05713, section 5 (causes), whose fixes are ideal costs; evidence and fixes are ours.

    Examples
    --------
    >>> import numpy as np
    >>> from analytics.training.stragglers.slowdown import slowdowns
    >>> from analytics.training.stragglers.trace import TraceRows
    >>> from analytics.training.stragglers.step_model import StepModel
    >>> codes = np.array([4, 0, 7, 9, 11, 10])  # forward, backward and the tail of a step
    >>> zero, start = np.zeros(6, dtype=np.int64), np.array([0.0, 0.1, 0.3, 0.3, 0.3, 0.3])
    >>> seconds = np.array([0.1, 0.2, 0.0, 0.0, 0.0, 0.1])
    >>> model = StepModel.of_rows(TraceRows(zero, zero, zero, codes, zero, zero, start, seconds))
    >>> [one.cause for one in causes(model, slowdowns(model))]
    ['none']
    """
    candidates = [
        *compute_causes(model), *dp_links(model), *pp_links(model), *optimizers(model)
    ]  # fmt: skip
    named = _weighed(model, slow, candidates) + _data_loading(model, slow)
    named.sort(key=lambda cause: -cause.gain_ratio)
    found: dict[str, Number] = {"S": slow.slowdown, "straggles": slow.straggles}
    return tuple(named) or (StragglerCause("none", None, 0.0, None, found),)


def _weighed(
    model: StepModel, slow: Slowdowns, candidates: list[Candidate]
) -> list[StragglerCause]:
    """Candidates whose fix gives enough, or that would cost enough were they alone."""
    original = float(slow.original_seconds.mean())
    candidates = [
        one for one in candidates if most_gained(model, one.change) >= LEAST_GAIN * original
    ]
    if not candidates:
        return []
    changes = [one.change for one in candidates]
    scenarios = [[change] for change in changes] + ([changes] if len(changes) > 1 else [])
    by_step = changed_seconds(model, scenarios)
    seconds = by_step.mean(axis=1)
    gains, all_gain = 1.0 - seconds[: len(changes)] / original, 1.0 - float(seconds[-1]) / original
    costs: list[float | None] = [None] * len(changes)
    if all_gain - gains.max() >= LEAST_ALONE:  # else nothing of that size is hidden
        others = [[*changes[:at], *changes[at + 1 :]] for at in range(len(changes))]
        left = changed_seconds(model, others).mean(axis=1) - seconds[-1]
        costs = (left / original).tolist()
    return [
        StragglerCause(
            one.cause,
            one.target,
            gain,
            cost,
            one.evidence,
            saved_estimate(slow.original_seconds, after, slow.steps),
        )
        for one, gain, cost, after in zip(
            candidates, gains.tolist(), costs, by_step[: len(changes)], strict=True
        )
        if _counts(gain, cost)
    ]


def _counts(gain: float, alone: float | None) -> bool:
    """Whether a cause is named: one that costs nothing by itself only echoes another."""
    if alone is None:
        return gain >= LEAST_GAIN
    return alone >= LEAST_ALONE or (gain >= LEAST_GAIN and alone >= LEAST_GAIN / 2)


def _data_loading(model: StepModel, slow: Slowdowns) -> list[StragglerCause]:
    """The wait for data, which the simulated step leaves out: as a share of the step with it."""
    original = float(slow.original_seconds.mean())
    delays = first_delays(model)
    if not any(one.max(axis=1).mean() > LEAST_WAIT * original / 2 for one in delays.values()):
        return []
    seconds = delayed_seconds(model, delays)
    gain = 1.0 - original / float(seconds.mean())
    if gain < LEAST_WAIT:
        return []
    wait = seconds - slow.original_seconds
    receives = model.trace.operations.optype == kind.FORWARD_RECV
    by_rank = np.array([d.mean(axis=0) for op, d in delays.items() if not receives[op]]).max(axis=0)
    evidence: dict[str, Number] = {
        "seconds_a_step": float(wait.mean()),
        "late_steps_ratio": float((wait > LEAST_WAIT * original / 2).mean()),
        "longest_seconds": float(wait.max()),
        "slowest_dp_rank": int(by_rank.argmax()),
        "slowest_over_median_rank_ratio": _ratio(by_rank.max(), float(median(by_rank))),
    }
    saved = saved_estimate(seconds, slow.original_seconds, slow.steps)
    return [StragglerCause("data_loading", None, gain, None, evidence, saved)]


def _ratio(one: float, other: float) -> float | None:
    return float(one / other) if other > 0 else None


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
    if rise < LEAST_RISE * before[at] or rise < ONSET_ERRORS * noise / np.sqrt(weight[at]):
        return None
    first = int(steps[n_before[at]])
    return Onset(first, rise / float(before[at]))
