"""What fixing one worker, stage or type of operations gives: step times before and after."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from analytics import validate
from analytics.errors import AnalysisError
from analytics.estimate import Estimate
from analytics.ratio import Moments, positive_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.training.stragglers.operations import Times
    from analytics.training.stragglers.step_model import StepModel

    Steps: TypeAlias = NDArray[np.int64]
    """Numbers of the traced steps."""

HALF_WAVE_STEPS: Final = 30
"""Half waves at least this long count as slow: slow steps come in runs of several."""
MOST_WAVES: Final = 4
"""Half waves of a long trace."""
_WORKER = re.compile(r"worker:(\d{1,9}),(\d{1,9})")
_STAGE = re.compile(r"stage:(\d{1,9})")
_TYPE = re.compile(r"type:([a-z-]+)")


@dataclass(frozen=True)
class Part:
    """A part of a job: a worker (`dp` and `stage`), a stage, or a type of operations."""

    dp: int | None = None
    stage: int | None = None
    optype: str | None = None
    """Name as in S_t: sends and receives of a direction are one."""

    @classmethod
    def named(cls, text: str) -> Part:
        """The part that a text names.

        Raises
        ------
        AnalysisError
            Where the text has none of the three forms.

        Examples
        --------
        >>> Part.named("worker:3,1")
        Part(dp=3, stage=1, optype=None)
        >>> Part.named("type:forward-compute").optype
        'forward-compute'
        """
        if match := _WORKER.fullmatch(text):
            return cls(dp=int(match[1]), stage=int(match[2]))
        if match := _STAGE.fullmatch(text):
            return cls(stage=int(match[1]))
        if match := _TYPE.fullmatch(text):
            return cls(optype=match[1])
        raise AnalysisError(
            f"a part must be worker:DP,STAGE, stage:N or type:NAME, got {text!r}: "
            "e.g. worker:3,1, stage:0 or type:forward-compute"
        )

    def __str__(self) -> str:
        """The text that names the part."""
        if self.optype is not None:
            return f"type:{self.optype}"
        return f"stage:{self.stage}" if self.dp is None else f"worker:{self.dp},{self.stage}"

    @property
    def words(self) -> str:
        """What people call the part.

        Examples
        --------
        >>> Part(dp=3, stage=1).words, Part(optype="optimizer").words
        ('worker dp 3, stage 1', 'all optimizer')
        """
        if self.optype is not None:
            return f"all {self.optype}"
        return (
            f"stage {self.stage}" if self.dp is None else f"worker dp {self.dp}, stage {self.stage}"
        )

    def operations(self, model: StepModel) -> NDArray[np.bool_]:
        """Its operations, (operations, ranks).

        Raises
        ------
        AnalysisError
            Where the trace holds none.
        """
        return model.operations_of(optype=self.optype, stage=self.stage, dp=self.dp)


@dataclass(frozen=True)
class Fixed:
    """Step times with and without a part at its own costs, seconds, one a step."""

    part: Part
    original_seconds: Times
    """Every operation takes its own cost."""
    fixed_seconds: Times
    """Those of the part take their ideal cost, all others their own."""
    saved_ratio: Estimate
    """(T - T_fix) / T, the share of the step time that the fix gives back; n = steps."""

    @property
    def mean_original_seconds(self) -> float:
        """Mean step time before."""
        return float(self.original_seconds.mean())

    @property
    def mean_fixed_seconds(self) -> float:
        """Mean step time after."""
        return float(self.fixed_seconds.mean())

    def saved_gpu_hours_per_day(self, n_gpus: int) -> Estimate:
        """GPU-hours a day of training that the fix gives back to a job of so many GPUs."""
        return daily_gpu_hours(self.saved_ratio, n_gpus)


def fixed(
    model: StepModel, parts: Sequence[Part], *, conf_level: float = 0.90
) -> tuple[Fixed, ...]:
    """Step times if each part alone took its ideal costs.

    .. math:: g = (T - T_{fix}) / T = 1 - 1 / \\mathrm{speedup}

    with T and T_fix the mean step times of the simulated original and of the same with the
    operations of the part at the ideal cost of their type. The interval is that of `step_ratio`.
    Negative where the ideal cost, a mean over the whole job, is more than
    what the part costs. Gains of several parts do not add up.

    Raises
    ------
    AnalysisError
        Where the trace holds no operation of a part.

    References
    ----------
    Lin et al., arXiv 2505.05713, section 3.3 (T_fix of equation 5).
    """
    validate.conf_level(conf_level)
    if not parts:
        return ()
    chosen = np.stack([np.zeros_like(parts[0].operations(model))]
                      + [part.operations(model) for part in parts])  # fmt: skip
    original, *seconds = model.fix(chosen)
    return tuple(
        Fixed(
            part,
            original,
            after,
            saved_estimate(original, after, model.trace.steps, conf_level=conf_level),
        )
        for part, after in zip(parts, seconds, strict=True)
    )


def slowdown_estimate(
    original_seconds: Times, ideal_seconds: float, steps: Steps, *, conf_level: float = 0.90
) -> Estimate:
    """S = T / T_ideal with an interval over the traced steps; n = steps.

    The interval is that of `step_ratio`, the ideal time taken as known. It does not go below 1, a
    job without stragglers, unless S does.

    Examples
    --------
    >>> slowdown_estimate(np.full(3, 1.5), 1.0, np.array([0, 20, 40]))
    Estimate(value=1.5, lower=1.5, upper=1.5, conf_level=0.9, n=3)
    """
    seconds = np.asarray(original_seconds, dtype=np.float64)
    found = step_ratio(seconds, np.full(len(seconds), ideal_seconds), steps, conf_level=conf_level)
    if found.value is None or found.lower is None:
        return found
    return replace(found, lower=max(found.lower, min(1.0, found.value)))


def saved_estimate(
    original: Times, after: Times, steps: Steps, *, conf_level: float = 0.90
) -> Estimate:
    """Share of the step time that a fix gives back, 1 - T_fix / T, by `step_ratio`; n = steps.

    Examples
    --------
    >>> saved_estimate(np.array([2.0, 2.0]), np.array([1.5, 1.5]), np.array([1, 2])).value
    0.25
    """
    left = step_ratio(after, original, steps, conf_level=conf_level)
    lower, upper = (None if b is None else 1.0 - b for b in (left.upper, left.lower))
    value = 1.0 - float(after.mean() / original.mean())
    return Estimate(value, lower, upper, conf_level, left.n)


def step_ratio(
    numerator: Times, denominator: Times, steps: Steps, *, conf_level: float
) -> Estimate:
    """Ratio of mean step times, with its interval over steps that depend on those near them.

    A slow host stays slow for a while: the variance is that of `ratio_of_sums`, by 1 to 4 half
    waves of at least 30 steps each, on the scale of the logarithm. Steps whose numbers span fewer
    than 30 saw the job at one moment: no bounds.

    Examples
    --------
    >>> seconds = np.array([1.0, 2.0, 3.0])
    >>> found = step_ratio(seconds, np.ones(3), np.array([0, 30, 60]), conf_level=0.9)
    >>> found.value, round(found.lower, 2), round(found.upper, 2)
    (2.0, 0.86, 4.65)
    >>> step_ratio(seconds, np.ones(3), np.arange(3), conf_level=0.9).lower is None
    True
    """
    validate.conf_level(conf_level)
    at = np.asarray(steps, dtype=np.float64)
    waves = min(int(np.ptp(at)) // HALF_WAVE_STEPS, MOST_WAVES)
    moments = Moments(at, np.array([waves], dtype=np.int64))
    return positive_ratio(numerator, denominator, moments, conf_level=conf_level)


def wasted_estimate(slowdown: Estimate) -> Estimate:
    """Share of GPU-hours that stragglers waste, 1 - 1 / S (equation 3).

    Examples
    --------
    >>> wasted_estimate(Estimate(2.0, 1.25, 4.0, 0.9, 10))
    Estimate(value=0.5, lower=0.2, upper=0.75, conf_level=0.9, n=10)
    """
    value, lower, upper = (
        None if s is None else round(1.0 - 1.0 / s, 15)
        for s in (slowdown.value, slowdown.lower, slowdown.upper)
    )
    return Estimate(value, lower, upper, slowdown.conf_level, slowdown.n)


def daily_gpu_hours(ratio: Estimate, n_gpus: int) -> Estimate:
    """GPU-hours a day of training that a share of the step time is to a job of so many GPUs."""
    return ratio.scaled(24.0 * n_gpus)
