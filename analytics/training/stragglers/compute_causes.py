"""Causes among computes: slow workers, slow stages, uneven sequences, pauses.

Times of computes are taken apart into stage, worker, work of the micro-batch, and what is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.operations import distinct, low_median, median
from analytics.training.stragglers.step_model import Candidate, Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.training.stragglers.operations import Bools, Floats
    from analytics.training.stragglers.step_model import Number, StepModel, Target

LEAST_STAGE_RATIO: Final = 1.02
"""Least time of a stage's computes over that of the usual stage."""
LEAST_CORRELATION: Final = 0.9
"""Least correlation of forward and backward computes of a micro-batch (Lin et al.)."""
LEAST_AGREEMENT: Final = 0.7
"""Least correlation of a micro-batch's times on neighbouring stages."""
LEAST_WITHIN_STEP: Final = 0.7
"""Least correlation of forward and backward computes among the micro-batches of a step."""
MOST_PAUSED: Final = 0.2
"""Share of computes from which on long ones are no exceptions."""
MOST_NAMED: Final = 8
"""Workers that a cause names."""
MAD_TO_SD: Final = 1.4826
MEDIAN_TO_MEAN_SE: Final = 1.2533
SIGNIFICANT: Final = 6.0
"""Standard errors from which on a shift of a worker counts, among up to thousands of workers."""
LEAST_SHIFT: Final = math.log(1.02)
"""Least shift of a worker over all steps."""
LEAST_STEP_SHIFT: Final = math.log(1.05)
"""Least shift of a worker in a single step."""
LEAST_OPERATIONS: Final = 3
"""Operations of a worker and type in a step from which on a single step can show a shift."""
LEAST_PAUSE: Final = math.log(1.1)
"""Least excess of an isolated long operation."""
PAUSE_SD: Final = 8.0
"""Standard deviations from which on an operation is long by itself."""
MOST_ISOLATED: Final = 0.25
"""Share of a worker's computes in a step up to which long ones are isolated."""
LEAST_UNEVEN: Final = 0.05
"""Standard deviation of work from which on micro-batches count as uneven."""
SLOPE_SD: Final = 0.5
"""How much slopes of computes against work differ from 1: attention takes its square, at most."""
_SAMPLE: Final = 1 << 13


def least_steps(n_steps: int) -> float:
    """Steps from which on single ones make a cause: a tenth of all, and 3 (2 of 4 and fewer)."""
    return max(0.1 * n_steps, 3.0 if n_steps > 4 else 2.0)


@dataclass(frozen=True)
class Computes:
    """Logarithms of the computes' times as a sum of effects.

    .. math:: \\log c = b_{tpv} + e_{tp,sd} + \\beta_{tpv} w_{msd} + \\epsilon

    for type t (forward, backward), stage p, chunk v, micro-batch m, step s and data-parallel rank
    d. Arrays have the axes (t, p, v, m, s, d), those that an effect lacks left out or of length 1.
    """

    places: NDArray[np.intp]
    """Operation of each (t, p, v, m)."""
    base: Floats
    """b: median of the ranks that are not slow; (t, p, v)."""
    worker: Floats
    """e: what a worker is slower than its peers, 0 for what may be chance; (t, p, s, d)."""
    rank: Floats
    """Of e, the part that all stages of a data-parallel rank share; (s, d)."""
    work: Floats
    """w: what all computes of the micro-batch share; (m, s, d)."""
    slope: Floats
    """beta; (t, p, v)."""
    rest: Floats
    """epsilon."""
    noise: Floats
    """Standard deviation of epsilon, robust; (t, p)."""
    detrended: Floats
    """log c - b - e: work and rest together."""

    paused: Bools
    """Isolated long computes: far above what stage, worker and micro-batch explain.

    Not where more than a quarter of a worker's computes in a step are; nor, where micro-batches
    differ in work or there is but one stage, where the other compute of the same micro-batch and
    worker is long as well.
    """

    @cached_property
    def pause(self) -> Floats:
        """Of epsilon what pauses add."""
        return np.where(self.paused, self.rest, 0.0)


def take_apart(model: StepModel) -> Computes | None:
    """The effects on the computes of a job, by medians, so that no one worker sets them.

    The base of a stage is the lower median over ranks of each rank's median; the work of a
    micro-batch the lower median over its computes on all stages; the shift of a worker the median
    over its computes in a step of what remains, over the lower median of its peers. A shift counts
    where it is 6 standard errors and 2 % over all steps, or 6 and 5 % in a step. All are taken
    twice, the second time each without what the others were found to add.

    None where the stages do not hold computes in equal numbers.
    """
    places = _places(model)
    if places is None:
        return None
    own = model.costs.own[places]
    logs = np.log(np.maximum(own, max(float(own.mean()) * 1e-6, 1e-12)))
    first = _effects(places, logs)
    return _effects(places, logs, known=first)


def _effects(places: NDArray[np.intp], logs: Floats, known: Computes | None = None) -> Computes:
    """The effects; base, shifts and work each without what of the others is known."""
    n, calm, level = logs.shape, logs, logs
    alone: Floats | float = 0.0
    if known is not None:
        calm = logs - known.pause
        level = known.base[:, :, :, None, None, None] + known.rest - known.pause
        alone = (known.worker - known.rank)[:, :, None, None]
    base = low_median(low_median(level, (3, 4)), -1)
    relative = calm - base[:, :, :, None, None, None]
    shared = _shared(relative - alone)
    rank = _shift(shared[None])[0]
    own_part = (relative - shared).reshape(n[0] * n[1], -1, *n[4:])
    worker = _shift(own_part).reshape(n[0], n[1], *n[4:]) + rank
    work = shared - rank
    usual = base[:, :, :, None, None, None] + worker[:, :, None, None]
    slope = _slopes(calm - usual, work)
    detrended = logs - usual
    rest = detrended - slope[:, :, :, None, None, None] * work
    noise = _deviation(rest.reshape(n[0] * n[1], -1)).reshape(n[0], n[1])
    uneven = float(_deviation(work.reshape(1, -1))[0]) > LEAST_UNEVEN
    paused = _isolated(rest, noise, uneven=uneven)
    return Computes(places, base, worker, rank, work, slope, rest, noise, detrended, paused)


def _isolated(rest: Floats, noise: Floats, *, uneven: bool) -> Bools:
    """Computes that are long by themselves; `uneven`: whether micro-batches differ in work."""
    limit = np.maximum(PAUSE_SD * noise, LEAST_PAUSE)[:, :, None, None, None, None]
    long: Bools = rest > limit
    if not long.any():
        return long
    if long[0, :, :, 0, 0, 0].size == 1 or uneven:
        long &= ~long[::-1]
    n_worker = long.sum(axis=(0, 2, 3))
    most = max(1, MOST_ISOLATED * 2 * long.shape[2] * long.shape[3])
    return np.asarray(long & (n_worker <= most)[None, :, None, None])


def _places(model: StepModel) -> NDArray[np.intp] | None:
    """Operation of each (type, stage, chunk, micro-batch in order); None where numbers differ."""
    ops, trace = model.trace.operations, model.trace
    places = []
    for optype in (kind.FORWARD, kind.BACKWARD):
        for stage in range(trace.n_stages):
            part = ops.of(optype, stage)
            at = np.arange(part.start, part.stop)
            for chunk in range(trace.n_chunks):
                mine = at[ops.chunk[at] == chunk]
                places.append(mine[np.lexsort((ops.seq[mine], ops.micro_batch[mine]))])
    if len({len(one) for one in places}) > 1 or len(places[0]) == 0:
        return None
    return np.stack(places).reshape(2, trace.n_stages, trace.n_chunks, -1)


def _shared(relative: Floats) -> Floats:
    """What the computes of a micro-batch have in common, (m, s, d).

    Of two computes their mean, unless they differ by more than chance: then the shorter.
    """
    if relative[:, :, :, 0, 0, 0].size > 2:
        return low_median(relative, (0, 1, 2))
    forward, backward = relative[0, 0, 0], relative[1, 0, 0]
    gap = forward - backward
    gap = np.abs(gap - median(gap))
    chance = SIGNIFICANT * MAD_TO_SD * median(gap)
    shorter, mean = np.minimum(forward, backward), (forward + backward) / 2
    return np.asarray(np.where(gap > chance, shorter, mean))


def _shift(times: Floats) -> Floats:
    """How much slower each rank is than its peers, 0 for what may be chance.

    Times are (groups, n, steps, ranks), shifts (groups, steps, ranks): the shift of all steps where
    it lasts, that of the single step where the step lies elsewhere.
    """
    n_groups, n, n_steps, _ = times.shape
    by_step = low_median(times, 1)
    level = low_median(times, (1, 2))
    reference = low_median(level, -1)[:, None]
    steady = low_median(by_step, 1)  # half of the steps may be slow
    scatter, drift = (
        _deviation(gap.reshape(n_groups, -1))[:, None, None]
        for gap in (times - by_step[:, None], by_step - steady[:, None])
    )
    step_error = np.maximum(MEDIAN_TO_MEAN_SE * scatter / np.sqrt(n), drift)
    shift = (level - reference)[:, None]
    lasting = (shift > SIGNIFICANT * step_error / np.sqrt(n_steps)) & (shift > LEAST_SHIFT)
    shifts: Floats = np.where(lasting, shift, 0.0).repeat(n_steps, axis=1)
    if n < LEAST_OPERATIONS:
        return shifts
    in_step = by_step - reference[:, None]
    elsewhere = np.abs(in_step - shifts) > np.maximum(SIGNIFICANT * step_error, LEAST_STEP_SHIFT)
    often = elsewhere.sum(axis=1, keepdims=True) >= least_steps(n_steps)
    return np.where(elsewhere & often, np.maximum(in_step, 0.0), shifts)


def _deviation(gaps: Floats) -> Floats:
    """Robust standard deviation of each row of gaps, by some thousands of them spread evenly."""
    stride = max(1, gaps.shape[1] // _SAMPLE)
    while math.gcd(stride, gaps.shape[1]) > 1:  # else some ranks or steps would never be met
        stride += 1
    return np.asarray(MAD_TO_SD * median(np.abs(gaps[:, ::stride]), axis=1))


def _slopes(detrended: Floats, work: Floats) -> Floats:
    r"""Slope of each (t, p, v) against the work of the micro-batch, at least 0.

    .. math:: \beta = 1 + (\hat\beta - 1) / (1 + \sigma^2 / \tau^2)

    with the least-squares slope, the square of its standard error and that of the spread of slopes
    among computes (`SLOPE_SD`): where micro-batches are alike, work is chance, and it says nothing.
    """
    centred = work - work.mean()
    variance = float((centred**2).sum(dtype=np.float64))
    if variance == 0:
        return np.ones(detrended.shape[:3], dtype=work.dtype)
    axes = (3, 4, 5)
    gap = detrended - work
    off = (gap * centred).sum(axis=axes, dtype=np.float64) / variance  # no BLAS: no threads
    error = gap.var(axis=axes, dtype=np.float64) / variance
    return np.asarray(np.maximum(1.0 + off / (1.0 + error / SLOPE_SD**2), 0.0).astype(work.dtype))


def compute_causes(model: StepModel) -> Iterator[Candidate]:
    """Causes for which the computes hold evidence, in no order."""
    parts = take_apart(model)
    if parts is not None:
        yield from _workers(model, parts)
        yield from _stages(model, parts)
        yield from _sequence_length(model, parts)
        yield from _pauses(model, parts)


def _change(model: StepModel, parts: Computes, log_ratio: Floats) -> Change:
    shape = (parts.places.size, *model.costs.own.shape[1:])
    wide = np.broadcast_to(np.exp(log_ratio), (*parts.places.shape, *shape[1:]))
    return Change(parts.places.ravel(), wide.reshape(shape))


def worker_target(model: StepModel, dp: int, stage: int) -> dict[str, Number]:
    """Names of a worker."""
    ranks = model.trace.ranks
    rank = None if ranks is None else int(ranks[dp, stage])
    return {"dp_rank": dp, "stage": stage, "rank": rank}


def _workers(model: StepModel, parts: Computes) -> Iterator[Candidate]:
    """Workers whose computes are slower than those of the same stage in other ranks, as one."""
    seconds = np.exp(parts.base).sum(axis=2)[:, :, None, None] * np.expm1(parts.worker)
    by_step = seconds.sum(axis=0)
    excess = by_step.mean(axis=1).T
    if not excess.any():
        return
    order = np.argsort(-excess, axis=None, kind="stable")
    slow = [divmod(int(at), excess.shape[1]) for at in order if excess.flat[at] > 0]
    dp, stage = slow[0]
    whole_rank = excess.shape[1] > 1 and bool(excess[dp].min() > excess[dp].max() / 2)
    target: dict[str, Any] = worker_target(model, dp, stage)
    if whole_rank:
        target |= {"stage": None, "rank": None}
    named = [worker_target(model, *one) for one in slow[:MOST_NAMED]]
    usual = float(np.exp(parts.base[:, stage]).sum())
    slow_steps = by_step[stage, :, dp] > by_step[stage, :, dp].max() / 2
    evidence: dict[str, Number] = {
        "time_over_peers_ratio": 1.0 + float(by_step[stage, slow_steps, dp].mean()) / usual,
        "slow_steps_ratio": float(slow_steps.mean()),
        "n_slow_workers": len(slow),
        "share_of_slowest_ratio": float(excess[dp, stage] / excess.sum()),
        "whole_dp_rank": whole_rank,
    }
    change = _change(model, parts, -parts.worker[:, :, None, None])
    yield Candidate("worker", target | {"workers": named}, change, evidence)


def _stages(model: StepModel, parts: Computes) -> Iterator[Candidate]:
    """Stages whose computes take longer than those of others in all data-parallel ranks."""
    level = np.exp(parts.base).mean(axis=2)
    total = level.sum(axis=0)
    usual = float(low_median(total, 0))
    mean = level.mean(axis=1)
    n_dp = model.trace.n_dp
    for stage in np.flatnonzero((total > LEAST_STAGE_RATIO * usual) & (total > mean.sum())):
        log_ratio = np.zeros(level.shape)
        log_ratio[:, stage] = np.minimum(np.log(mean / level[:, stage]), 0.0)
        forward, backward = (level[:, stage] / low_median(level, 1)).tolist()
        evidence: dict[str, Number] = {
            "time_over_usual_stage_ratio": float(total[stage] / usual),
            "forward_ratio": forward,
            "backward_ratio": backward,
            "n_dp_ranks": n_dp,
            "last_stage": bool(stage == level.shape[1] - 1),
        }
        change = _change(model, parts, log_ratio[:, :, None, None, None, None])
        yield Candidate("stage", {"stage": int(stage)}, change, evidence)


def _sequence_length(model: StepModel, parts: Computes) -> Iterator[Candidate]:
    """Micro-batches that are long in all their computes."""
    measured = correlations(model, parts)
    demeaned = max(measured["demeaned"], measured["all_stages"])
    if not demeaned >= LEAST_CORRELATION or not measured["within_step"] >= LEAST_WITHIN_STEP:
        return
    n_stages = parts.places.shape[1]
    if n_stages > 1 and not measured["between_stages"] >= LEAST_AGREEMENT:
        return
    work = parts.slope[:, :, :, None, None, None] * parts.work
    calm = parts.detrended - parts.pause
    relative, levelled = np.exp(calm), np.exp(calm - work)
    axes = (3, 4, 5)
    log_mean = np.log(relative.mean(axis=axes) / levelled.mean(axis=axes))
    ratio = np.exp(log_mean[:, :, :, None, None, None] - work)
    calm_ratio = np.exp(-parts.pause)
    # A pause keeps its length.
    change = _change(model, parts, np.log(1.0 - calm_ratio * (1.0 - ratio)))
    spread = relative.std(axis=axes) / relative.mean(axis=axes)
    evidence: dict[str, Number] = {
        "correlation_raw": measured["raw"],
        "correlation_demeaned": measured["demeaned"],
        "correlation_between_stages": measured["between_stages"] if n_stages > 1 else None,
        "coefficient_of_variation": float(median(spread)),
    }
    yield Candidate("sequence_length", None, change, evidence)


def correlations(model: StepModel, parts: Computes) -> dict[str, float]:
    """Pearson correlations of times of the same micro-batch; NaN where nothing varies.

    `raw`: forward with backward, median over stages; `demeaned`: after removing the mean of each
    worker and chunk; `all_stages`: demeaned, of the mean over stages; `within_step`: demeaned by
    step as well; `between_stages`: demeaned, of neighbouring stages, median.
    """
    own = model.costs.own[parts.places]
    calm = parts.detrended - parts.pause
    logs = calm - calm.mean(axis=(3, 4), keepdims=True)
    logs = np.where(parts.paused, 0.0, logs)
    stages = range(own.shape[1])
    over_stages = logs.mean(axis=(1, 2))
    in_step = over_stages - over_stages.mean(axis=1, keepdims=True)
    by_stage = logs.mean(axis=(0, 2))
    single = own.shape[3] == 1
    return {
        "raw": _median([_pearson(own[0, p], own[1, p]) for p in stages]),
        "demeaned": _median([_pearson(logs[0, p], logs[1, p]) for p in stages]),
        "all_stages": _pearson(over_stages[0], over_stages[1]),
        "within_step": 1.0 if single else _pearson(in_step[0], in_step[1]),
        "between_stages": _median([_pearson(one, other) for one, other in pairwise(by_stage)]),
    }


def _median(values: list[float]) -> float:
    return float(median(values)) if values else float("nan")


def _pearson(one: Floats, other: Floats) -> float:
    one, other = one.ravel() - one.mean(), other.ravel() - other.mean()
    size = float(np.sqrt((one * one).sum() * (other * other).sum()))
    return float((one * other).sum()) / size if size > 0 else float("nan")


def _pauses(model: StepModel, parts: Computes) -> Iterator[Candidate]:
    """Isolated long computes, and operations that are pauses by name."""
    paused = parts.paused
    own = model.costs.own
    named = np.flatnonzero(model.trace.operations.optype == kind.GC)
    idle = own[named]
    share = float(paused.mean())
    if share > MOST_PAUSED or not (paused.any() or (idle > 0).any()):
        return
    computes = _change(model, parts, np.where(paused, -parts.rest, 0.0))
    ratio = np.concatenate((computes.ratio, np.zeros((len(named), *own.shape[1:]))))
    change = Change(np.concatenate((computes.operations, named)), ratio)
    lost = own[parts.places] * np.where(paused, -np.expm1(-parts.rest), 0.0)
    by_worker = lost.sum(axis=(0, 2, 3))
    np.add.at(by_worker, model.trace.operations.stage[named], idle)
    yield Candidate("pause", *_pause_words(model, by_worker, paused=paused, change=change))


def _pause_words(
    model: StepModel, by_worker: Floats, *, paused: Bools, change: Change
) -> tuple[Target, Change, dict[str, Number]]:
    """Which workers pause, how often and how long; seconds lost as (stages, steps, ranks)."""
    hit = by_worker > 0
    workers = np.argwhere(hit.any(axis=1).T)
    lost = by_worker.sum(axis=1).T
    order = sorted(workers.tolist(), key=lambda one: -lost[tuple(one)])
    named = [worker_target(model, *one) for one in order[:MOST_NAMED]]
    steps = model.trace.steps[hit.any(axis=(0, 2))]
    n_pauses = int(paused.sum()) or int(hit.sum())
    gaps = distinct(np.diff(steps))[0]
    evidence: dict[str, Number] = {
        "n_pauses": n_pauses,
        "n_workers": len(order),
        "steps_with_pause_ratio": len(steps) / len(model.trace.steps),
        "seconds_per_pause": float(by_worker.sum()) / n_pauses,
        "share_of_top_worker_ratio": float(lost.max() / lost.sum()),
        "steps_between": int(gaps[0]) if len(gaps) == 1 and len(steps) > 2 else None,
    }
    return {"workers": named, "n_workers": len(order)}, change, evidence
