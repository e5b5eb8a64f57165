"""Leaving before a node is taken."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.recovery.liveput import liveput, poisson
from analytics.recovery.mechanism import KINDS, PREEMPTION
from analytics.recovery.policy import Parameter, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.recovery.mechanism import Mechanism
    from analytics.recovery.policy import Site


def _parcae(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """As Varuna, with the layout of most liveput; moves away from preemptions foretold."""
    grid, ahead = site.grid, values["ahead_min"]
    if not values["foretold_ratio"]:
        return ground
    expected = float(site.hazards.per_min[KINDS.index(PREEMPTION)]) * ahead
    found = liveput(
        grid.nodes, grid.stages, poisson(expected, min(grid.nodes, site.most_lost)),
        moved_cost=min(1.0, values["migrate_min"] / ahead) if ahead else 0.0,
    )  # fmt: skip
    moved = replace(
        ground, foretold_ratio=values["foretold_ratio"], migrate_min=values["migrate_min"]
    )
    if found.replicas == grid.replicas or not ground.goes_on:
        return moved
    runs, most = found.replicas, min(site.most_lost, grid.nodes)
    return replace(
        moved,
        steady_ratio=1.0 - runs / grid.replicas,
        throughput=tuple(
            min(runs, (grid.nodes - lost) // grid.stages) / runs for lost in range(most + 1)
        ),
    )


POLICIES = (
    Policy(
        "parcae", "Parcae (NSDI 24)",
        "The layout of most expected throughput under a forecast; it moves before a preemption.",
        "a forecast of preemptions; live migration of a stage", _parcae,
        (
            Parameter("foretold_ratio", 0.8, "ratio", "no figure is cited for it", "assumed"),
            Parameter("migrate_min", 0.5, "min", "no figure is cited for it", "assumed"),
            Parameter("ahead_min", 10.0, "min", "that are looked ahead", "assumed"),
        ),
        builds_on="varuna",
    ),
)  # fmt: skip
