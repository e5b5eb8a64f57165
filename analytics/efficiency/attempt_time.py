"""Where the running time of attempts went: its parts, and their GPU-seconds day by day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.efficiency.habits import Habit, Habits

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

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

    def per_attempt(self) -> pd.DataFrame:
        """One row an attempt: seconds of each part, bounds of the productive one, variance.

        What stragglers waste is productive here: ETTR asks whether the run made headway, not how
        fast.
        """
        columns = {f"{part}_s": self.value[part] for part in SHOWN}
        for side, seconds in (("", self.value), ("lower_", self.lower), ("upper_", self.upper)):
            columns[f"{side}productive_s"] = seconds["productive"] + seconds["straggler"]
        return pd.DataFrame(columns).assign(variance_s2=self.variance_s2)


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
    for parts_s in every:
        kept = ran_s - parts_s["startup"] - parts_s["checkpoint"] - parts_s["lost"]
        waste = np.zeros(len(kept)) if wasted_ratio is None else np.rint(kept * wasted_ratio)
        parts_s["straggler"] = waste.astype(np.int64)
        parts_s["productive"] = kept - parts_s["straggler"]
    return AttemptTime(
        value={part: every[0][part] for part in PARTS},
        lower={part: np.minimum.reduce([parts_s[part] for parts_s in every]) for part in PARTS},
        upper={part: np.maximum.reduce([parts_s[part] for parts_s in every]) for part in PARTS},
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
    for parts_s in every:
        left = ran_s.copy()
        for part, column in SHOWN.items():
            own = shown[column]
            seconds = np.where(np.isnan(own), parts_s[part], np.rint(np.nan_to_num(own)))
            seconds = np.clip(seconds.astype(np.int64), 0, left)
            parts_s[part] = np.where(interrupted, seconds, 0) if part == "lost" else seconds
            left -= parts_s[part]
    return np.where(np.isnan(shown["unsaved_s"]), variance, 0.0)


DAY_S = 86_400
RULE_S = 1_800
"""Work that the RSC paper takes an interrupted attempt to lose at most: half of an hourly
checkpoint interval (papers.md A7)."""

COUNTS = (
    *("gpu_seconds", "lower_gpu_seconds", "upper_gpu_seconds", "variance_gpu_s2"),
    *("n_attempts", "rule_gpu_seconds"),
)
COLUMNS = ["group", "day", "loss", "part", *COUNTS]
"""Columns of the rows."""


@dataclass(frozen=True)
class Held:
    """Attempts that held GPUs; arrays of one length."""

    start_s: Ints
    """Start, seconds since the epoch."""
    ran_s: Ints
    """Running time, seconds."""
    n_gpus: Ints
    group: Ints
    """Code of what rows are told apart by, beside the day; >= 0."""
    loss: Ints
    """Code of the bucket and cause of what it lost; -1 where nothing interrupted it."""
    counted_from_s: Ints
    """Time from which records are complete, seconds since the epoch: what is before is left out."""


def daily_rows(held: Held, time: AttemptTime) -> pd.DataFrame:
    """GPU-seconds by group, day and part of the running time.

    An attempt's parts lie in time as they happen: start-up first, checkpoints spread evenly over
    the rest, lost work at the end; so the parts of all days sum to those of the attempt, to the
    second. Bounds are spread evenly.

    Returns
    -------
    DataFrame
        One row for each `group`, `day` (days since the epoch), `part` and `loss` (-1 but for
        lost work): `gpu_seconds`, `lower_gpu_seconds`, `upper_gpu_seconds`, `variance_gpu_s2`;
        `n_attempts` on the day on which they end; of lost work `rule_gpu_seconds` on that day.
    """
    first = held.start_s // DAY_S
    end_s = held.start_s + held.ran_s
    n_days = np.maximum(end_s - 1, held.start_s) // DAY_S - first + 1
    row = np.repeat(np.arange(len(first)), n_days)
    place = np.arange(len(row)) - np.repeat(np.cumsum(n_days) - n_days, n_days)
    day = first[row] + place
    start = held.start_s[row]
    since = np.maximum(start, held.counted_from_s[row])
    until = np.minimum((day + 1) * DAY_S, end_s[row]) - start
    begin = np.minimum(np.maximum(day * DAY_S, since) - start, until)
    last = place == n_days[row] - 1
    if not (held.loss >= 0).any() and not any(
        time.upper[part].any() for part in PARTS if part != "productive"
    ):
        return _undisturbed_days(held, row, {"day": day, "seconds": until - begin, "last": last})
    ran = held.ran_s[row]
    counted = (until > begin) | ((ran == 0) & (since == start))
    value = {part: seconds[row] for part, seconds in time.value.items()}
    done, before = (_so_far(at, value, ran) for at in (until, begin))
    share = (until - begin) / np.maximum(ran, 1) * held.n_gpus[row]
    frames = []
    for part in PARTS:
        struck = part == "lost"
        of_part = held.loss[row] >= 0 if struck else time.upper[part][row] > 0
        kept = np.flatnonzero(of_part & counted)
        chosen = row[kept]
        counts = {
            "gpu_seconds": (done[part] - before[part])[kept] * held.n_gpus[chosen],
            "lower_gpu_seconds": time.lower[part][chosen] * share[kept],
            "upper_gpu_seconds": time.upper[part][chosen] * share[kept],
        }
        if part in ("productive", "lost"):
            by_chance = time.variance_s2[chosen] * held.n_gpus[chosen].astype(float) ** 2
            counts["variance_gpu_s2"] = np.where(last[kept], by_chance, 0.0)
        counts["n_attempts"] = last[kept]
        if struck:
            by_rule = np.minimum(ran[kept], RULE_S) * held.n_gpus[chosen]
            counts["rule_gpu_seconds"] = np.where(last[kept], by_rule, 0)
        keys = {
            "group": held.group[chosen],
            "day": day[kept],
            "loss": held.loss[chosen] if struck else np.full(len(kept), -1),
        }
        frames.append(_sums(keys, counts).assign(part=part))
    return pd.concat(frames, ignore_index=True).reindex(columns=COLUMNS)


def _undisturbed_days(held: Held, row: Ints, pieces: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    """Rows of attempts that were productive throughout."""
    keys = {"group": held.group[row], "day": pieces["day"], "loss": np.full(len(row), -1)}
    counts = {
        "gpu_seconds": pieces["seconds"] * held.n_gpus[row],
        "n_attempts": pieces["last"] & (pieces["seconds"] > 0),
    }
    rows = _sums(keys, counts).assign(part="productive")
    bounds = {f"{side}_gpu_seconds": rows["gpu_seconds"] for side in ("lower", "upper")}
    return rows.assign(**bounds, variance_gpu_s2=0.0).reindex(columns=COLUMNS)


def _so_far(at: Ints, value: Mapping[str, Ints], ran_s: Ints) -> dict[str, Ints]:
    """Seconds of each part up to a time since the start."""
    startup = np.minimum(at, value["startup"])
    after, in_all = at - startup, ran_s - value["startup"]
    checkpoint = value["checkpoint"] * after // np.maximum(in_all, 1)
    worked = after - checkpoint
    in_kept = value["productive"] + value["straggler"]
    kept = np.minimum(worked, in_kept)
    straggler = value["straggler"] * kept // np.maximum(in_kept, 1)
    return {
        "startup": startup,
        "checkpoint": checkpoint,
        "straggler": straggler,
        "productive": kept - straggler,
        "lost": worked - kept,
    }


def _sums(keys: Mapping[str, Ints], counts: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    """Sums of counts by key; whole numbers below 2^53 stay exact."""
    joint = np.zeros(len(keys["group"]), dtype=np.int64)
    sizes = {}
    for name, values in keys.items():
        least = int(values.min(initial=0))
        sizes[name] = (least, int(values.max(initial=0)) - least + 1)
        joint = joint * sizes[name][1] + (values - least)
    code, distinct = pd.factorize(joint)
    columns: dict[str, NDArray[np.int64] | NDArray[np.float64]] = {}
    for name in reversed(list(keys)):
        least, size = sizes[name]
        distinct, rest = np.divmod(np.asarray(distinct), size)
        columns[name] = rest + least
    for name, values in counts.items():
        columns[name] = np.bincount(code, weights=values, minlength=len(columns["group"]))
    return pd.DataFrame(columns)
