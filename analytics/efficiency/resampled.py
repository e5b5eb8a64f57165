"""Interruptions of a period summed by incident, and what other chance would have made of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from analytics.efficiency.habit_costs import MINUTES, Ran, replayed, times_of
from analytics.efficiency.incidents_weighed import with_mean
from analytics.efficiency.left_out import Excess
from analytics.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.arrays import Floats
    from analytics.efficiency.habits import Times
    from analytics.efficiency.incidents_weighed import Incidents
    from analytics.efficiency.left_out import Gone

Column = tuple[str, str]
"""What a sum is of (lost, restart, waited, cost, less), and of which cause; "" of all."""
DRAWS: Final = 1024
HABIT_DRAWS: Final = 16
EACH: Final = DRAWS // HABIT_DRAWS
"""Draws of the habits of runs, where these are modelled: each with `EACH` draws of chance."""
WHOLE: Final[tuple[Column, ...]] = (
    ("lost", ""), ("restart", ""), ("waited", ""), ("less", "")
)  # fmt: skip


@dataclass(frozen=True)
class Sums:
    """GPU-hours of a period under one habit: a row an incident, and what is no chance."""

    columns: tuple[Column, ...]
    incidents: Incidents
    every: Floats
    """The columns of all interruptions."""
    excess: Excess
    """The same of the nodes left out."""
    curve: Floats
    """Cost of runs on several nodes at each of `MINUTES`, and as they saved."""
    written: float
    more_written: float
    """By the interval asked for."""
    fixed: Floats
    """Writing of runs on several nodes at each of `MINUTES`, and as they saved."""

    def point(self) -> Outcomes:
        """Of what was."""
        parts = (self.every, self.excess.by_incident, self.curve)
        return self.outcomes(*(part.sum(axis=0)[None, :] for part in parts))

    @property
    def parts(self) -> tuple[Floats, ...]:
        """What is summed: of all interruptions, of the nodes left out, of the curve; each with what
        half an incident adds."""
        return with_mean(self.every), self.excess.with_halves(), with_mean(self.curve)

    def outcomes(self, every: Floats, excess: Floats, curve: Floats) -> Outcomes:
        """Where the columns sum to this; shape (draws, ...)."""
        n = len(every)
        return Outcomes(
            self.columns,
            every,
            self.excess.regained(excess),
            np.full(n, self.written),
            np.full(n, self.more_written),
            curve + self.fixed,
        )


@dataclass(frozen=True)
class Outcomes:
    """GPU-hours of each draw: arrays of shape (draws,) or (draws, columns)."""

    columns: tuple[Column, ...]
    every: Floats
    by_nodes: Floats
    """Regained of each column without the nodes."""
    written: Floats
    more_written: Floats
    curve: Floats
    """Cost of runs on several nodes at each of `MINUTES`, and as they saved."""

    def cost(self, kind: str, cause: str = "") -> Floats:
        """A column as it was."""
        return self.every[:, self.columns.index((kind, cause))]

    def avoided(self, kind: str, cause: str = "") -> Floats:
        """A column's part that goes with the nodes."""
        return self.by_nodes[:, self.columns.index((kind, cause))]

    def less(self, cause: str = "") -> Floats:
        """What the interval saves of the interruptions that are left."""
        found: Floats = self.cost("less", cause) - self.avoided("less", cause)
        return found

    def of_cause(self, cause: str) -> Floats:
        """What is regained of one cause, writing aside."""
        return self.avoided("cost", cause) + self.less(cause)

    @property
    def without(self) -> Floats:
        """Regained without the nodes alone."""
        return self.avoided("lost") + self.avoided("restart")

    @property
    def by_interval(self) -> Floats:
        """Regained by the interval alone."""
        return self.cost("less") - self.more_written

    @property
    def regained(self) -> Floats:
        """By both together."""
        return self.without + self.less() - self.more_written

    def settled(self, hours: Floats) -> Floats:
        """Hours that rounding alone leaves of a difference are none: 1e-12 of all cost."""
        all_cost = self.cost("lost") + self.cost("restart") + self.written
        found: Floats = np.where(np.abs(hours) <= 1e-12 * all_cost, 0.0, hours)
        return found

    @property
    def best_min(self) -> Floats:
        """Minutes at which the curve is lowest."""
        found: Floats = np.array(MINUTES)[np.argmin(self.curve[:, :-1], axis=1)]
        return found


def joined(parts: Sequence[Outcomes]) -> Outcomes:
    """Draws of several, one after the other."""
    names = ("every", "by_nodes", "written", "more_written", "curve")
    return Outcomes(
        parts[0].columns,
        *(np.concatenate([getattr(part, name) for part in parts]) for name in names),
    )


def drawn(sums: Sequence[Sums], n: int, rng: np.random.Generator) -> list[Outcomes]:
    """Of n draws of chance, the same for all of the sums: what differs between them is none."""
    parts = [each.parts for each in sums]
    totals = iter(sums[0].incidents.totals([*chain.from_iterable(parts)], n, rng))
    return [each.outcomes(*islice(totals, len(own))) for each, own in zip(sums, parts, strict=True)]


def spread(
    value: float, chance: Sequence[Floats], n: int, *, conf_level: float, assumed: bool
) -> Estimate:
    """A quantity with its interval, which reaches over that of each of several sets of draws; it
    has no level where their habits are assumed.
    """
    tails = [(1 - conf_level) / 2, (1 + conf_level) / 2]
    bounds = np.array([np.quantile(draws, tails) for draws in chance])
    lower, upper = float(bounds[:, 0].min()), float(bounds[:, 1].max())
    level = None if assumed else conf_level
    return Estimate(value, min(lower, value), max(upper, value), level, n)


def summed(
    attempts: pd.DataFrame,
    incidents: Incidents,
    gone: Gone,
    times: tuple[Times, ...],
    interval_min: float | None = None,
) -> Sums:
    """Costs of the attempts under these times, by incident; at another interval of runs on several
    nodes where it is given.
    """
    ran = Ran.of(attempts)
    then, now = (replayed(ran, times, every) for every in (None, interval_min))
    waited = attempts["waited_s"].fillna(0).to_numpy(dtype=float)
    gpus = attempts["n_gpus"].to_numpy(dtype=float)
    values = {
        "lost": then.lost,
        "restart": then.restart,
        "waited": np.where(ran.again, waited * gpus / 3600, 0.0),
        "less": then.lost - now.lost,
    }
    cause = causes_of(attempts)
    columns = (*WHOLE, *((kind, each) for each in pd.unique(cause[ran.struck])
                         for kind in ("cost", "less")))  # fmt: skip
    values["cost"] = values["lost"] + values["restart"]
    rows = np.column_stack(
        [np.where((cause == of) | (of == ""), values[kind], 0.0) for kind, of in columns]
    )[incidents.order]
    curve, fixed = _curve(ran, times)
    of_runs = np.zeros((len(attempts), curve.shape[1]))
    of_runs[ran.several] = curve
    written = float(then.written.sum())
    return Sums(
        columns,
        incidents,
        incidents.summed(rows),
        Excess.of(gone, incidents, rows),
        incidents.summed(of_runs[incidents.order]),
        written,
        float(now.written.sum()) - written,
        fixed,
    )


def _curve(ran: Ran, times: tuple[Times, ...]) -> tuple[Floats, Floats]:
    """Cost of each run's attempts, and the writing of all, at each of `MINUTES` and as they saved.

    Of runs on several nodes alone.
    """
    which = ran.several
    some, own = ran.some(which), times_of(times, which)
    played = [replayed(some, own[:1], minutes) for minutes in MINUTES]
    played.append(replayed(some, own))
    cost = np.column_stack([replay.lost + replay.restart for replay in played])
    return cost, np.array([replay.written.sum() for replay in played])


def causes_of(attempts: pd.DataFrame) -> NDArray[np.object_]:
    """Cause of each interruption, else the bucket that it falls into."""
    known = attempts["cause"].astype(object)
    found: NDArray[np.object_] = known.where(known.notna(), attempts["bucket"]).to_numpy(object)
    return found
