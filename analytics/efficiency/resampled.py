"""Interruptions of a period summed by incident, and what other chance would have made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from scipy import sparse

from analytics.efficiency.habit_costs import MINUTES, Ran, replayed
from analytics.efficiency.habits import FIELDS, Times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.arrays import Bools, Floats

OWN_WEIGHT: Final = 3.0
"""Failures of the nodes left out whose cost weighs as much as what is usual in the fleet."""
HALF: Final = 0.5
"""Incidents of mean cost that are added where chance is drawn, as Jeffreys' prior adds them."""
CHUNK: Final = 4_000_000
"""Weights drawn at a time."""
Column = tuple[str, str]
"""What a sum is of (lost, restart, waited, cost, less), and of which cause; "" of all."""
WHOLE: Final[tuple[Column, ...]] = (
    ("lost", ""), ("restart", ""), ("waited", ""), ("less", "")
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What is played again."""

    attempts: pd.DataFrame
    """With the columns of `replay.COLUMNS` and an index from 0."""
    share: Floats
    """Of each attempt: by how much the excess of its node counts; 0 of what stays."""
    blamed: Bools
    """Interruptions that come of the failure of a node that is named."""
    left_out: Bools
    """Of these, by a node that is left out, whatever its share."""
    exposure_ratio: Mapping[str, float]
    """Of the clusters of the nodes left out: exposure of these, by their shares, over that of the
    other nodes of the cluster; 0 where no other ran."""
    full_ratio: Mapping[str, float]
    """The same in full."""
    interval_min: float | None = None
    """Of runs on several nodes; None as they saved."""
    with_curve: bool = True
    """Whether the cost at other intervals is wanted."""


@dataclass(frozen=True)
class Sums:
    """GPU-hours of a period under one habit: a row an incident, and what is no chance."""

    columns: tuple[Column, ...]
    by_incident: Floats
    """Side by side: the columns of all interruptions, of those of the nodes left out, of failures
    that name a node; failures left out, failures named, and those that the other nodes of each
    cluster let expect of healthy ones in place of its nodes left out; the cost of runs on several
    nodes at each of `MINUTES`, and as they saved."""
    exposure_ratio: float
    """Of the nodes left out over the others, the mean over clusters."""
    written: float
    more_written: float
    """By the interval asked for."""
    fixed: Floats
    """Writing of runs on several nodes at each of `MINUTES`, and as they saved."""

    def point(self) -> Outcomes:
        """Of what was."""
        return self._outcomes(self.by_incident.sum(axis=0)[None, :])

    def drawn(self, n: int, rng: np.random.Generator) -> Outcomes:
        """Of n draws of chance."""
        rows = np.vstack([self.by_incident, self._half_incidents()])
        columns = sparse.csr_array(rows.T)  # of a cause or a node most incidents have nothing
        size = max(1, CHUNK // len(rows))
        found = []
        for start in range(0, n, size):
            weights = rng.standard_exponential((min(size, n - start), len(rows)))
            weights[:, -3:] = rng.standard_gamma(HALF, (len(weights), 3))
            found.append(self._outcomes((columns @ weights.T).T))
        return joined(found)

    def _half_incidents(self) -> Floats:
        """The mean incident of all, of the nodes left out, of other nodes: a row each."""
        n = len(self.columns)
        _, chosen, named, of_chosen, of_named, healthy = self._places()
        rows = np.zeros((3, self.by_incident.shape[1]))
        total = self.by_incident.sum(axis=0)
        rows[0] = total / max(1, len(self.by_incident))
        rows[0, n : 3 * n + 3] = 0.0
        if self.exposure_ratio > 0 and total[of_named] > 0:
            rows[1, chosen] = total[named] / total[of_named]
            rows[1, of_chosen] = 1.0
        rows[2, healthy] = self.exposure_ratio
        return rows

    def _places(self) -> tuple[slice, slice, slice, int, int, int]:
        """Where the blocks of `by_incident` lie."""
        n = len(self.columns)
        return slice(0, n), slice(n, 2 * n), slice(2 * n, 3 * n), 3 * n, 3 * n + 1, 3 * n + 2

    def _outcomes(self, total: Floats) -> Outcomes:
        """What is regained where the columns of `by_incident` sum to this; shape (draws, ...)."""
        every, chosen, named, of_chosen, of_named, healthy = self._places()
        failures = total[:, [of_named]]
        mean = np.divide(
            total[:, named], failures, out=np.zeros_like(total[:, named]), where=failures > 0
        )
        each = (OWN_WEIGHT * mean + total[:, chosen]) / (OWN_WEIGHT + total[:, [of_chosen]])
        n = len(total)
        return Outcomes(
            self.columns,
            total[:, every],
            total[:, chosen] - total[:, [healthy]] * each,
            np.full(n, self.written),
            np.full(n, self.more_written),
            total[:, healthy + 1 :] + self.fixed,
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


def summed(asked: Asked, times: tuple[Times, ...]) -> Sums:
    """Costs of the attempts under these times, by incident."""
    attempts = asked.attempts
    ran = Ran.of(attempts)
    then, now = (replayed(ran, times, every) for every in (None, asked.interval_min))
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
    )
    failed = asked.blamed & attempts["bucket"].eq("lost_work").to_numpy()
    ratio = attempts["cluster"].map(asked.exposure_ratio).fillna(0.0).to_numpy(dtype=float)
    counts = np.column_stack([asked.share * failed, failed, ratio * (failed & ~asked.left_out)])
    curve, fixed = (
        _curve(ran, times) if asked.with_curve else (np.zeros((ran.several.sum(), 0)), np.zeros(0))
    )
    of_runs = np.zeros((len(attempts), curve.shape[1]))
    of_runs[ran.several] = curve
    rows = np.hstack([rows, rows * asked.share[:, None], rows * asked.blamed[:, None], counts,
                      of_runs])[ran.struck]  # fmt: skip
    incident = pd.factorize(attempts["event"][ran.struck])[0]
    order = np.argsort(incident, kind="stable")
    first = np.flatnonzero(np.diff(incident[order], prepend=-1))
    by_incident = np.add.reduceat(rows[order], first) if len(first) else rows
    written = float(then.written.sum())
    return Sums(
        columns,
        by_incident,
        float(np.mean([*asked.exposure_ratio.values()] or [0.0])),
        written,
        float(now.written.sum()) - written,
        fixed,
    )


def _curve(ran: Ran, times: tuple[Times, ...]) -> tuple[Floats, Floats]:
    """Cost of each run's attempts, and the writing of all, at each of `MINUTES` and as they saved.

    Of runs on several nodes alone.
    """
    which = ran.several
    own = tuple(
        Times(*(np.asarray(getattr(habit, name))[which] for name in FIELDS)) for habit in times
    )
    some = ran.some(which)
    played = [replayed(some, own[:1], minutes) for minutes in MINUTES]
    played.append(replayed(some, own))
    cost = np.column_stack([replay.lost + replay.restart for replay in played])
    return cost, np.array([replay.written.sum() for replay in played])


def causes_of(attempts: pd.DataFrame) -> NDArray[np.object_]:
    """Cause of each interruption, else the bucket that it falls into."""
    known = attempts["cause"].astype(object)
    found: NDArray[np.object_] = known.where(known.notna(), attempts["bucket"]).to_numpy(object)
    return found
