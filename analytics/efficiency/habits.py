"""How runs of a class start up and save: observed, configured or assumed, with its bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

Range: TypeAlias = tuple[float, float]
Basis: TypeAlias = Literal["observed_runs", "configured", "assumed"]

QUANTITIES: Final = {
    "interval_s": "checkpoint_interval_s",
    "write_s": "checkpoint_write_s",
    "restart_s": "restart_s",
}
"""Field of a habit -> the column of `run_habits` in which training metrics show it."""

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


_BASES: Final = {
    "observed_runs": "as training metrics of {n} show",
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
        The habit that estimates take.
    corners
        Habits at the bounds: every combination of the least and the greatest interval, and of
        the two least and the two greatest costs.
    basis
        What they rest on, the weakest of the three quantities: `observed_runs` (training metrics
        of other runs), `configured` (site.toml), `assumed` (published habits).
    n_runs
        Runs whose training metrics show the interval.
    cycle_spread
        Standard deviation of interval + write over its mean, between those runs; None where
        fewer than two show it: then nothing is known of when a run saves.
    """

    central: Habit
    corners: tuple[Habit, ...]
    basis: Basis
    n_runs: int
    cycle_spread: float | None

    @property
    def record(self) -> dict[str, Any]:
        """As values of JSON: of each time the value, its least and its greatest."""
        return {
            "basis": self.basis,
            "n_runs": self.n_runs,
            "cycle_spread": self.cycle_spread,
            **{
                name: [
                    getattr(self.central, name),
                    min(getattr(corner, name) for corner in self.corners),
                    max(getattr(corner, name) for corner in self.corners),
                ]
                for name in QUANTITIES
            },
        }

    @property
    def costless(self) -> bool:
        """Neither start-up nor checkpoints take time, whatever the bound."""
        return not any(each.write_s or each.restart_s for each in (self.central, *self.corners))


def habits(
    observed: pd.DataFrame,
    *,
    stated: Mapping[str, Range | None],
    assumed: Mapping[str, tuple[float, Range]],
) -> Habits:
    """Habits of a class of jobs: what other runs show, else what is stated, else assumed.

    Of each quantity the value is the median over the runs observed, else the middle of what is
    stated, else what is assumed. With n runs observed a further run is unlike all of them with
    probability 1 / (n + 1) (Laplace), so its bounds are

        (n x bound of the runs observed + bound stated or assumed) / (n + 1)

    Parameters
    ----------
    observed : DataFrame
        One row a run of the class: `checkpoint_interval_s`, `checkpoint_write_s`, `restart_s`,
        seconds; NaN where a run's metrics do not show it.
    stated
        Field of a habit -> least and greatest value that site.toml states, seconds; None where
        it states nothing.
    assumed
        Field -> value and range otherwise, as `SEVERAL_NODES`.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame(columns=["checkpoint_interval_s", "checkpoint_write_s", "restart_s"])
    >>> habits(runs, stated={}, assumed=SEVERAL_NODES).central
    Habit(interval_s=3600, write_s=60, restart_s=300)
    """
    times, bases = {}, set()
    for name, column in QUANTITIES.items():
        times[name], basis = _quantity(observed[column], stated.get(name), assumed[name])
        bases.add(basis)
    weakest: Basis = next(b for b in ("assumed", "configured", "observed_runs") if b in bases)
    shown = observed[["checkpoint_interval_s", "checkpoint_write_s"]].dropna()
    cycle = shown.sum(axis=1).to_numpy(dtype=float)
    spread = float(cycle.std(ddof=1) / cycle.mean()) if len(cycle) > 1 else None
    return _habits(times, basis=weakest, n_runs=len(cycle), cycle_spread=spread)


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
    return _habits({name: record[name] for name in QUANTITIES}, **known)


def _habits(times: Mapping[str, Sequence[float]], **known: Any) -> Habits:
    """Habits of the value, the least and the greatest of each time, in whole seconds."""
    central, low, high = ({name: of[at] for name, of in times.items()} for at in range(3))
    corners = [
        cost | {"interval_s": interval["interval_s"]}
        for cost in (low, high)
        for interval in (low, high)
    ]
    return Habits(_habit(central), tuple(_habit(corner) for corner in corners), **known)


def _quantity(
    shown: pd.Series, stated: Range | None, assumed: tuple[float, Range]
) -> tuple[tuple[float, float, float], Basis]:
    """Value, bounds and basis of one quantity."""
    value, (low, high) = assumed
    basis: Basis = "assumed"
    if stated is not None:
        low, high = stated
        # The middle by ratio; by difference where the range begins at 0.
        value = float(np.sqrt(low * high)) if low > 0 else (low + high) / 2
        basis = "configured"
    seen = shown.dropna().to_numpy(dtype=float)
    if not len(seen):
        return (value, low, high), basis
    n, centre = len(seen), float(np.median(seen))
    lower, upper = (n * seen.min() + low) / (n + 1), (n * seen.max() + high) / (n + 1)
    return (centre, min(lower, centre), max(upper, centre)), "observed_runs"


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
    value, low, high = (f"{seconds / 60:.3g}" for seconds in bounds)
    return f"{value} min" if low == high else f"{value} min ({low} to {high})"


def _basis(known: Mapping[str, Any]) -> str:
    """What it rests on."""
    n = known["n_runs"]
    return _BASES[known["basis"]].format(n="one run" if n == 1 else f"{n} runs")
