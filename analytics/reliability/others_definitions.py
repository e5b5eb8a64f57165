"""What other tools would say of the same records, and why that differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.reliability.availability import DOWN, DRAINED, PLANNED, UP, WEEK_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.reliability.fleet_availability import FleetAvailability

HOUR_S: Final = 3600.0


@dataclass(frozen=True)
class OthersDefinition:
    """A quantity as somebody else defines it."""

    definition: str
    source: str
    value: float | None
    """None where the definition divides by nothing."""
    unit: str
    ours: float | None
    """What is to be compared with it."""
    why_it_differs: str

    @property
    def times_ours(self) -> float | None:
        """How many times ours it is."""
        return None if self.value is None or not self.ours else self.value / self.ours


def others_definitions(
    found: FleetAvailability, running_node_days: float | None
) -> tuple[OthersDefinition, ...]:
    """Mean times between failures and shares of time by the definitions of other tools.

    Parameters
    ----------
    found
        Whose own MTBF is node-hours up over unplanned outages.
    running_node_days
        Node-days in which jobs ran; None where that is not known.

    Notes
    -----
    - Calendar quotient: node-hours there, down ones too, over all outages, planned ones too.
    - NVSentinel (ADR-044): mean of start(N + 1) - start(N) over the outages of each node.
    - soperator's panel: the calendar quotient of the last 7 days; none divides by 0.
    - Mean of nodes: period over outages, node by node, of the nodes that had any.
    - sreport cluster utilization: shares allocated, down, planned down and idle of the time that is
      recorded. It knows no reservation here, and drained nodes are down.

    Examples
    --------
    >>> one = OthersDefinition("a", "b", 10.0, "h", 20.0, "c")
    >>> one.times_ours
    0.5
    """
    if not found.ratios.node_seconds:
        return ()
    return (*_between(found), *_shares(found, running_node_days))


def _between(found: FleetAvailability) -> Iterator[OthersDefinition]:
    """Times between failures of a node."""
    starts, ours = found.starts, found.occurrence.mtbf_hours.value
    hours = found.ratios.node_seconds / HOUR_S
    n = len(starts.at_s)
    yield OthersDefinition(
        "calendar time over outages", "common practice", hours / n if n else None, "h", ours,
        "Time that nodes were down counts as time between failures, planned work as failures.",
    )  # fmt: skip
    order = np.lexsort((starts.at_s, starts.node))
    node, at = starts.node[order], starts.at_s[order]
    gaps = np.diff(at)[np.diff(node) == 0] / HOUR_S
    several = int((np.bincount(node) > 1).sum()) if n else 0
    yield OthersDefinition(
        "mean gap between outages of a node", "NVSentinel, ADR-044",
        float(gaps.mean()) if len(gaps) else None, "h", ours,
        f"Only the {several:,} nodes with two outages and more count, the others vanish; repair "
        "time and planned work are in it.",
    )  # fmt: skip
    late = int((at > starts.last_s - WEEK_S).sum())
    yield OthersDefinition(
        "calendar time over outages, last 7 days", "soperator, Overall MTBF panel",
        starts.last_week_s / HOUR_S / late if late else None, "h", ours,
        "A week has few outages, and none divides by zero; down time and drains count as above.",
    )  # fmt: skip
    failed = [part for part in found.by_node if part.outages]
    each = [sum(part.seconds) / HOUR_S / part.outages for part in failed]
    yield OthersDefinition(
        "mean of nodes that failed", "common practice",
        float(np.mean(each)) if each else None, "h", ours,
        f"{len(found.by_node) - len(failed):,} nodes without an outage are left out.",
    )  # fmt: skip


def _shares(
    found: FleetAvailability, running_node_days: float | None
) -> Iterator[OthersDefinition]:
    """Shares of the time, as sreport gives them."""
    whole = found.ratios.node_seconds
    seconds = np.sum([part.seconds for part in found.by_cluster], axis=0)
    down, planned = (seconds[DOWN] + seconds[DRAINED]) / whole, seconds[PLANNED] / whole
    allocated = None if running_node_days is None else running_node_days * 86_400 / whole
    source = "sreport cluster utilization"
    yield OthersDefinition(
        "allocated", source, allocated, "ratio", None,
        "Jobs that fail count as any other; ours is the ledger's.",
    )  # fmt: skip
    yield OthersDefinition(
        "down", source, float(down), "ratio", found.ratios.unplanned.value,
        "Drained nodes count as down there; a node that drains while a job runs is allocated.",
    )  # fmt: skip
    yield OthersDefinition(
        "planned down", source, float(planned) if found.planned_known else None, "ratio",
        found.ratios.planned.value if found.planned_known else None,
        "There only reservations for maintenance; here also outages that were announced.",
    )  # fmt: skip
    idle = None if allocated is None else max(0.0, seconds[UP] / whole - allocated)
    yield OthersDefinition(
        "idle", source, idle, "ratio", None, "What is left: the time of nobody, whatever the queue."
    )
