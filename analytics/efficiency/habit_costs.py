"""What interruptions cost at the interval at which runs saved, and at another one."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.efficiency.attempt_time import checkpoint_under, parts_under
from analytics.efficiency.habit_model import LEAST_S, N_NODES
from analytics.efficiency.habits import FIELDS, Times
from analytics.failures.columns import require

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd

    from analytics.arrays import Bools, Floats, Ints
    from analytics.efficiency.habit_model import HabitModel
    from analytics.efficiency.habits import Habits

    OfModel = Callable[[str, HabitModel, Floats, Ints], Floats]
    HabitSets = tuple[tuple[Times, ...], list[tuple[Times, ...]], list[tuple[Times, ...]]]

COLUMNS: Final = (
    *("cluster", "run_id", "n_gpus", "several", "ran_s", "counted_s", "bucket", "cause", "node"),
    *("event", "again", "waited_s", *FIELDS),
)
"""What is read of each attempt."""
CLASSES: Final = (("several_nodes", True), ("one_node", False))
HOUR_S: Final = 3600.0
MINUTES: Final = (
    *(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0),
    *(50.0, 60.0, 70.0, 80.0, 90.0, 105.0, 120.0, 150.0, 180.0, 210.0, 240.0, 300.0, 360.0),
    *(480.0, 600.0, 720.0, 960.0, 1440.0),
)
"""Intervals between checkpoints that are tried: what people set."""


@dataclass(frozen=True)
class Ran:
    """What is played again of each attempt; arrays of shape (attempts,)."""

    ran_s: Ints
    gpu_hours_per_s: Floats
    several: Bools
    struck: Bools
    """It was interrupted."""
    again: Bools
    """And the run went on."""
    counted: Floats
    """Share of its time within the period."""

    @classmethod
    def of(cls, attempts: pd.DataFrame) -> Ran:
        """From a frame with `COLUMNS`."""
        require("attempts", attempts, COLUMNS)
        ran = attempts["ran_s"].to_numpy(dtype=np.int64)
        counted = attempts["counted_s"].to_numpy(dtype=float)
        struck = attempts["bucket"].notna().to_numpy(dtype=bool)
        return cls(
            ran,
            attempts["n_gpus"].to_numpy(dtype=float) / HOUR_S,
            attempts["several"].to_numpy(dtype=bool),
            struck,
            struck & attempts["again"].to_numpy(dtype=bool),
            np.divide(counted, ran, out=np.zeros(len(ran)), where=ran > 0),
        )

    def some(self, which: Bools | Ints) -> Ran:
        """Some of them."""
        return Ran(*(getattr(self, each.name)[which] for each in fields(self)))


@dataclass(frozen=True)
class Replayed:
    """Attempts played again under one habit; GPU-hours, arrays of shape (attempts,).

    What an interruption costs is 0 where there was none.
    """

    lost: Floats
    """Work since the last checkpoint."""
    restart: Floats
    """Start-up of the attempt with which the run went on."""
    written: Floats
    """Stopped to write checkpoints, of the time within the period."""


def habit_sets(
    attempts: pd.DataFrame, habits: Mapping[str, Habits], sampled: int, rng: np.random.Generator
) -> HabitSets:
    """Times of all attempts: in the mean, drawn from what is not known, and at assumed bounds.

    Each is a tuple over which costs are averaged by `mean_over`. A run's own metrics take the place
    of the habit of its class wherever they show it.

    Parameters
    ----------
    attempts : DataFrame
        With `COLUMNS`.
    habits
        Of each class of `CLASSES`.
    sampled : int
        Draws of the parameters that unobserved runs have in common and of each one's own habit;
        none where nothing is modelled.
    """
    modelled = any(each.models for each in habits.values())
    run = attempts.groupby(["cluster", "run_id"], dropna=False, sort=False).ngroup().to_numpy()
    drawn = [
        _times(attempts, habits, partial(_drawn, _normals(run.astype(np.int64), rng)))[:1]
        for _ in range(sampled if modelled else 0)
    ]
    assumes = any(each.assumes for each in habits.values())
    corners = [_times(attempts, habits, _mean, corner=at) for at in range(4)] if assumes else []
    return _times(attempts, habits, _mean), drawn, corners


def times_of(times: tuple[Times, ...], which: Bools | Ints) -> tuple[Times, ...]:
    """Times of some of the attempts."""
    return tuple(
        Times(*(np.asarray(getattr(each, name))[which] for name in FIELDS)) for each in times
    )


def _normals(run: Ints, rng: np.random.Generator) -> dict[str, tuple[float, Floats]]:
    """Of each quantity one normal variable for all, and one for each run, by attempt."""
    n = int(run.max(initial=0)) + 1
    return {name: (rng.standard_normal(), rng.standard_normal(n)[run]) for name in FIELDS}


def _times(
    attempts: pd.DataFrame,
    habits: Mapping[str, Habits],
    of_model: OfModel,
    corner: int | None = None,
) -> tuple[Times, ...]:
    """Times of each attempt, one set for each node of the interval where that is modelled."""
    several = attempts["several"].to_numpy(dtype=bool)
    sizes = attempts["n_gpus"].to_numpy(dtype=float)
    n = N_NODES if any("interval_s" in each.models for each in habits.values()) else 1
    found = {name: np.zeros((n, len(attempts))) for name in FIELDS}
    for of_class, is_several in CLASSES:
        at = np.flatnonzero(several == is_several)
        known = habits[of_class]
        habit = known.central if corner is None else known.corners[corner]
        for name in FIELDS:
            model = known.models.get(name)
            fixed = float(getattr(habit, name))
            found[name][:, at] = fixed if model is None else of_model(name, model, sizes[at], at)
    for name in FIELDS:
        own = attempts[name].to_numpy(dtype=float)
        if name == "interval_s":
            own = np.maximum(own, LEAST_S)  # a log of whole seconds may show 0
        found[name] = np.where(np.isnan(own), found[name], own)
    return tuple(Times(*(found[name][at] for name in FIELDS)) for at in range(n))


def _mean(name: str, model: HabitModel, sizes: Floats, _at: Ints) -> Floats:
    """The interval at every node, costs in the mean."""
    return model.nodes(sizes) if name == "interval_s" else model.mean(sizes)


def _drawn(
    normals: Mapping[str, tuple[float, Floats]],
    name: str,
    model: HabitModel,
    sizes: Floats,
    at: Ints,
) -> Floats:
    """One draw: what runs have in common, and each one's own."""
    shared, own = normals[name]
    between = np.log1p(model.own_cv2)
    common = between * model.shared_ratio(sizes)
    off = shared * np.sqrt(common) + own[at] * np.sqrt(between)
    return np.asarray(model.mean(sizes) * np.exp(off - (common + between) / 2))


def replayed(ran: Ran, times: tuple[Times, ...], interval_min: float | None = None) -> Replayed:
    """Costs under these times; runs on several nodes save every `interval_min` where it is given.

    Of an attempt that ran for x after its start-up u and trained for D, then wrote for w by turns,
    an interruption takes all of x where x < D, else the mean over a uniform phase,
    (D^2 / 2 + D w) / (D + w); half of D where writes cost nothing.

    Examples
    --------
    >>> one = np.array([True])
    >>> ten = Ran(np.array([36_000]), np.array([10 / 3600]), one, one, one, np.ones(1))
    >>> hourly = (Times(np.array([3600.0]), np.array([0.0]), np.array([360.0])),)
    >>> then, now = (replayed(ten, hourly, every) for every in (None, 30.0))
    >>> [float(each[0]) for each in (then.lost, now.lost, then.restart)]
    [5.0, 2.5, 1.0]
    """
    lost, restart, writing = [], [], []
    for each in times:
        parts = parts_under(ran.ran_s, _every(ran, each, interval_min))
        held = np.where(ran.struck, np.minimum(parts.lost, parts.worked), 0.0)
        lost.append(held * ran.gpu_hours_per_s)
        restart.append(np.where(ran.again, each.restart_s, 0.0) * ran.gpu_hours_per_s)
        writing.append(parts.checkpoint * ran.counted * ran.gpu_hours_per_s)
    return Replayed(*(mean_over(each) for each in (lost, restart, writing)))


def written(ran: Ran, times: tuple[Times, ...], interval_min: float | None = None) -> float:
    """Sum of `Replayed.written`."""
    writing = [
        checkpoint_under(ran.ran_s, _every(ran, each, interval_min))
        * ran.counted
        * ran.gpu_hours_per_s
        for each in times
    ]
    return float(mean_over(writing).sum())


def _every(ran: Ran, times: Times, interval_min: float | None) -> Times:
    """Times where runs on several nodes save every `interval_min`, if it is given."""
    if interval_min is None:
        return times
    interval = np.where(ran.several, interval_min * 60.0, times.interval_s)
    return replace(times, interval_s=interval)


def mean_over(values: list[Floats]) -> Floats:
    """Mean over the nodes of the interval, or the one value."""
    if len(values) == 1:
        return values[0]
    found: Floats = np.mean(values, axis=0)
    return found
