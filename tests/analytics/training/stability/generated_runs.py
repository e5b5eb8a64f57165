"""Make-believe training runs that look like real ones, with or without one spike.

A run is made on a grid of logged steps (the course of the loss, its noise, the gradient norm) and
then read off in the order in which a log would hold it: restarts repeat steps, gaps leave some out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHAPES = ("blip", "sudden_rise", "build_up", "lasting_rise")
# Ordinary noise never goes further than this many standard deviations: more would be a spike.
WIDEST_NOISE = 6.5
LEAST_NOISE_MULTIPLE = 8.0
LEAST_SHARE_OF_LOSS = 0.03
MOST_TIMES_LOSS = 4.0
MOST_TIMES_GRAD_NORM = 60.0


@dataclass(frozen=True)
class Spike:
    """One spike: its shape, the series it shows in, the first and last raised logged steps."""

    shape: str
    series: str
    start_step: int
    last_step: int


@dataclass(frozen=True)
class Run:
    """A logged run, its rows in the order in which they were written."""

    step: Ints
    at: Floats
    loss: Floats
    grad_norm: Floats
    step_time_s: Floats
    learning_rate: Floats
    spikes: tuple[Spike, ...]


@dataclass(frozen=True)
class _Kind:
    """A kind of training: where its loss starts and ends, and how noisy it is."""

    name: str
    share: float
    first: tuple[float, float]
    final: tuple[float, float]
    noise: tuple[float, float]


@dataclass(frozen=True)
class _Plan:
    """The choices made once for a run; the arrays have one entry per step of the grid."""

    kind: _Kind
    every: int
    grid: Ints
    order: Ints
    resumed: Ints
    checkpoint_every: int
    schedule: str
    events: Ints
    warm_up: int


@dataclass(frozen=True)
class _Curves:
    """Series without noise or spike, and the noise as a share of each, per row of the log."""

    loss: Floats
    loss_noise: Floats
    loss_spread: Floats
    grad_norm: Floats
    grad_noise: Floats
    grad_spread: Floats
    decimals: int | None


_KINDS = (
    _Kind("pretraining", 0.40, (10.3, 12.0), (1.8, 3.2), (0.003, 0.025)),
    _Kind("continued", 0.10, (2.3, 2.8), (1.9, 2.2), (0.004, 0.03)),
    _Kind("fine_tuning", 0.18, (1.2, 2.0), (0.6, 1.0), (0.02, 0.11)),
    _Kind("multimodal", 0.16, (4.0, 8.0), (1.2, 3.0), (0.008, 0.05)),
    _Kind("small_loss", 0.16, (0.3, 1.0), (0.03, 0.09), (0.02, 0.10)),
)


def clean_run(seed: int) -> Run:
    """Return a run without a spike."""
    rng = np.random.default_rng(seed)
    plan = _plan(rng)
    curves, seconds, rates = _curves(rng, plan), _step_times(rng, plan), _learning_rates(rng, plan)
    loss, grad_norm = _with_noise(curves)
    return _logged(rng, plan, curves, (loss, grad_norm, seconds, rates), ())


def spiked_run(seed: int, shape: str) -> Run:
    """Return a run, otherwise made like a clean one, with exactly one spike of this shape."""
    rng = np.random.default_rng([seed, 1 + SHAPES.index(shape)])
    plan = _plan(rng)
    curves, seconds, rates = _curves(rng, plan), _step_times(rng, plan), _learning_rates(rng, plan)
    loss, grad_norm, spike = _with_spike(rng, plan, curves, shape)
    return _logged(rng, plan, curves, (loss, grad_norm, seconds, rates), (spike,))


def _chance(rng: np.random.Generator, share: float) -> bool:
    """Return true in this share of the calls."""
    return bool(rng.random() < share)


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a number whose logarithm is evenly spread between the two bounds."""
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def _one_of(rng: np.random.Generator, names: Sequence[str], shares: Sequence[float]) -> str:
    """Return one of the names, each in its share of the calls."""
    return names[int(rng.choice(len(names), p=shares))]


def _plan(rng: np.random.Generator) -> _Plan:
    """Choose the kind of run, the steps that are logged, the restarts and the schedule."""
    kind = _KINDS[int(rng.choice(len(_KINDS), p=[kind.share for kind in _KINDS]))]
    every = int(rng.choice([1, 5, 10], p=[0.6, 0.15, 0.25]))
    size = int(_log_uniform(rng, 2_400, 17_000))
    first = every * int(rng.choice([0, 1], p=[0.3, 0.7]))
    if kind.name == "continued":
        first = every * int(rng.integers(2_000, 80_000))
    grid = first + every * np.arange(size, dtype=np.int64)
    checkpoint_every = int(size * _log_uniform(rng, 0.005, 0.033))
    order, resumed = _row_order(rng, size, checkpoint_every)
    schedule = _one_of(rng, ("cosine", "wsd", "steps", "constant"), (0.4, 0.25, 0.2, 0.15))
    if schedule == "wsd":
        events = np.array([int(size * rng.uniform(0.75, 0.92))], dtype=np.int64)
    elif schedule == "steps":
        at = np.sort(rng.uniform(0.3, 0.92, int(rng.integers(1, 4))))
        events = (at * size).astype(np.int64)
    else:
        events = np.zeros(0, dtype=np.int64)
    warm_up = int(size * _log_uniform(rng, 0.003, 0.06))
    return _Plan(kind, every, grid, order, resumed, checkpoint_every, schedule, events, warm_up)


def _row_order(rng: np.random.Generator, size: int, checkpoint_every: int) -> tuple[Ints, Ints]:
    """Return the grid position of every row, and the rows that come first after a restart."""
    restarts = int(rng.choice(5, p=[0.35, 0.25, 0.18, 0.12, 0.10]))
    crashes = np.sort(rng.integers(int(0.04 * size), int(0.99 * size), restarts))
    parts: list[Ints] = []
    begin = 0
    for crash in crashes:
        parts.append(np.arange(begin, crash, dtype=np.int64))
        begin = int(crash // checkpoint_every * checkpoint_every)
    parts.append(np.arange(begin, size, dtype=np.int64))
    order = np.concatenate(parts)
    starts_part = np.zeros(len(order), dtype=np.bool_)
    starts_part[np.cumsum([len(part) for part in parts])[:-1]] = True
    if _chance(rng, 0.25):
        missing = int(_log_uniform(rng, 5, 0.04 * size))
        gap = int(rng.choice(crashes)) if restarts and _chance(rng, 0.5) else 0
        gap = gap or int(rng.integers(int(0.05 * size), int(0.9 * size)))
        kept = (order < gap) | (order >= min(gap + missing, size - 2))
        order, starts_part = order[kept], starts_part[kept]
    return order, np.flatnonzero(starts_part).astype(np.int64)


def _learning_rates(rng: np.random.Generator, plan: _Plan) -> Floats:
    """Return the learning rate of every row: a warm-up, then the schedule of the plan."""
    size = len(plan.grid)
    place = np.arange(size, dtype=np.float64)
    peak, floor = _log_uniform(rng, 1e-5, 2e-3), float(rng.choice([0.0, 0.01, 0.1]))
    rate = np.ones(size)
    if plan.schedule == "cosine":
        after = np.clip((place - plan.warm_up) / (size - plan.warm_up), 0.0, 1.0)
        rate = floor + (1.0 - floor) * 0.5 * (1.0 + np.cos(math.pi * after))
    elif plan.schedule == "wsd":
        after = np.clip((place - plan.events[0]) / (size - plan.events[0]), 0.0, 1.0)
        rate = 1.0 - (1.0 - floor) * (after if _chance(rng, 0.6) else np.sqrt(after))
    factor = float(rng.choice([0.1, 0.316, 0.5]))
    if plan.schedule == "steps":
        rate = factor ** np.searchsorted(plan.events, place, side="right").astype(np.float64)
    rate = rate * np.minimum(1.0, (place + 1.0) / plan.warm_up) * peak
    return np.asarray(rate[plan.order], dtype=np.float64)


def _fall(rng: np.random.Generator, plan: _Plan) -> Floats:
    """Return how much of the fall of the loss is still ahead: from 1 at the start to 0."""
    size = len(plan.grid)
    wait = plan.warm_up * rng.uniform(0.0, 0.6)
    after = np.maximum(np.arange(size, dtype=np.float64) - wait, 0.0) / size
    if _chance(rng, 0.65):
        left = (1.0 + after / _log_uniform(rng, 0.001, 0.02)) ** -rng.uniform(0.4, 1.0)
    else:
        left = np.exp(-after / _log_uniform(rng, 0.015, 0.2))
    return np.asarray((left - left[-1]) / (left[0] - left[-1]), dtype=np.float64)


def _loss_course(rng: np.random.Generator, plan: _Plan) -> Floats:
    """Return the loss at every grid step, without noise."""
    size = len(plan.grid)
    place = np.arange(size, dtype=np.float64)
    final = rng.uniform(*plan.kind.final)
    level = final + (rng.uniform(*plan.kind.first) - final) * _fall(rng, plan)
    if plan.schedule == "cosine":
        level = level * (1.0 - rng.uniform(0.0, 0.04) * (place / size) ** 2)
    elif plan.schedule == "wsd":
        after = np.clip((place - plan.events[0]) / (size - plan.events[0]), 0.0, 1.0)
        level = level * (1.0 - rng.uniform(0.02, 0.08) * after ** rng.uniform(0.6, 1.0))
    elif plan.schedule == "steps":
        for event in plan.events:
            pace = rng.uniform(10.0, 40.0) / plan.every
            gone = 1.0 - np.exp(-np.maximum(place - event, 0.0) / pace)
            level = level * (1.0 - rng.uniform(0.015, 0.10) * gone)
    if plan.kind.name == "fine_tuning" and _chance(rng, 0.4):
        epochs = int(rng.integers(2, 5))
        for epoch in range(1, epochs):
            gone = np.clip((place - size * epoch / epochs) * plan.every / 5.0, 0.0, 1.0)
            level = level * (1.0 - rng.uniform(0.03, 0.12) * gone)
    if _chance(rng, 0.35):
        level = level * _mixture_changes(rng, plan)
    return np.asarray(level, dtype=np.float64)


def _mixture_changes(rng: np.random.Generator, plan: _Plan) -> Floats:
    """Return the small level changes that follow a change of the data mixture.

    A shuffled buffer averages the old data with the new, so the change takes some hundred steps.
    """
    size = len(plan.grid)
    place = np.arange(size, dtype=np.float64)
    factor = np.ones(size)
    for _ in range(int(rng.integers(1, 3))):
        ramp = rng.uniform(100.0, 300.0) / plan.every
        came = np.clip((place - size * rng.uniform(0.1, 0.95)) / ramp, 0.0, 1.0)
        factor = factor * (1.0 + rng.uniform(-0.01, 0.01) * came)
    return factor


def _batch_and_length(rng: np.random.Generator, plan: _Plan, course: Floats) -> tuple[Floats, ...]:
    """Return the loss and the share of noise after batch-size ramps and length changes."""
    size = len(plan.grid)
    spread = np.full(size, _log_uniform(rng, *plan.kind.noise))
    if _chance(rng, 0.3):
        for place in np.sort(rng.uniform(0.02, 0.6, int(rng.integers(1, 5)))):
            spread[int(place * size) :] /= math.sqrt(float(rng.choice([1.33, 1.5, 2.0])))
    if _chance(rng, 0.2):
        at, ramp = int(rng.uniform(0.3, 0.9) * size), rng.uniform(1.0, 60.0) / plan.every
        came = np.clip((np.arange(size) - at) / ramp, 0.0, 1.0)
        course = course * (1.0 - rng.uniform(0.002, 0.02) * came)
        spread[at:] *= rng.uniform(0.8, 1.25)
    return course, spread


def _noise(rng: np.random.Generator, size: int, law: str, freedom: float, memory: float) -> Floats:
    """Return noise of mean 0 and deviation 1 of this law, each value recalling the one before."""

    def draw(count: int) -> Floats:
        if law == "skewed":
            return (rng.gamma(freedom, 1.0, count) - freedom) / math.sqrt(freedom)
        if law == "heavy":
            return rng.standard_t(freedom, count) / math.sqrt(freedom / (freedom - 2.0))
        return rng.standard_normal(count)

    values = draw(size)
    while (wide := np.abs(values) > WIDEST_NOISE).any():
        values[wide] = draw(int(wide.sum()))
    if memory > 0.0:
        fresh = math.sqrt(1.0 - memory**2)
        for place in range(1, size):
            values[place] = memory * values[place - 1] + fresh * values[place]
    return values


def _noise_of_rows(rng: np.random.Generator, plan: _Plan, memory: float) -> Floats:
    """Return the noise of every row; steps that come again have the same noise, or other."""
    law = _one_of(rng, ("gaussian", "skewed", "heavy"), (0.4, 0.25, 0.35))
    freedom = rng.uniform(4.0, 6.0) if law == "heavy" else rng.uniform(3.0, 12.0)
    usual = _noise(rng, len(plan.grid), law, freedom, memory)[plan.order]
    other = _noise(rng, len(plan.order), law, freedom, memory)
    alike = float(rng.choice([1.0, 0.97, 0.0], p=[0.4, 0.2, 0.4]))
    again = np.ones(len(plan.order), dtype=np.bool_)
    again[np.unique(plan.order, return_index=True)[1]] = False
    mixed = alike * usual + math.sqrt(1.0 - alike**2) * other
    return np.asarray(np.where(again, mixed, usual), dtype=np.float64)


def _curves(rng: np.random.Generator, plan: _Plan) -> _Curves:
    """Return the course and the noise of the loss and of the gradient norm, per row."""
    loss, spread = _batch_and_length(rng, plan, _loss_course(rng, plan))
    memory = rng.uniform(0.3, 0.9) if _chance(rng, 0.35) else 0.0
    noise = _noise_of_rows(rng, plan, memory) * spread[plan.order]
    deviation = _log_uniform(rng, 0.04, 0.3) * np.sqrt(spread / spread[0])
    own = _noise(rng, len(plan.grid), "gaussian", 0.0, memory if _chance(rng, 0.5) else 0.0)
    grad_noise = (deviation * own)[plan.order]
    decimals = None
    if _chance(rng, 0.25):
        decimals = 3 if plan.kind.name == "small_loss" else int(rng.integers(2, 4))
    grad_norm = _grad_norm_course(rng, plan)[plan.order]
    kept = (noise, spread[plan.order], grad_norm, grad_noise, deviation[plan.order])
    return _Curves(loss[plan.order], *kept, decimals)


def _grad_norm_course(rng: np.random.Generator, plan: _Plan) -> Floats:
    """Return the gradient norm without noise: high in warm-up, falling, growing late in some."""
    size = len(plan.grid)
    place = np.arange(size, dtype=np.float64)
    settled = _log_uniform(rng, 0.08, 3.0)
    early = 1.0 + _log_uniform(rng, 1.0, 12.0) * np.exp(-place / (plan.warm_up * 0.7))
    falling = (1.0 + place / (0.03 * size)) ** -rng.uniform(0.0, 0.3)
    late = np.ones(size)
    if _chance(rng, 0.3):
        late = 1.0 + rng.uniform(0.05, 0.4) * np.clip((place / size - 0.6) / 0.4, 0.0, 1.0)
    return np.asarray(settled * early * falling * late, dtype=np.float64)


def _step_times(rng: np.random.Generator, plan: _Plan) -> Floats:
    """Return the seconds of every row's step; evaluations, checkpoints, restarts are slow."""
    rows = len(plan.order)
    usual = _log_uniform(rng, 0.15, 20.0)
    seconds = usual * np.exp(_log_uniform(rng, 0.003, 0.05) * rng.standard_normal(rows))
    saved = (plan.order > 0) & (plan.order % plan.checkpoint_every == 0)
    seconds[saved] += _log_uniform(rng, 0.5, 60.0)
    evaluation_every = max(20, int(plan.checkpoint_every * rng.choice([0.5, 1.0, 2.0])))
    evaluated = (plan.order > 0) & (plan.order % evaluation_every == 0)
    seconds[evaluated] += usual * _log_uniform(rng, 1.0, 40.0)
    late = rng.random(rows) < _log_uniform(rng, 1e-4, 5e-3)
    seconds[late] *= rng.uniform(1.2, 4.0, int(late.sum()))
    seconds[0] *= rng.uniform(3.0, 20.0)
    seconds[plan.resumed] *= rng.uniform(3.0, 20.0, len(plan.resumed))
    return np.asarray(seconds, dtype=np.float64)


def _times(rng: np.random.Generator, plan: _Plan, seconds: Floats) -> Floats:
    """Return when each row was written, or no times at all in a quarter of the runs."""
    rows = len(plan.order)
    if _chance(rng, 0.25):
        return np.full(rows, np.nan)
    usual = float(np.median(seconds))
    apart = np.diff(plan.grid[plan.order], prepend=plan.grid[plan.order[0]] - plan.every)
    unseen = np.maximum(apart - 1, 0) * usual
    unseen[plan.resumed] = rng.uniform(120.0, 20_000.0, len(plan.resumed))
    begun = rng.uniform(1.58e9, 1.77e9)
    return np.asarray(begun + np.cumsum(seconds + unseen), dtype=np.float64)


def _with_noise(curves: _Curves) -> tuple[Floats, Floats]:
    """Return the loss and the gradient norm with their ordinary noise."""
    loss = curves.loss * (1.0 + curves.loss_noise)
    return loss, curves.grad_norm * np.exp(curves.grad_noise)


def _logged(
    rng: np.random.Generator,
    plan: _Plan,
    curves: _Curves,
    series: tuple[Floats, Floats, Floats, Floats],
    spikes: tuple[Spike, ...],
) -> Run:
    """Return the run as its log holds it, with few digits if it was printed that way."""
    loss, grad_norm, seconds, rates = series
    at = _times(rng, plan, seconds)
    if curves.decimals is not None:
        loss, grad_norm = np.round(loss, curves.decimals), np.round(grad_norm, 3)
    return Run(plan.grid[plan.order], at, loss, grad_norm, seconds, rates, spikes)


@dataclass(frozen=True)
class _Form:
    """The course of a spike in time, in steps; a lasting rise has no end."""

    shape: str
    rise: float
    fall: float
    bend: float

    def height(self, steps: Floats, clearance: float) -> Floats:
        """Return the part of the peak reached so many steps after the start.

        The clearance is the peak as a multiple of the noise; a recovery ends within the noise.
        """
        begun = steps >= 0.0
        after = np.maximum(steps, 0.0)
        if self.shape == "blip":
            return np.where(begun & (after < self.fall), 1.0, 0.0)
        if self.shape == "lasting_rise":
            rising = 1.0 - np.exp(-(after + 1.0) / self.rise) if self.rise > 0.0 else 1.0
            return np.where(begun, rising, 0.0)
        # Past its end a recovery goes to nothing at once: what was left of it is under the noise.
        left = np.exp(-np.maximum(after - self.rise, 0.0) / self.fall * math.log(clearance))
        left = np.where(after > self.rise + self.fall, 0.0, left)
        if self.rise > 0.0:
            left = np.where(after < self.rise, (after / self.rise) ** self.bend, left)
        return np.where(begun, left, 0.0)


def _form(rng: np.random.Generator, shape: str, every: int) -> _Form:
    """Choose how long a spike of this shape takes to rise and to fall back."""
    if shape == "blip":
        return _Form(shape, 0.0, float(rng.integers(1, 4)), 1.0)
    if shape == "sudden_rise":
        return _Form(shape, 0.0, max(_log_uniform(rng, 10.0, 200.0), 3.0 * every), 1.0)
    if shape == "build_up":
        rise = math.ceil(max(_log_uniform(rng, 20.0, 100.0), 4.0 * every) / every) * every
        fall = max(_log_uniform(rng, 5.0, 80.0), float(every))
        return _Form(shape, float(rise), fall, rng.uniform(1.0, 2.0))
    return _Form(shape, 0.0 if _chance(rng, 0.3) else _log_uniform(rng, 1.0, 40.0), 0.0, 1.0)


def _place(rng: np.random.Generator, plan: _Plan, form: _Form) -> int:
    """Choose the row where a spike starts, among stretches of the log that do not come again."""
    rows = len(plan.order)
    length = int((3.0 * form.rise + form.fall) / plan.every) + 8
    once = np.bincount(plan.order, minlength=len(plan.grid))[plan.order] == 1
    onward = np.diff(plan.order, prepend=-1) == 1
    unclear = np.concatenate([[0], np.cumsum(~(once & onward))])
    first = np.arange(int(0.15 * rows) + 8, int(0.95 * rows) - length)
    clear = first[unclear[first + length] == unclear[first - 6]]
    return int(rng.choice(clear))


def _loss_peak(rng: np.random.Generator, curves: _Curves, row: int) -> tuple[float, float]:
    """Return how far the loss rises at a row, and the size of its ordinary noise there."""
    level = float(curves.loss[row])
    noise = level * float(curves.loss_spread[row])
    if curves.decimals is not None:
        noise = math.hypot(noise, 10.0**-curves.decimals / math.sqrt(12.0))
    around = slice(max(0, row - 300), row + 300)
    widest = float(np.max(curves.loss_noise[around])) * level
    least = max(LEAST_NOISE_MULTIPLE * noise, LEAST_SHARE_OF_LOSS * level, 1.5 * widest)
    return _log_uniform(rng, least, max(MOST_TIMES_LOSS * level, 1.5 * least)), noise


def _grad_peak(rng: np.random.Generator, curves: _Curves, row: int) -> tuple[float, float]:
    """Return how far the gradient norm rises at a row, and its ordinary noise there."""
    level, spread = float(curves.grad_norm[row]), float(curves.grad_spread[row])
    least = max(1.0, LEAST_NOISE_MULTIPLE * spread, 1.3 * math.exp(4.0 * spread) - 1.0)
    return level * _log_uniform(rng, least, MOST_TIMES_GRAD_NORM - 1.0), level * spread


def _with_spike(
    rng: np.random.Generator, plan: _Plan, curves: _Curves, shape: str
) -> tuple[Floats, Floats, Spike]:
    """Return the loss and the gradient norm with noise and one spike, and that spike."""
    form = _form(rng, shape, plan.every)
    row = _place(rng, plan, form)
    series = _one_of(rng, ("both", "loss", "grad_norm"), (0.74, 0.13, 0.13))
    step = plan.grid[plan.order]
    after = (step - step[row]).astype(np.float64)
    loss, grad_norm = _with_noise(curves)
    raised = np.zeros(len(step), dtype=np.bool_)
    if series != "grad_norm":
        peak, noise = _loss_peak(rng, curves, row)
        extra = peak * form.height(after, peak / noise)
        raised |= extra >= noise
        loss = loss + extra * _uneven(rng, len(step))
    if series != "loss":
        peak, noise = _grad_peak(rng, curves, row)
        ahead = _chance(rng, 0.4) and series == "both"
        lead = plan.every * int(rng.integers(1, max(2, 1 + 5 // plan.every))) if ahead else 0
        extra = peak * form.height(after + lead, peak / noise)
        raised |= extra >= noise
        grad_norm = grad_norm + extra * _uneven(rng, len(step))
    return loss, grad_norm, Spike(shape, series, *_bounds(step, raised))


def _uneven(rng: np.random.Generator, rows: int) -> Floats:
    """Return factors near 1 that make the course of a spike a little ragged."""
    return np.clip(1.0 + 0.06 * rng.standard_normal(rows), 0.9, 1.2)


def _bounds(step: Ints, raised: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the first and the last of the raised steps."""
    found = step[raised]
    return int(found.min()), int(found.max())
