"""How runs of a class start up and save: observed, configured or assumed, with its bounds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import pandas as pd

from analytics.efficiency.habit_model import N_NODES, HabitModel, habit_model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.arrays import Floats, Ints

Range: TypeAlias = tuple[float, float]
Basis: TypeAlias = Literal["observed_runs", "configured", "assumed"]

QUANTITIES: Final = {
    "interval_s": "checkpoint_interval_s",
    "write_s": "checkpoint_write_s",
    "restart_s": "restart_s",
}
"""Field of a habit -> the column of `run_habits` in which training metrics show it."""
_COUNTS: Final = {
    "interval_s": ("n_intervals", "sd_interval_s"),
    "write_s": ("n_writes", "sd_write_s"),
    "restart_s": ("n_restarts", "sd_restart_s"),
}
"""Field of a habit -> the columns with how many values a run shows, and their deviation."""

SEVERAL_NODES: Final = {
    "interval_s": (3_600.0, (900.0, 14_400.0)),
    "write_s": (60.0, (0.0, 300.0)),
    "restart_s": (300.0, (60.0, 1_200.0)),
}
"""Value and range assumed of jobs on several nodes where nothing is known.

Hourly checkpoints and a restart of 5 to 20 minutes are the RSC paper's (papers.md A6, A7), writes
of up to 5 minutes its second version's; the rest of the ranges is ours.
"""
ONE_NODE: Final = {
    "interval_s": (3_600.0, (900.0, 14_400.0)),
    "write_s": (0.0, (0.0, 0.0)),
    "restart_s": (0.0, (0.0, 0.0)),
}
"""The same of jobs on one node: what they take to start and to save is not counted."""
OBSERVED: Final = (
    "n_gpus",
    *QUANTITIES.values(),
    *(column for columns in _COUNTS.values() for column in columns),
)
"""Columns of runs whose training metrics are stored, as `habits` takes them."""

_BASES: Final = {
    "observed_runs": "as training metrics of {n} show (in brackets: nine in ten of further runs)",
    "configured": "as [runs] of site.toml states",
    "assumed": "assumed after published habits: training metrics or [runs] of site.toml say better",
}
_CLASSES: Final = {"several_nodes": "Jobs on several nodes", "one_node": "Jobs on one node"}


@dataclass(frozen=True)
class Habit:
    """Times of one habit, whole seconds."""

    interval_s: int
    """Working time between two checkpoints, at least 1."""
    write_s: int
    """Time for which a checkpoint stops the run."""
    restart_s: int
    """Time from start to the first step."""


@dataclass(frozen=True)
class Habits:
    """What is known of the habits of a class of jobs.

    Attributes
    ----------
    central
        The habit that estimates take; of a quantity that runs show, its mean at their mean size.
    corners
        Habits at the bounds of what is stated or assumed: every combination of the least and the
        greatest interval, and of the two least and the two greatest costs. What runs show is the
        central value there: its spread is that of the model.
    basis
        What they rest on, the weakest of the three quantities: `observed_runs` (training metrics
        of other runs), `configured` (site.toml), `assumed` (published habits).
    n_runs
        Runs whose training metrics show the interval.
    cycle_spread
        Standard deviation of interval + write over its mean, between those runs, and no less than
        their number lets the model tell; None where fewer than two show it: then nothing is known
        of when a run saves.
    models
        Quantity -> the model of those that runs show.
    """

    central: Habit
    corners: tuple[Habit, ...]
    basis: Basis
    n_runs: int
    cycle_spread: float | None
    models: Mapping[str, HabitModel] = field(default_factory=dict)

    @property
    def record(self) -> dict[str, Any]:
        """As values of JSON: of each time the value, its least and its greatest; the models.

        The bounds of what runs show are those of one further run of their mean size, at 90 %.
        """
        return {
            "basis": self.basis,
            "n_runs": self.n_runs,
            "cycle_spread": self.cycle_spread,
            **{name: [getattr(self.central, name), *self._range(name)] for name in QUANTITIES},
            "models": {name: model.record for name, model in self.models.items()},
        }

    def _range(self, name: str) -> tuple[int, int]:
        """Bounds of a quantity, whole seconds."""
        if name in self.models:
            lower, upper = self.models[name].bounds(np.array([2.0 ** self.models[name].centre]))
            return round(float(lower[0])), round(float(upper[0]))
        each = [getattr(corner, name) for corner in self.corners]
        return min(each), max(each)

    @property
    def assumes(self) -> bool:
        """Whether a range is stated or assumed: the corners differ."""
        return len(set(self.corners)) > 1

    @property
    def costless(self) -> bool:
        """Neither start-up nor checkpoints take time, whatever the bound."""
        return not any(each.write_s or each.restart_s for each in (self.central, *self.corners))


def habits(
    observed: pd.DataFrame,
    *,
    stated: Mapping[str, Range | None],
    assumed: Mapping[str, tuple[float, Range]],
    intervals: pd.DataFrame | None = None,
) -> Habits:
    """Habits of a class of jobs: what other runs show, else what is stated, else assumed.

    A quantity that runs show has the model of those runs (`habit_model`), whose prior is centred
    on what is stated or assumed. Of the others the value is the middle of what is
    stated, else what is assumed, and the bounds are an assumption.

    Parameters
    ----------
    observed : DataFrame
        One row a run of the class, as `training_log.run_habits` gives it, with `n_gpus`: the GPUs
        of the run.
    stated
        Field of a habit -> least and greatest value that site.toml states, seconds; None where
        it states nothing.
    assumed
        Field -> value and range otherwise, as `SEVERAL_NODES`.
    intervals : DataFrame, optional
        Runs whose checkpoint intervals count, where they are not those of the class alone.

    Examples
    --------
    >>> import pandas as pd
    >>> habits(pd.DataFrame(columns=OBSERVED), stated={}, assumed=SEVERAL_NODES).central
    Habit(interval_s=3600, write_s=60, restart_s=300)
    """
    shown = {"interval_s": observed if intervals is None else intervals}
    times: dict[str, Sequence[float]] = {}
    bases: dict[str, Basis] = {}
    models = {}
    for name in QUANTITIES:
        times[name], bases[name] = _range(stated.get(name), assumed[name])
        model = habit_model(_arrays(shown.get(name, observed), name), assumed_s=times[name][0])
        if model is not None:
            models[name], bases[name] = model, "observed_runs"
        elif not any(times[name]):
            del bases[name]  # not counted at all
    weakest: Basis = next(
        b for b in ("assumed", "configured", "observed_runs") if b in bases.values()
    )
    saved = shown["interval_s"][["checkpoint_interval_s", "checkpoint_write_s"]].dropna()
    cycle = saved.sum(axis=1).to_numpy(dtype=float)
    spread = None
    if len(cycle) > 1 and "interval_s" in models:
        between = float(cycle.std(ddof=1) / cycle.mean())
        spread = max(between, models["interval_s"].own_cv2 ** 0.5)  # few may be alike by chance
    n_runs = models["interval_s"].n_runs if "interval_s" in models else 0
    return _habits(times, models, basis=weakest, n_runs=n_runs, cycle_spread=spread)


def recorded_habits(record: Mapping[str, Any]) -> Habits:
    """The habits that a `Habits.record` tells of.

    Examples
    --------
    >>> hourly, often = Habit(3600, 60, 300), Habit(900, 0, 60)
    >>> rare, dear = Habit(3600, 0, 60), Habit(900, 60, 300)
    >>> known = Habits(hourly, (often, rare, dear, hourly), "assumed", 0, None)
    >>> recorded_habits(known.record) == known
    True
    """
    known = {name: record[name] for name in ("basis", "n_runs", "cycle_spread")}
    models = {name: HabitModel(**model) for name, model in record.get("models", {}).items()}
    return _habits({name: record[name] for name in QUANTITIES}, models, **known)


def _habits(
    times: Mapping[str, Sequence[float]], models: Mapping[str, HabitModel], **known: Any
) -> Habits:
    """Habits of the value, the least and the greatest of each time, in whole seconds."""
    fixed = {
        name: (float(model.mean(np.array([2.0**model.centre]))[0]),) * 3
        for name, model in models.items()
    }
    central, low, high = (
        {name: of[at] for name, of in {**times, **fixed}.items()} for at in range(3)
    )
    corners = [
        cost | {"interval_s": interval["interval_s"]}
        for cost in (low, high)
        for interval in (low, high)
    ]
    return Habits(
        _habit(central), tuple(_habit(corner) for corner in corners), models=models, **known
    )


def _range(stated: Range | None, assumed: tuple[float, Range]) -> tuple[tuple[float, ...], Basis]:
    """Value, bounds and basis of a quantity that no run shows."""
    value, (low, high) = assumed
    if stated is None:
        return (value, low, high), "assumed"
    low, high = stated
    # The middle by ratio; by difference where the range begins at 0.
    return (float(np.sqrt(low * high)) if low > 0 else (low + high) / 2, low, high), "configured"


def _arrays(observed: pd.DataFrame, name: str) -> dict[str, Floats]:
    """What the runs show of a quantity, as `habit_model` takes it."""
    count, spread = _COUNTS[name]
    columns = {"seconds": QUANTITIES[name], "n_gpus": "n_gpus", "count": count, "sd": spread}
    return {key: observed[column].to_numpy(dtype=float) for key, column in columns.items()}


def _habit(times: Mapping[str, float]) -> Habit:
    """Times as whole seconds."""
    whole = {name: round(seconds) for name, seconds in times.items()}
    return Habit(**whole | {"interval_s": max(1, whole["interval_s"])})


def habit_sentences(notes: Mapping[str, Any]) -> tuple[str, ...]:
    """How jobs are taken to save and start up, one sentence a class.

    Examples
    --------
    >>> habit_sentences({"one_node": {"basis": "assumed", "n_runs": 0, "write_s": [0, 0, 0],
    ...     "interval_s": [3600, 900, 14400], "restart_s": [0, 0, 0]}})[0][:64]
    'Jobs on one node: a checkpoint every 60 min (15 to 240), no time'
    """
    return tuple(
        f"{title}: {_costs(notes[name])}, {_basis(notes[name])}."
        for name, title in _CLASSES.items()
        if name in notes
    )


def _costs(known: Mapping[str, Any]) -> str:
    """Interval, write and start-up with their ranges."""
    costs = [
        f"{_minutes(known[name])} {text}"
        for name, text in (("write_s", "to write it"), ("restart_s", "to start up"))
        if any(known[name])
    ]
    spent = " and ".join(costs) or "no time counted to write it or to start up"
    return f"a checkpoint every {_minutes(known['interval_s'])}, {spent}"


def _minutes(bounds: list[float]) -> str:
    """Minutes of a value and, where they differ, its bounds."""
    whole = all(seconds % 60 == 0 for seconds in bounds)
    value, low, high = (
        f"{seconds / 60:{'.3g' if whole else '#.3g'}}".rstrip(".") for seconds in bounds
    )
    return f"{value} min" if low == high else f"{value} min ({low} to {high})"


def _basis(known: Mapping[str, Any]) -> str:
    """What it rests on."""
    n = known["n_runs"]
    return _BASES[known["basis"]].format(n="one run" if n == 1 else f"{n} runs")


FIELDS = ("interval_s", "write_s", "restart_s")


@dataclass(frozen=True)
class Times:
    """Times of a habit, seconds: one for all attempts, or one each."""

    interval_s: Floats | float
    write_s: Floats | float
    restart_s: Floats | float

    @classmethod
    def of(cls, habit: Habit) -> Times:
        """The times of a habit."""
        return cls(*(float(getattr(habit, name)) for name in FIELDS))


@dataclass(frozen=True)
class Cases:
    """Habits of attempts.

    Attributes
    ----------
    mean
        The mean of what is modelled, the central value of what is not.
    nodes
        Habits over which parts are averaged, each as likely as the others: u and D of the models at
        the same node, w at its mean, because parts are proportional to it. `mean` alone where
        nothing is modelled.
    others
        `mean`, where it is no node, and the corners of what is stated or assumed; nothing where all
        is modelled.
    models
        Quantity -> the model of those that runs show.
    shared
        Quantity -> variance that unobserved runs have in common over that of each by itself; 0
        without a model.
    """

    mean: Times
    nodes: tuple[Times, ...]
    others: tuple[Times, ...]
    models: Mapping[str, HabitModel]
    shared: Mapping[str, Floats | float]

    @property
    def modelled(self) -> bool:
        """Whether the nodes stand for a distribution."""
        return len(self.nodes) > 1

    def average(self, values: Sequence[Floats]) -> Floats:
        """Mean over the nodes, which come first."""
        return _average(values[: len(self.nodes)])

    def variance(self, name: str, values: Sequence[Floats], moves: Floats) -> Floats:
        """Variance by the habit of a run: that over the nodes, and what these do not show.

        Parameters
        ----------
        name
            The quantity.
        values
            At the nodes, which come first.
        moves
            By how much the value changes as the habit does: its derivative by the logarithm.
        """
        if name not in self.models:
            return np.zeros(len(moves))
        model, mean = self.models[name], self.average(values)
        shown = _average([(each - mean) ** 2 for each in values[: len(self.nodes)]])
        return np.asarray(model.of_nodes * shown + model.unseen_cv2 * moves**2)


def cases(habits: Habits, n_gpus: Ints | None) -> Cases:
    """The habits of a class, at the size of each attempt.

    Parameters
    ----------
    n_gpus : ndarray of int64, shape (n,)
        GPUs of each attempt.

    Raises
    ------
    ValueError
        Where habits have models and the sizes are missing.
    """
    mean = Times.of(habits.central)
    corners = [Times.of(each) for each in habits.corners]
    shared: dict[str, Floats | float] = dict.fromkeys(FIELDS, 0.0)
    if not habits.models:
        return Cases(mean, (mean,), tuple(corners), {}, shared)
    if n_gpus is None:
        msg = "n_gpus: habits that have models need the size of each attempt"
        raise ValueError(msg)
    place, distinct = pd.factorize(n_gpus)
    sizes = np.asarray(distinct, dtype=float)
    means: dict[str, Floats] = {}
    points: dict[str, Floats] = {}
    for name, model in habits.models.items():
        means[name] = model.mean(sizes)[place]
        shared[name] = model.shared_ratio(sizes)[place]
        if name != "write_s":
            points[name] = model.nodes(sizes)[:, place]
    mean = replace(mean, **means)
    nodes = tuple(
        replace(mean, **{name: values[at] for name, values in points.items()})
        for at in range(N_NODES)
    )
    others = (mean, *(replace(each, **means) for each in corners)) if habits.assumes else ()
    return Cases(mean, nodes, others, habits.models, shared)


def _average(values: Sequence[Floats]) -> Floats:
    """Mean of the values at the nodes."""
    total = np.zeros(len(values[0]))
    for each in values:
        total += each
    return total / len(values)
