"""A recovery policy: what it changes, with what numbers, and who says so."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from analytics import validate
from analytics.efficiency.ettr_forms import daly_young_interval
from analytics.errors import OutOfRangeError
from analytics.recovery.groups import Grid
from analytics.recovery.mechanism import Downtime, Mechanism

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from analytics.recovery.histories import Hazards

Certainty = Literal["reported", "recalled", "derived", "assumed", "measured", "stated"]
"""Of a number: read in its source, remembered of it, worked out from it, set by us, or the site's
own, measured or stated."""
BASE: Final = "persistent"
"""The policy that all others build on."""
MOST_LOST, MOST_LISTED = 64, 256
"""Nodes lost or missing up to which tables of chances and throughput go: by themselves, and where
racks are large. Beyond them nothing outlives."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """A job and its cluster, as every policy finds them; times in minutes.

    What is 0 because nobody stated it is nothing that a policy can save: a load of 0 is counted in
    the restart, a detection of 0 too.
    """

    hazards: Hazards
    restart_min: float = 5.0
    """From a start to the first step, the load of the state included unless it is stated."""
    write_min: float = 5.0
    interval_min: float | None = None
    """Training between checkpoints that take `write_min`; None for Daly-Young's, as any other write
    has."""
    queue_min: float = 0.0
    """Until there are other nodes after a failure."""
    detect_min: float = 0.0
    """A failed job stands unnoticed for so long."""
    isolate_min: float = 0.0
    """Until the failed node is known."""
    load_min: float = 0.0
    """Of a checkpoint, beside the restart."""
    cluster_gives: bool = True
    """Whether the cluster has other nodes than those named as standby."""
    pipeline_nodes: int = 16
    """Nodes that hold one copy of the model."""
    microbatches: int = 64
    """Of a pipeline in each step."""
    step_min: float = 0.2
    """Minutes of one step."""

    def __post_init__(self) -> None:
        for name in ("restart_min", "write_min", "queue_min", "detect_min", "isolate_min",
                     "load_min"):  # fmt: skip
            validate.nonnegative(name, getattr(self, name), "pass minutes, 0 for none")
        for name in ("pipeline_nodes", "microbatches", "step_min"):
            validate.positive(name, getattr(self, name), "pass a number above 0")
        if self.interval_min is not None:
            validate.positive("interval_min", self.interval_min, "pass minutes, or leave it out")

    @property
    def grid(self) -> Grid:
        """The job's nodes as pipelines; those that fill none are left out of it."""
        stages = min(self.pipeline_nodes, self.hazards.nodes)
        return Grid(stages, max(1, self.hazards.nodes // stages), self.microbatches)

    @property
    def most_lost(self) -> int:
        """Nodes lost up to which tables go."""
        listed = min(max(MOST_LOST, 2 * self.hazards.rack_nodes), MOST_LISTED)
        return min(self.hazards.nodes, listed)

    def best_interval(self, write_min: float) -> float:
        """The interval that was stated, of another write than the site's Daly-Young's."""
        if self.interval_min is not None and write_min == self.write_min:
            return self.interval_min
        if write_min == 0:
            return 0.0
        return float(daly_young_interval(float(self.hazards.per_min.sum()), write_min))

    def mechanism(self) -> Mechanism:
        """Checkpoints on persistent storage, and a restart from the last."""
        return Mechanism(
            interval_min=self.best_interval(self.write_min),
            write_min=self.write_min,
            restart=Downtime(self.detect_min, self.isolate_min, self.restart_min, self.load_min),
            requeue_min=self.queue_min,
            cluster_gives=self.cluster_gives,
        )


@dataclass(frozen=True)
class Parameter:
    """A number of a policy, which a user may change."""

    name: str
    value: float
    unit: str
    source: str
    certainty: Certainty


@dataclass(frozen=True)
class Policy:
    """A way to recover, as a change of the one that it builds on."""

    key: str
    system: str
    does: str
    """Its mechanism in one sentence."""
    asks: str
    """Of hardware and code."""
    change: Callable[[Mechanism, Site, Mapping[str, float]], Mechanism]
    parameters: tuple[Parameter, ...] = ()
    only: str = ""
    """What else it needs so that it can be had at all; empty where any job can have it."""
    builds_on: str | None = BASE
    family: str = ""
    """Name of its module, set when it is found."""

    @property
    def values(self) -> Mapping[str, float]:
        """Its parameters by name."""
        return MappingProxyType({each.name: each.value for each in self.parameters})

    def check(self, changed: Mapping[str, float]) -> None:
        """Raises where a parameter is not its own, below 0, or a ratio above 1."""
        units = {each.name: each.unit for each in self.parameters}
        for name, value in changed.items():
            if name not in units:
                has = ", ".join(units) or "none"
                raise OutOfRangeError(
                    "parameter", f"one of {self.key}: {has}", name, "name one of them"
                )
            validate.nonnegative(f"{self.key}.{name}", value, "pass a number from 0 on")
            if units[name] == "ratio" and value > 1:
                raise OutOfRangeError(f"{self.key}.{name}", "at most 1", value, "pass a share")

    def mechanism(self, site: Site, changed: Mapping[str, float] | None = None) -> Mechanism:
        """What it does on a site, with some of its parameters as the user has them.

        Raises
        ------
        OutOfRangeError
            For a parameter that it does not have, one below 0, or a ratio above 1.
        """
        self.check(changed or {})
        ground = site.mechanism()
        if self.builds_on is not None:
            ground = policies()[self.builds_on].mechanism(site)
        return self.change(ground, site, MappingProxyType({**self.values, **(changed or {})}))


@cache
def policies() -> Mapping[str, Policy]:
    """All policies by key, in the order of families and of each one's own list: `POLICIES` of each
    module beside this one."""
    from analytics.recovery import policies as families

    found: dict[str, Policy] = {}
    for module in pkgutil.iter_modules(families.__path__):
        listed = importlib.import_module(f"{families.__name__}.{module.name}").POLICIES
        found |= {each.key: replace(each, family=module.name) for each in listed}
    return MappingProxyType(found)


def sooner(downtime: Downtime, **most: float) -> Downtime:
    """A downtime of which some parts take at most so long."""
    return replace(
        downtime, **{part: min(getattr(downtime, part), at) for part, at in most.items()}
    )
