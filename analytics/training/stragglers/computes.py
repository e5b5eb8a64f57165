"""Times of computes taken apart: stage, worker, work of the micro-batch, and what is left."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.medians import low_median, median

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.training.stragglers.what_if import WhatIf

    Floats: TypeAlias = NDArray[np.floating[Any]]
    Bools: TypeAlias = NDArray[np.bool_]

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
        added: Floats = np.where(self.paused, self.rest, 0.0)
        return added

    def spread(self, effect: Floats, axes: str) -> Floats:
        """An effect of some axes, in letters of `tpvmsd`, with all of them."""
        at = tuple(slice(None) if name in axes else None for name in "tpvmsd")
        wide: Floats = effect[at]
        return wide


def take_apart(model: WhatIf) -> Computes | None:
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
    isolated: Bools = long & (n_worker <= most)[None, :, None, None]
    return isolated


def _places(model: WhatIf) -> NDArray[np.intp] | None:
    """Operation of each (type, stage, chunk, micro-batch in order); None where numbers differ."""
    ops, trace = model.trace.operations, model.trace
    found = []
    for optype in (kind.FORWARD, kind.BACKWARD):
        for stage in range(trace.n_stages):
            part = ops.of(optype, stage)
            at = np.arange(part.start, part.stop)
            for chunk in range(trace.n_chunks):
                mine = at[ops.chunk[at] == chunk]
                found.append(mine[np.lexsort((ops.seq[mine], ops.micro_batch[mine]))])
    if len({len(one) for one in found}) > 1 or len(found[0]) == 0:
        return None
    return np.stack(found).reshape(2, trace.n_stages, trace.n_chunks, -1)


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
    found: Floats = np.where(gap > chance, np.minimum(forward, backward), (forward + backward) / 2)
    return found


def _shift(times: Floats) -> Floats:
    """How much slower each rank is than its peers, 0 for what may be chance.

    Of (groups, n, steps, ranks) gives (groups, steps, ranks): the shift of all steps where it
    lasts, that of the single step where the step lies elsewhere.
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
    found: Floats = np.where(lasting, shift, 0.0).repeat(n_steps, axis=1)
    if n < LEAST_OPERATIONS:
        return found
    in_step = by_step - reference[:, None]
    elsewhere = np.abs(in_step - found) > np.maximum(SIGNIFICANT * step_error, LEAST_STEP_SHIFT)
    often = elsewhere.sum(axis=1, keepdims=True) >= least_steps(n_steps)
    return np.where(elsewhere & often, np.maximum(in_step, 0.0), found)


def _deviation(gaps: Floats) -> Floats:
    """Robust standard deviation of each row of gaps, by some thousands of them spread evenly."""
    stride = max(1, gaps.shape[1] // _SAMPLE)
    while math.gcd(stride, gaps.shape[1]) > 1:  # else some ranks or steps would never be met
        stride += 1
    found: Floats = MAD_TO_SD * median(np.abs(gaps[:, ::stride]), axis=1)
    return found


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
    found: Floats = np.maximum(1.0 + off / (1.0 + error / SLOPE_SD**2), 0.0).astype(work.dtype)
    return found
