"""Where the running time of attempts went: its parts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.efficiency.habits import cases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.arrays import Bools, Floats, Ints
    from analytics.efficiency.habits import Cases, Habits, Times

PARTS = ("productive", "straggler", "checkpoint", "startup", "lost")
"""Parts of the running time of an attempt."""
SHOWN = {"startup": "startup_s", "checkpoint": "checkpoint_s", "lost": "unsaved_s"}
"""Part -> the column in which the attempt's training metrics show it (`training_log`)."""


@dataclass(frozen=True)
class AttemptTime:
    """Running time of attempts by part, whole seconds; arrays of one length.

    Attributes
    ----------
    value
        Part -> seconds, the mean over what is not known; the parts sum to the running time exactly.
    lower, upper
        Part -> least and greatest seconds under what is stated or assumed of checkpoints and
        start-up. They are wrong in all attempts alike and add up.
    shared
        Part -> standard deviation by the parameters that unobserved runs have in common
        (`habit_model`), seconds. It adds up over attempts and runs.
    own
        Part -> standard deviation by the habit of the run, seconds. It adds up over attempts of
        one run; over runs its square does.
    variance_s2
        Variance of `lost` (and so of `productive`) by chance, square seconds: an interruption
        strikes at any time between two checkpoints. It adds up over attempts.
    """

    value: Mapping[str, Ints]
    lower: Mapping[str, Ints]
    upper: Mapping[str, Ints]
    shared: Mapping[str, Floats]
    own: Mapping[str, Floats]
    variance_s2: Floats

    def of(self, places: Ints) -> AttemptTime:
        """The same of some of the attempts."""

        def some(parts: Mapping[str, Any]) -> dict[str, Any]:
            return {part: seconds[places] for part, seconds in parts.items()}

        return AttemptTime(
            some(self.value), some(self.lower), some(self.upper), some(self.shared),
            some(self.own), self.variance_s2[places],
        )  # fmt: skip

    def per_attempt(self) -> pd.DataFrame:
        """One row an attempt: seconds of each part, what is not known of the productive one.

        What stragglers waste is productive here: ETTR asks whether the run made headway, not how
        fast.
        """
        columns = {f"{part}_s": self.value[part] for part in SHOWN}
        for side in ("value", "lower", "upper", "shared", "own"):
            seconds = getattr(self, side)
            name = "productive_s" if side == "value" else f"{side}_productive_s"
            columns[name] = seconds["productive"] + seconds["straggler"]
        return pd.DataFrame(columns).assign(variance_s2=self.variance_s2)


def attempt_time(
    ran_s: Ints,
    interrupted: Bools,
    habits: Habits,
    measured: Mapping[str, Floats] | None = None,
    wasted_ratio: Floats | None = None,
    n_gpus: Ints | None = None,
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

    Where the habits of other runs have a model, u, D and w are those of a run of the attempt's size
    and every part is the mean over those of the runs observed: over u and D, in proportion to w.

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
    n_gpus : ndarray of int64, shape (n,)
        GPUs of each attempt; needed where habits have models.

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
    under = cases(habits, n_gpus)
    every, chances = [], []
    for times in (*under.nodes, *under.others):
        parts = parts_under(ran_s, times)
        lost, chance = _unsaved(parts, under.mean, habits.cycle_spread)
        lost = np.where(interrupted, np.minimum(lost, parts.worked), 0.0)
        every.append({"startup": parts.startup, "checkpoint": parts.checkpoint, "lost": lost})
        chances.append(chance)
    variance = under.average(chances)
    if measured is not None:
        variance = _measured(every, ran_s, interrupted, shown=measured, variance=variance)
    wasted = np.zeros(len(ran_s)) if wasted_ratio is None else wasted_ratio
    for seconds in every if under.others else ():
        kept = ran_s - seconds["startup"] - seconds["checkpoint"] - seconds["lost"]
        seconds["straggler"] = kept * wasted
        seconds["productive"] = kept - seconds["straggler"]
    value = _whole(under, every, ran_s, wasted)
    lower, upper = _bounds(under, every, value, ran_s)
    shared, own = _spreads(under, every, wasted, measured)
    return AttemptTime(value, lower, upper, shared, own, np.where(interrupted, variance, 0.0))


def _undisturbed(ran_s: Ints) -> AttemptTime:
    """Attempts of which nothing is spent or lost."""
    nothing = np.zeros(len(ran_s), dtype=np.int64)
    time = dict.fromkeys(PARTS, nothing) | {"productive": ran_s}
    sure = nothing.astype(float)
    spread = dict.fromkeys(PARTS, sure)
    return AttemptTime(time, time, time, spread, spread, sure)


@dataclass(frozen=True)
class Parts:
    """Running time under one habit, as if every attempt were interrupted at its end."""

    startup: Floats
    checkpoint: Floats
    worked: Floats
    lost: Floats
    """Expected where the phase is uniform."""
    variance: Floats
    turns: Floats
    """Complete checkpoints."""
    since: Floats
    """Work since the last of them by the clock of the habit."""


def parts_under(ran_s: Ints, times: Times) -> Parts:
    """Running time of attempts, seconds, by the parts that `attempt_time` defines."""
    interval, write = times.interval_s, times.write_s
    cycle = interval + write
    startup, after, turns, rest = _turns(ran_s, times)
    checkpoint = turns * write + np.maximum(rest - interval, 0.0)
    mean = (interval**2 / 2 + interval * write) / cycle
    saved = after >= interval
    return Parts(
        startup=startup,
        checkpoint=checkpoint,
        worked=after - checkpoint,
        lost=np.where(saved, mean, after),
        variance=np.where(saved, (interval**3 / 3 + interval**2 * write) / cycle - mean**2, 0.0),
        turns=turns,
        since=np.minimum(rest, interval),
    )


def checkpoint_under(ran_s: Ints, times: Times) -> Floats:
    """`Parts.checkpoint` alone."""
    *_, turns, rest = _turns(ran_s, times)
    found: Floats = turns * times.write_s + np.maximum(rest - times.interval_s, 0.0)
    return found


def _turns(ran_s: Ints, times: Times) -> tuple[Floats, ...]:
    """Start-up, time after it, turns of work and writing in that, and what is left of the last."""
    cycle = times.interval_s + times.write_s
    startup: Floats = np.minimum(ran_s, times.restart_s)
    after: Floats = ran_s - startup
    turns: Floats = np.floor(after / cycle)
    return startup, after, turns, after - turns * cycle


def _unsaved(parts: Parts, mean: Times, cycle_spread: float | None) -> tuple[Floats, Floats]:
    """Work since the last checkpoint, and its variance by chance.

    By the clock of the habit while the spread between runs leaves it known, else at a uniform
    phase.
    """
    if cycle_spread is None:
        return parts.lost, parts.variance
    drift = parts.turns * cycle_spread * (mean.interval_s + mean.write_s)
    known = drift**2 < parts.variance
    lost = np.where(known, parts.since, parts.lost)
    return lost, np.where(known, drift**2, parts.variance)


def _measured(
    every: list[dict[str, Floats]],
    ran_s: Ints,
    interrupted: Bools,
    *,
    shown: Mapping[str, Floats],
    variance: Floats,
) -> Floats:
    """Lays what an attempt's own metrics show over its habit; the variance that remains."""
    for parts_s in every:
        left = ran_s.astype(float)
        for part, column in SHOWN.items():
            own = shown[column]
            seconds = np.where(np.isnan(own), parts_s[part], np.rint(np.nan_to_num(own)))
            seconds = np.clip(seconds, 0.0, left)
            parts_s[part] = np.where(interrupted, seconds, 0.0) if part == "lost" else seconds
            left = left - parts_s[part]
    return np.where(np.isnan(shown["unsaved_s"]), variance, 0.0)


def _whole(
    under: Cases, every: Sequence[Mapping[str, Floats]], ran_s: Ints, wasted: Floats
) -> dict[str, Ints]:
    """Parts as whole seconds that sum to the running time: means over the nodes."""
    value, left = {}, ran_s
    for part in SHOWN:
        seconds = np.rint(under.average([each[part] for each in every])).astype(np.int64)
        value[part] = np.minimum(seconds, left)
        left = left - value[part]
    value["straggler"] = np.rint(left * wasted).astype(np.int64)
    value["productive"] = left - value["straggler"]
    return value


def _bounds(
    under: Cases,
    every: Sequence[Mapping[str, Floats]],
    value: Mapping[str, Ints],
    ran_s: Ints,
) -> tuple[Mapping[str, Ints], Mapping[str, Ints]]:
    """Least and greatest seconds of each part under what is stated or assumed."""
    if not under.others:
        return value, value
    central = every[len(under.nodes)] if under.modelled else every[0]
    others = every[len(under.nodes) :]
    lower, upper = {}, {}
    for part in PARTS:
        seconds = [central[part], *(each[part] for each in others)]
        least = np.rint(np.minimum.reduce(seconds) - central[part]).astype(np.int64)
        most = np.rint(np.maximum.reduce(seconds) - central[part]).astype(np.int64)
        lower[part] = np.maximum(value[part] + least, 0)
        upper[part] = np.minimum(value[part] + most, ran_s)
    return lower, upper


def _spreads(
    under: Cases,
    every: Sequence[Mapping[str, Floats]],
    wasted: Floats,
    measured: Mapping[str, Floats] | None,
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Standard deviations of each part: by what unobserved runs share, and by the run's own habit.

    Interval, write and start-up are independent of each other. What a part changes by as the habit
    does is the part itself: in proportion.
    """
    if not under.modelled:
        sure = dict.fromkeys(PARTS, np.zeros(len(wasted)))
        return sure, sure
    startup, saving, losing = ([each[part] for each in every] for part in SHOWN)
    moves = {
        part: under.average(values) * _open(measured, part)
        for part, values in zip(SHOWN, (startup, saving, losing), strict=True)
    }
    both = [saved + lost for saved, lost in zip(saving, losing, strict=True)]
    by_interval = partial(under.variance, "interval_s")
    of_write = ("write_s", moves["checkpoint"] ** 2 * _own_cv2(under, "write_s"))
    of_restart = ("restart_s", under.variance("restart_s", startup, moves["startup"]))
    variances = {
        "startup": (of_restart,),
        "checkpoint": (("interval_s", by_interval(saving, moves["checkpoint"])), of_write),
        "lost": (("interval_s", by_interval(losing, moves["lost"])),),
        "kept": (
            ("interval_s", by_interval(both, moves["lost"] - moves["checkpoint"])),
            of_write,
            of_restart,
        ),
    }
    shared, own = {}, {}
    for part, of in variances.items():
        own[part] = np.sqrt(sum(variance for _, variance in of))
        shared[part] = np.sqrt(sum(variance * under.shared[quantity] for quantity, variance in of))
    for spread in (shared, own):
        kept = spread.pop("kept")
        spread.update(productive=kept * (1 - wasted), straggler=kept * wasted)
    return shared, own


def _open(measured: Mapping[str, Floats] | None, part: str) -> Floats | float:
    """1 of attempts whose metrics do not show the part, 0 of the others."""
    return 1.0 if measured is None else np.isnan(measured[SHOWN[part]]).astype(float)


def _own_cv2(under: Cases, name: str) -> float:
    """Squared coefficient of variation of a quantity between runs; 0 without a model."""
    return under.models[name].own_cv2 if name in under.models else 0.0
