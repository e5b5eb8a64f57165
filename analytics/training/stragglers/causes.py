"""Why a job straggles: each cause by what fixing it alone gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.collective_causes import dp_links, optimizers
from analytics.training.stragglers.compute_causes import compute_candidates, correlations
from analytics.training.stragglers.computes import take_apart
from analytics.training.stragglers.counterfactual import changed_seconds, most_gained
from analytics.training.stragglers.data_loading import delayed_seconds, first_delays
from analytics.training.stragglers.medians import median
from analytics.training.stragglers.pp_link_causes import pp_links
from analytics.training.stragglers.slowdown import STRAGGLING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.training.stragglers.candidates import Candidate, Cause, Number, Target
    from analytics.training.stragglers.slowdown import StragglerAnalysis

LEAST_GAIN: Final = 0.01
"""Share of the step time that fixing a cause must give back for it to be named."""
LEAST_ALONE: Final = 0.02
"""Share that a cause hidden behind others must cost where all others are fixed."""
LEAST_WAIT: Final = 0.02
"""The same for waiting for data, of the step with the wait: some launch delay is always there."""


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


@dataclass(frozen=True)
class StragglerCauses:
    """Causes of a job, strongest first, and what they rest on."""

    causes: tuple[StragglerCause, ...]
    sequence_length_correlation: Mapping[str, float]
    """Pearson correlations of forward and backward computes (`compute_causes.correlations`)."""


def straggler_causes(analysis: StragglerAnalysis) -> StragglerCauses:
    r"""Causes of a job, each by what fixing it alone gives back.

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
    """
    model = analysis.what_if
    parts = take_apart(model)
    measured = correlations(model, parts) if parts is not None else {}
    candidates = [] if parts is None else list(compute_candidates(model, parts, measured))
    candidates += [*dp_links(model), *pp_links(model), *optimizers(model)]
    found = _weighed(analysis, candidates) + _data_loading(analysis)
    found.sort(key=lambda cause: -cause.gain_ratio)
    return StragglerCauses(tuple(found) or (_nothing(analysis),), measured)


def causes(analysis: StragglerAnalysis) -> tuple[StragglerCause, ...]:
    """Causes of a job's stragglers, strongest first; a single `none` where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from analytics.training.stragglers.rows import TraceRows
    >>> from analytics.training.stragglers.slowdown import analyse
    >>> from analytics.training.stragglers.trace import Trace
    >>> codes = np.array([4, 0, 7, 9, 11, 10])  # forward, backward and the tail of a step
    >>> zero, start = np.zeros(6, dtype=np.int64), np.array([0.0, 0.1, 0.3, 0.3, 0.3, 0.3])
    >>> seconds = np.array([0.1, 0.2, 0.0, 0.0, 0.0, 0.1])
    >>> trace = Trace.of_columns(TraceRows(zero, zero, zero, codes, zero, zero, start, seconds))
    >>> [found.cause for found in causes(analyse(trace))]
    ['none']
    """
    return straggler_causes(analysis).causes


def _weighed(analysis: StragglerAnalysis, candidates: list[Candidate]) -> list[StragglerCause]:
    """Candidates whose fix gives enough, or that would cost enough were they alone."""
    original = float(analysis.original_seconds.mean())
    candidates = [
        one
        for one in candidates
        if most_gained(analysis.what_if, one.change) >= LEAST_GAIN * original
    ]
    if not candidates:
        return []
    changes = [one.change for one in candidates]
    model = analysis.what_if
    scenarios = [[change] for change in changes] + ([changes] if len(changes) > 1 else [])
    seconds = changed_seconds(model, scenarios).mean(axis=1)
    gains, all_gain = 1.0 - seconds[: len(changes)] / original, 1.0 - float(seconds[-1]) / original
    costs: list[float | None] = [None] * len(changes)
    if all_gain - gains.max() >= LEAST_ALONE:  # else nothing of that size is hidden
        others = [[*changes[:at], *changes[at + 1 :]] for at in range(len(changes))]
        left = changed_seconds(model, others).mean(axis=1) - seconds[-1]
        costs = (left / original).tolist()
    return [
        StragglerCause(one.cause, one.target, gain, cost, one.evidence)
        for one, gain, cost in zip(candidates, gains.tolist(), costs, strict=True)
        if _counts(gain, cost)
    ]


def _counts(gain: float, alone: float | None) -> bool:
    """Whether a cause is named: one that costs nothing by itself only echoes another."""
    if alone is None:
        return gain >= LEAST_GAIN
    return alone >= LEAST_ALONE or (gain >= LEAST_GAIN and alone >= LEAST_GAIN / 2)


def _data_loading(analysis: StragglerAnalysis) -> list[StragglerCause]:
    """The wait for data, which the simulated step leaves out: as a share of the step with it."""
    model, original = analysis.what_if, float(analysis.original_seconds.mean())
    delays = first_delays(model)
    if not any(one.max(axis=1).mean() > LEAST_WAIT * original / 2 for one in delays.values()):
        return []
    seconds = delayed_seconds(model, delays)
    gain = 1.0 - original / float(seconds.mean())
    if gain < LEAST_WAIT:
        return []
    wait = seconds - analysis.original_seconds
    receives = model.trace.operations.optype == kind.FORWARD_RECV
    by_rank = np.array([d.mean(axis=0) for op, d in delays.items() if not receives[op]]).max(axis=0)
    evidence: dict[str, Number] = {
        "seconds_a_step": float(wait.mean()),
        "late_steps_ratio": float((wait > LEAST_WAIT * original / 2).mean()),
        "longest_seconds": float(wait.max()),
        "slowest_dp_rank": int(by_rank.argmax()),
        "slowest_over_median_rank_ratio": _ratio(by_rank.max(), float(median(by_rank))),
    }
    return [StragglerCause("data_loading", None, gain, None, evidence)]


def _ratio(one: float, other: float) -> float | None:
    return float(one / other) if other > 0 else None


def _nothing(analysis: StragglerAnalysis) -> StragglerCause:
    """No cause was found, be there stragglers or not."""
    evidence: dict[str, Number] = {
        "S": analysis.slowdown,
        "straggles": analysis.slowdown > STRAGGLING,
    }
    return StragglerCause("none", None, 0.0, None, evidence)
