"""Where the running time of attempts went: start-up, checkpoints, lost work, productive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.efficiency.habits import Habit, Habits

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

PARTS = ("productive", "straggler", "checkpoint", "startup", "lost")
"""Parts of the running time of an attempt."""


@dataclass(frozen=True)
class AttemptTime:
    """Running time of attempts by part, whole seconds; arrays of one length.

    Attributes
    ----------
    value
        Part -> seconds; the parts sum to the running time exactly.
    lower, upper
        Part -> least and greatest seconds under what is assumed of checkpoints and start-up.
    variance_s2
        Variance of `lost` (and so of `productive`) by chance, square seconds: an interruption
        strikes at any time between two checkpoints.
    """

    value: Mapping[str, Ints]
    lower: Mapping[str, Ints]
    upper: Mapping[str, Ints]
    variance_s2: Floats


def attempt_time(
    ran_s: Ints,
    interrupted: NDArray[np.bool_],
    habits: Habits,
    measured: Mapping[str, Floats] | None = None,
    wasted_ratio: Floats | None = None,
) -> AttemptTime:
    """Running time of attempts of one class by part.

    An attempt starts up for u, then works for D and writes for w by turns. Of x = ran - u seconds
    thereafter, with (k, r) = divmod(x, D + w), it has written k w + max(r - D, 0) and worked the
    rest. What it worked since its last complete checkpoint is lost when it is interrupted:

    - x < D: all of x, since nothing was saved;
    - where other runs of the class show the interval with so little spread that the standard
      deviation of the k-th save, k x spread x (D + w), is below that of a uniform phase: min(r, D);
    - else, the phase being uniform: (D^2 / 2 + D w) / (D + w), with variance
      (D^3 / 3 + D^2 w) / (D + w) - mean^2.

    What is not interrupted loses nothing: errors of the user's own program do not count
    (papers.md A6).

    Parameters
    ----------
    ran_s : ndarray of int64, shape (n,)
        Running time, seconds, >= 0.
    interrupted : ndarray of bool, shape (n,)
        Ended by infrastructure, preemption or requeue.
    habits
        Habits of the class.
    measured
        `startup_s`, `checkpoint_s` and `unsaved_s` of each attempt as its own training metrics
        show them (`training_log.attempt_progress`), shape (n,); NaN where they do not. They take
        the place of the habit, with no spread.
    wasted_ratio
        Share of working time that stragglers waste, 1 - 1 / S, of attempts of runs with traces,
        shape (n,), in [0, 1); 0 where there is no trace. It is taken from the productive part.

    Examples
    --------
    >>> import numpy as np
    >>> from analytics.efficiency.habits import Habit, Habits
    >>> hourly = Habit(interval_s=3600, write_s=60, restart_s=300)
    >>> known = Habits(hourly, (hourly,) * 4, "configured", 0, None)
    >>> found = attempt_time(np.array([8000]), np.array([True]), known)
    >>> {part: int(found.value[part][0]) for part in PARTS}
    {'productive': 5750, 'straggler': 0, 'checkpoint': 120, 'startup': 300, 'lost': 1830}
    """
    calm = not interrupted.any() and measured is None and wasted_ratio is None
    if calm and habits.costless:
        return _undisturbed(ran_s)
    central = _parts(ran_s, habits.central)
    phase, of_phase = _phase(central, habits)
    known = of_phase < central.variance
    variance = np.where(known, of_phase, central.variance)
    every = []
    for habit in (habits.central, *habits.corners):
        parts = _parts(ran_s, habit)
        scale = _mean_unsaved(habit)[0] / _mean_unsaved(habits.central)[0]
        lost = np.where(known, np.rint(phase * scale), parts.lost).astype(np.int64)
        lost = np.where(interrupted, np.minimum(lost, parts.worked), 0)
        every.append({"startup": parts.startup, "checkpoint": parts.checkpoint, "lost": lost})
    if measured is not None:
        variance = _measured(every, ran_s, interrupted, shown=measured, variance=variance)
    for found in every:
        kept = ran_s - found["startup"] - found["checkpoint"] - found["lost"]
        waste = np.zeros(len(kept)) if wasted_ratio is None else np.rint(kept * wasted_ratio)
        found["straggler"] = waste.astype(np.int64)
        found["productive"] = kept - found["straggler"]
    return AttemptTime(
        value={part: every[0][part] for part in PARTS},
        lower={part: np.minimum.reduce([found[part] for found in every]) for part in PARTS},
        upper={part: np.maximum.reduce([found[part] for found in every]) for part in PARTS},
        variance_s2=np.where(interrupted, variance, 0.0),
    )


def _undisturbed(ran_s: Ints) -> AttemptTime:
    """Attempts of which nothing is spent or lost."""
    nothing = np.zeros(len(ran_s), dtype=np.int64)
    time = dict.fromkeys(PARTS, nothing) | {"productive": ran_s}
    return AttemptTime(value=time, lower=time, upper=time, variance_s2=nothing.astype(float))


@dataclass(frozen=True)
class _Parts:
    """Running time under one habit, as if every attempt were interrupted at its end."""

    startup: Ints
    checkpoint: Ints
    worked: Ints
    lost: Ints
    """Expected where the phase is uniform."""
    variance: Floats
    turns: Ints
    """Complete checkpoints."""
    rest: Ints
    """Time since the last of them."""


def _parts(ran_s: Ints, habit: Habit) -> _Parts:
    startup = np.minimum(ran_s, habit.restart_s)
    after = ran_s - startup
    turns, rest = np.divmod(after, habit.interval_s + habit.write_s)
    checkpoint = turns * habit.write_s + np.maximum(rest - habit.interval_s, 0)
    mean, variance = _mean_unsaved(habit)
    unsaved = after < habit.interval_s
    return _Parts(
        startup=startup,
        checkpoint=checkpoint,
        worked=after - checkpoint,
        lost=np.where(unsaved, after, round(mean)),
        variance=np.where(unsaved, 0.0, variance),
        turns=turns,
        rest=rest,
    )


def _mean_unsaved(habit: Habit) -> tuple[float, float]:
    """Mean and variance of the work since the last checkpoint at a uniform phase."""
    interval, write = habit.interval_s, habit.write_s
    cycle = interval + write
    mean = (interval**2 / 2 + interval * write) / cycle
    return mean, (interval**3 / 3 + interval**2 * write) / cycle - mean**2


def _phase(central: _Parts, habits: Habits) -> tuple[Ints, Floats]:
    """Work since the last checkpoint by the clock of the habit, and its variance."""
    habit = habits.central
    unsaved = np.minimum(central.rest, habit.interval_s)
    if habits.cycle_spread is None:
        return unsaved, np.full(len(unsaved), np.inf)
    drift = central.turns * habits.cycle_spread * (habit.interval_s + habit.write_s)
    return unsaved, np.asarray(drift, dtype=float) ** 2


def _measured(
    every: list[dict[str, Ints]],
    ran_s: Ints,
    interrupted: NDArray[np.bool_],
    *,
    shown: Mapping[str, Floats],
    variance: Floats,
) -> Floats:
    """Lays what an attempt's own metrics show over its habit; the variance that remains."""
    for found in every:
        left = ran_s.copy()
        for part, column in (
            ("startup", "startup_s"),
            ("checkpoint", "checkpoint_s"),
            ("lost", "unsaved_s"),
        ):
            own = shown[column]
            seconds = np.where(np.isnan(own), found[part], np.rint(np.nan_to_num(own)))
            seconds = np.clip(seconds.astype(np.int64), 0, left)
            found[part] = np.where(interrupted, seconds, 0) if part == "lost" else seconds
            left -= found[part]
    return np.where(np.isnan(shown["unsaved_s"]), variance, 0.0)
