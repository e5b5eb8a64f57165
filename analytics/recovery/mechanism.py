"""What a recovery policy does, in the terms that the simulator plays: one declaration for all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

PROCESS, NODE, RACK, PREEMPTION = KINDS = ("process", "node", "rack", "preemption")
"""Kinds of failures: of the program alone, of a node, of several at once, of a node taken away."""
LEAST_INTERVAL_MIN: Final = 1e-6
"""Minutes between checkpoints that cost nothing and are made all the time."""


@dataclass(frozen=True)
class Downtime:
    """Minutes in which a job holds its nodes and does not train; failures strike meanwhile."""

    detect: float = 0.0
    isolate: float = 0.0
    init: float = 0.0
    load: float = 0.0

    @property
    def parts(self) -> tuple[float, float, float, float]:
        """In the order in which they pass."""
        return self.detect, self.isolate, self.init, self.load

    @property
    def total(self) -> float:
        """All of it."""
        return sum(self.parts)


Losses = Literal["at once", "missing"]
"""Which nodes decide: those lost before the job trained again, or all that are missing."""


@dataclass(frozen=True)
class Kept:
    """A state that outlives failures: in the memory of other nodes, or in replicas that go on."""

    survives: tuple[float, ...]
    """Chance that it can be had after so many nodes (0, 1, 2 ...) are lost; beyond them none."""
    counted: Losses
    downtime: Downtime
    every_min: float = 0.0
    """Training between two of them: half of that is lost at a failure, on average."""
    ready_min: float = 0.0
    """Training until one can be used."""


@dataclass(frozen=True)
class Mechanism:
    """A policy as the simulator plays it; times in minutes."""

    interval_min: float
    """Training between two checkpoints on persistent storage."""
    write_min: float
    """How long training stands still for one."""
    restart: Downtime
    """From a failure to the first step, out of a checkpoint."""
    lag_min: float = 0.0
    """From a checkpoint to the moment at which it can be used, training meanwhile; at most the
    interval, as one is written at a time."""
    steady_ratio: float = 0.0
    """Share of each step that is spent on being able to recover."""
    requeue_min: float = 0.0
    """Until the cluster has given other nodes; the job holds none meanwhile, and none fails."""
    in_place: bool = False
    """A failure that takes no node is recovered from on the same nodes, without the queue."""
    standby: int = 0
    """Nodes that stand ready; each that is used is back once the lost one is repaired."""
    swap_min: float = 0.0
    """Until one of them is in place."""
    cluster_gives: bool = True
    """Whether nodes beyond `standby` are to be had at all; else a repair is waited for."""
    kept: Kept | None = None
    throughput: tuple[float, ...] = (1.0,)
    """Part of its throughput that the job has with 0, 1, 2 ... nodes missing; of one number: it
    waits for all of them. Beyond the last it waits, too."""
    restart_waits: bool = True
    """Whether a restart from a checkpoint waits for all nodes, where `throughput` needs less."""
    rejoin: Downtime = field(default_factory=Downtime)
    """When a node comes back; nothing is lost."""
    foretold_ratio: float = 0.0
    """Share of preemptions before which the job has moved away."""
    migrate_min: float = 0.0
    """What such a move takes."""

    @property
    def goes_on(self) -> bool:
        """Whether it trains while nodes are missing."""
        return len(self.throughput) > 1

    @property
    def counts_nodes(self) -> bool:
        """Whether it matters how many nodes are out elsewhere."""
        return self.standby > 0 or not self.cluster_gives

    @property
    def only_restarts(self) -> bool:
        """Whether it does the same after every failure."""
        return not (
            self.kept or self.goes_on or self.counts_nodes or self.in_place or self.foretold_ratio
        )

    @property
    def tau_min(self) -> float:
        """From one checkpoint to the next."""
        return max(self.interval_min, LEAST_INTERVAL_MIN) + self.write_min
