"""What befalls a job, drawn once and met by every policy: common random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.recovery.mechanism import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.arrays import Floats

MINUTES_PER_DAY: Final = 1440.0
KIND, SURVIVAL, LOSS, REPAIR = DRAWN = range(4)
"""What is drawn of a failure beside the time to it."""
BLOCK: Final = 4096
"""Runs of a block."""
AT_ONCE: Final = 64
"""Failures of a run that are drawn at first."""


@dataclass(frozen=True, kw_only=True)
class Hazards:
    """How often a job fails, of what, and how long a lost node is away.

    Raises
    ------
    OutOfRangeError
        For a size that is not > 0, a rate or time that is negative, or a kind that is none.
    """

    nodes: int
    rates: Mapping[str, float]
    """Failures per 1,000 node-days by kind; a kind that is not named does not happen."""
    rack_nodes: int = 16
    """Nodes of the job that a failure of a rack takes."""
    repair_hours: float = 24.0
    """Mean time until a lost node is back, exponential."""
    preempted_hours: float = 1.0
    """The same of a node that was taken away."""

    def __post_init__(self) -> None:
        validate.positive("nodes", self.nodes, "pass the nodes of the job")
        validate.positive("rack_nodes", self.rack_nodes, "pass nodes of the job in one rack")
        validate.nonnegative("repair_hours", self.repair_hours, "pass hours, e.g. 24")
        validate.nonnegative("preempted_hours", self.preempted_hours, "pass hours, e.g. 1")
        for kind, rate in self.rates.items():
            if kind not in KINDS:
                raise OutOfRangeError("rates", f"by kind, one of {KINDS}", kind, "name a kind")
            validate.nonnegative("rates", rate, "pass failures per 1,000 node-days")

    @property
    def per_min(self) -> Floats:
        """Failures of the whole job per minute, by kind; shape (4,)."""
        per_node = np.array([self.rates.get(kind, 0.0) for kind in KINDS])
        return per_node * self.nodes / 1000.0 / MINUTES_PER_DAY

    @property
    def lost(self) -> tuple[int, int, int, int]:
        """Nodes that a failure takes, by kind."""
        return 0, 1, min(self.rack_nodes, self.nodes), 1

    @property
    def away_min(self) -> tuple[float, float, float, float]:
        """Mean minutes until they are back, by kind."""
        return 0.0, 60.0 * self.repair_hours, 60.0 * self.repair_hours, 60.0 * self.preempted_hours


class Histories:
    """What befalls so many runs, in blocks of which each fits a processor's cache.

    The j-th failure of a run is the same whatever the policy, and at whatever rate: its time is
    that of a unit rate, its kind a share of the rates. Two policies then differ by what they do,
    not by their luck.

    Parameters
    ----------
    runs : int
        How many, > 0.
    seed : int
        Of the generator.
    times : int
        So many copies of each, side by side: what differs between them is not luck.

    Raises
    ------
    OutOfRangeError
        For a number of runs that is not > 0.
    """

    def __init__(self, runs: int, seed: int, *, times: int = 1) -> None:
        validate.positive("runs", runs, "pass how many, e.g. 1000")
        validate.positive("times", times, "pass 1 for runs that all differ")
        self.runs = runs * times
        firsts = range(0, runs, max(1, BLOCK // times))
        self.blocks = tuple(
            Block(min(max(1, BLOCK // times), runs - first), [seed, first], times)
            for first in firsts
        )


class Block:
    """Failures of some runs, as many as are asked for; copies of a run lie side by side."""

    def __init__(self, runs: int, seed: list[int], copies: int) -> None:
        self.runs, self._own, self._copies = runs * copies, runs, copies
        times, others = np.random.SeedSequence(seed).spawn(2)
        self._times, self._others = np.random.default_rng(times), np.random.default_rng(others)
        self._gaps, self._shares = np.empty((0, self.runs)), np.empty((0, len(DRAWN), self.runs))

    def gaps(self, failure: int) -> Floats:
        """Time to each failure of each run up to this one, of a unit rate; shape (more, runs)."""
        if failure >= len(self._gaps):
            more = self._times.standard_exponential((max(failure, AT_ONCE), self._own))
            more = np.repeat(more, self._copies, axis=-1)
            self._gaps = np.concatenate((self._gaps, more))
        return self._gaps

    def shares(self, failure: int) -> Floats:
        """Shares of 1 by which else they differ, shape (more, 4, runs)."""
        if failure >= len(self._shares):
            more = self._others.random((max(failure, AT_ONCE), len(DRAWN), self._own))
            more = np.repeat(more, self._copies, axis=-1)
            self._shares = np.concatenate((self._shares, more))
        return self._shares
