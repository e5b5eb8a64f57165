"""What counts as near, for incidents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analytics import validate
from analytics.failures.columns import MINUTE

if TYPE_CHECKING:
    from collections.abc import Mapping

SHARED_CAUSES: Mapping[str, str] = {
    "filesystem_mount": "storage",
    "object_storage": "storage",
    "connection_error": "services",
    "scheduler": "services",
    "system_service": "services",
    "container_runtime": "services",
    "network": "network",
    "ib_link": "network",
    "ethernet_link": "network",
    "power": "facility",
    "cooling": "facility",
    "facility": "facility",
    "node_lost": "node_lost",
}
"""Causes that strike several nodes at once, with the class in which they count as one."""


@dataclass(frozen=True)
class IncidentOptions:
    """Times and counts by which failures and events are joined.

    Raises
    ------
    OutOfRangeError
        For a number outside its range.
    """

    before_minutes: float = 10.0
    """Evidence counts from this long before a failure (Kokolis et al., section II) ..."""
    after_minutes: float = 5.0
    """... to this long after it; their sum joins failures, and events, of one node."""
    shared_minutes: float = 5.0
    """Failures of one rack, pod or shared cause within this time may be one storm ..."""
    shared_nodes: int = 3
    """... from this many nodes on ..."""
    fleet_nodes: int = 10
    """... and, whatever their causes and places, from this many nodes of the cluster on."""
    chance_per_year: float = 1.0
    """Storms that chance may be expected to make up in a year, of each kind of place or cause."""
    longest_hours: float = 24.0
    """A chain of members longer than this is cut; a crash loop is held together."""
    loop_failures: int = 3
    """Failures of one run in a row that make a crash loop ..."""
    loop_hours: float = 24.0
    """... when they fall within this time."""
    lost_minutes: float = 30.0
    """Work lost by an attempt at most: half the interval between hourly checkpoints."""
    shared_causes: Mapping[str, str] = field(default_factory=lambda: SHARED_CAUSES)
    """Cause to class, as `SHARED_CAUSES`."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Cause to its title in plain words; a cause without one is named by its id."""

    @property
    def window(self) -> tuple[int, int]:
        """Microseconds before and after a failure within which evidence counts."""
        return int(self.before_minutes * MINUTE), int(self.after_minutes * MINUTE)

    def __post_init__(self) -> None:
        for name in ("before_minutes", "after_minutes", "shared_minutes", "lost_minutes"):
            validate.nonnegative(name, getattr(self, name), "pass minutes")
        for name in ("shared_nodes", "fleet_nodes", "longest_hours", "loop_hours"):
            validate.positive(name, getattr(self, name), "pass e.g. 3 nodes or 24 hours")
        validate.nonnegative("chance_per_year", self.chance_per_year, "pass storms a year, e.g. 1")
