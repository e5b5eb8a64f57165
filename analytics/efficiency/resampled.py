"""Interruptions of a period summed by incident, and what other chance would have made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from analytics.efficiency.habit_costs import MINUTES, Ran, replayed, times_of, written
from analytics.efficiency.incidents_weighed import N_HALVES, Incidents, mean_halves
from analytics.efficiency.left_out import Excess
from analytics.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy import sparse

    from analytics.arrays import Floats, Ints
    from analytics.efficiency.habit_costs import Replayed
    from analytics.efficiency.habits import Times
    from analytics.efficiency.incidents_weighed import Part
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
class Struck:
    """A period's attempts, and the interruptions among them in the order of their incidents."""

    ran: Ran
    """All attempts."""
    own: Ran
    """The interruptions."""
    incidents: Incidents
    waited: Floats
    """GPU-hours that each interrupted run waited to go on."""
    cause: Ints
    """Of each interruption, in `causes`."""
    causes: tuple[str, ...]

    @classmethod
    def of(cls, attempts: pd.DataFrame) -> Struck:
        """Attempts as `what_if` takes them."""
        ran, incidents = Ran.of(attempts), Incidents.of(attempts)
        struck = attempts.take(incidents.order)
        waited = struck["waited_s"].fillna(0).to_numpy(dtype=float)
        gpus = struck["n_gpus"].to_numpy(dtype=float)
        told = causes_of(attempts)
        causes = pd.unique(told[ran.struck])
        cause = pd.Categorical(told[incidents.order], categories=list(causes)).codes
        own = ran.some(incidents.order)
        hours = np.where(own.again, waited * gpus / 3600, 0.0)
        return cls(ran, own, incidents, hours, cause, tuple(causes))

    def excess(self, gone: Gone, rows: Floats) -> Excess:
        """Of costs of the interruptions without some nodes."""
        named = self.incidents.named
        return Excess.of(gone, named, rows[: len(named.order)])


@dataclass(frozen=True)
class Sums:
    """GPU-hours of a period under one habit: a row an incident, and what is no chance."""

    columns: tuple[Column, ...]
    incidents: Incidents
    rows: Floats
    """The columns of each interruption."""
    every: Floats
    """The same of each incident."""
    excess: Excess
    """The same of the nodes left out, of incidents that are named: others have nothing of it."""
    curve: sparse.csr_array
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
    def parts(self) -> tuple[Part, ...]:
        """What is summed: of all interruptions, of the nodes left out, of the curve; each with what
        half an incident adds."""
        of_named = np.zeros((N_HALVES, self.excess.named.shape[1]))
        return (
            (self.every, mean_halves(self.every)),
            (self.excess.by_incident, np.hstack([self.excess.halves(), of_named])),
            (self.curve, mean_halves(self.curve)),
        )

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
    once = {id(rows): (rows, halves) for own in parts for rows, halves in own}
    totals = dict(zip(once, sums[0].incidents.totals([*once.values()], n, rng), strict=True))
    return [
        each.outcomes(*(totals[id(rows)] for rows, _ in own))
        for each, own in zip(sums, parts, strict=True)
    ]


def spread(
    value: float, chance: Sequence[Floats], n: int, *, conf_level: float, assumed: bool
) -> Estimate:
    """A quantity with its interval, which reaches over that of each of several sets of draws; it
    has no level where their habits are assumed.
    """
    tails = [(1 - conf_level) / 2, (1 + conf_level) / 2]
    bounds = np.quantile(np.stack(chance), tails, axis=1)  # once for all sets, of as many draws
    lower, upper = float(bounds[0].min()), float(bounds[1].max())
    level = None if assumed else conf_level
    return Estimate(value, min(lower, value), max(upper, value), level, n)


@dataclass(frozen=True)
class Costs:
    """What the attempts cost under one habit at the intervals at which they saved: the same
    whatever nodes are left out.
    """

    struck: Struck
    times: tuple[Times, ...]
    """Of all attempts."""
    own: tuple[Times, ...]
    """Of the interruptions."""
    then: Replayed
    """Of the interruptions."""
    written: float
    curve: sparse.csr_array
    """As `Sums` has it."""
    fixed: Floats
    """As `Sums` has it."""

    @classmethod
    def of(cls, struck: Struck, times: tuple[Times, ...]) -> Costs:
        """Under these times."""
        own = times_of(times, struck.incidents.order)
        then, writing = replayed(struck.own, own), written(struck.ran, times)
        return cls(struck, times, own, then, writing, *_curve(struck, own, times))

    def summed(self, gone: Gone, interval_min: float | None = None) -> Sums:
        """By incident, without some nodes; at another interval of runs on several nodes where it is
        given."""
        then, struck = self.then, self.struck
        less, more_written = np.zeros(len(then.lost)), 0.0
        if interval_min is not None:
            less = then.lost - replayed(struck.own, self.own, interval_min).lost
            more_written = written(struck.ran, self.times, interval_min) - self.written
        cost = then.lost + then.restart
        columns, parts = [*WHOLE], [then.lost, then.restart, struck.waited, less]
        for code, cause in enumerate(struck.causes):
            of_cause = struck.cause == code
            columns += [("cost", cause), ("less", cause)]
            parts += [np.where(of_cause, cost, 0.0), np.where(of_cause, less, 0.0)]
        rows = np.column_stack(parts)
        return Sums(
            tuple(columns),
            struck.incidents,
            rows,
            struck.incidents.summed(rows),
            struck.excess(gone, rows),
            self.curve,
            self.written,
            more_written,
            self.fixed,
        )


def _curve(
    struck: Struck, own: tuple[Times, ...], times: tuple[Times, ...]
) -> tuple[sparse.csr_array, Floats]:
    """Cost of the interruptions of runs on several nodes by incident, and the writing of all such
    runs, at each of `MINUTES` and as they saved; times of the interruptions, and of all attempts.
    """
    every = [*((1, minutes) for minutes in MINUTES), (None, None)]
    which = np.flatnonzero(struck.own.several)
    some, theirs = struck.own.some(which), times_of(own, which)
    played = [replayed(some, theirs[:n], minutes) for n, minutes in every]
    cost = np.column_stack([replay.lost + replay.restart for replay in played])
    several = struck.ran.some(struck.ran.several)
    habits = times_of(times, struck.ran.several)
    writing = np.array([written(several, habits[:n], minutes) for n, minutes in every])
    return struck.incidents.gathered(which, cost), writing


def causes_of(attempts: pd.DataFrame) -> NDArray[np.object_]:
    """Cause of each interruption, else the bucket that it falls into."""
    known = attempts["cause"].astype(object)
    found: NDArray[np.object_] = known.where(known.notna(), attempts["bucket"]).to_numpy(object)
    return found
