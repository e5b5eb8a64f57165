"""Pipelines that go on with nodes missing, each by a rule of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.recovery.groups import (
    by_worst_stage,
    neighbours_survive,
    stage_survives,
)
from analytics.recovery.mechanism import Downtime, Kept
from analytics.recovery.policies.in_memory import RARE
from analytics.recovery.policy import Parameter, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.recovery.groups import Grid
    from analytics.recovery.mechanism import Losses, Mechanism
    from analytics.recovery.policy import Site


def _goes_on(
    ground: Mechanism,
    site: Site,
    values: Mapping[str, float],
    *,
    survives: tuple[float, ...],
    counted: Losses,
    throughput: tuple[float, ...],
) -> Mechanism:
    """Training pauses for a moment, and goes on without the lost nodes."""
    pause = values["pause_min"]
    found = Downtime(detect=ground.restart.detect, init=pause)
    return replace(
        ground,
        kept=Kept(survives, counted, found, site.step_min),
        interval_min=values["persist_min"] or ground.interval_min,
        steady_ratio=values.get("steady_ratio", 0.0),
        throughput=throughput,
        rejoin=Downtime(init=pause),
    )


def _bamboo(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """Each node computes the next stage, too: two neighbours may not go."""
    grid = site.grid
    if grid.stages < 2:
        return ground
    twice = grid.slowed(2.0, 0.0)
    return _goes_on(
        ground, site, values,
        survives=neighbours_survive(grid, site.most_lost), counted="missing",
        throughput=(1.0,) + (twice,) * site.most_lost,
    )  # fmt: skip


def _oobleck(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """Pipelines are formed anew from templates over all nodes that are left; it needs f + 1."""
    grid, nodes = site.grid, site.hazards.nodes
    copies = int(values["faults"]) + 1
    if grid.replicas < copies or copies < 2:
        return ground
    least = copies * grid.stages
    left = range(nodes, max(nodes - site.most_lost, least) - 1, -1)
    return _goes_on(
        ground, site, values,
        survives=stage_survives(grid, site.most_lost), counted="at once",
        throughput=tuple(n / nodes for n in left),
    )  # fmt: skip


def _recycle(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """Peers of a stage take its micro-batches; what bubbles absorb costs nothing."""
    grid = site.grid
    if grid.replicas < 2:
        return ground
    return _goes_on(
        ground, site, values,
        survives=stage_survives(grid, site.most_lost), counted="missing",
        throughput=by_worst_stage(
            grid, site.most_lost,
            lambda lost: grid.slowed(
                grid.replicas / (grid.replicas - lost), values["bubbles_ratio"]
            ),
        ),
    )  # fmt: skip


def _swarm(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """Nodes move between stages until the weakest has as many as it can."""
    grid, most = site.grid, site.most_lost
    if grid.replicas < 2:
        return ground
    return _goes_on(
        ground, site, values,
        survives=stage_survives(grid, most), counted="at once",
        throughput=_even(grid, most),
    )  # fmt: skip


def _even(grid: Grid, most: int) -> tuple[float, ...]:
    """Stages of as many nodes each as can be: the weakest decides."""
    return tuple(
        (grid.nodes - lost) // grid.stages / grid.replicas
        for lost in range(min(most, grid.nodes) + 1)
    )


def replanned(grid: Grid, most: int, deepest: float) -> tuple[float, ...]:
    """Throughput of the best plan for what is left, 0 to `most` nodes missing.

    .. math:: \\max_{P', D'} \\frac{m + P - 1}{(M / D' + P' - 1) P / P'}, \\quad M = m D

    over P' from P to `deepest` times P and D' = floor of what is left over P': M micro-batches a
    step, each stage of the deeper pipeline with fewer layers.
    """
    slots = grid.microbatches + grid.stages - 1
    batches = grid.microbatches * grid.replicas
    found = []
    for lost in range(min(most, grid.nodes) + 1):
        left, best = grid.nodes - lost, 0.0
        for stages in range(grid.stages, int(deepest * grid.stages) + 1):
            replicas = left // stages
            if replicas:
                time = (batches / replicas + stages - 1) * grid.stages / stages
                best = max(best, slots / time)
        found.append(min(best, 1.0))
    return tuple(found)


def _varuna(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """From the last checkpoint, with the best plan for the nodes that are left."""
    throughput = replanned(site.grid, site.most_lost, values["deepest"])
    if len([part for part in throughput if part > 0]) < 2:
        return ground
    morphs = Downtime(init=ground.restart.init, load=ground.restart.load)
    return replace(ground, throughput=throughput, restart_waits=False, rejoin=morphs)


def _universal(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """Any layout can load the checkpoint, once it is converted: to fewer nodes and back, both when
    these come back."""
    nodes = site.hazards.nodes
    if nodes < 2:
        return ground
    throughput = tuple(1.0 - lost / nodes for lost in range(min(site.most_lost, nodes - 1) + 1))
    return replace(
        ground, throughput=throughput, restart_waits=False,
        rejoin=Downtime(
            init=ground.restart.init, load=ground.restart.load + 2 * values["convert_min"]
        ),
    )  # fmt: skip


PAUSE = Parameter("pause_min", 0.5, "min", "seconds", "recalled")
POLICIES = (
    Policy(
        "bamboo", "Bamboo (NSDI 23)",
        "Each node also computes its neighbour's stage and takes over where it is lost.",
        "memory for two stages in each node; a pipeline with idle slots", _bamboo,
        (
            Parameter("steady_ratio", 0.1, "ratio", "no figure is cited for it", "assumed"),
            PAUSE, RARE,
        ),
    ),
    Policy(
        "oobleck", "Oobleck (SOSP 23)",
        "Pipelines of several sizes, planned ahead, use all nodes that are left.",
        "f + 1 replicas; templates for each size of a pipeline", _oobleck,
        (
            Parameter("faults", 1.0, "nodes",
                      "f that it must outlive; it stops with fewer nodes than f + one pipelines",
                      "assumed"),
            PAUSE, RARE,
        ),
    ),
    Policy(
        "recycle", "ReCycle, SlipStream (2405.14009)",
        "Micro-batches of a lost node go to its data-parallel peers, into their bubbles.",
        "data-parallel replicas; a backward pass in two parts, a staggered optimizer", _recycle,
        (
            Parameter("bubbles_ratio", 1.0, "ratio", "idle slots that take up work", "derived"),
            PAUSE, RARE,
        ),
    ),
    Policy(
        "swarm", "SWARM (ICML 23)",
        "Nodes are wired at random and move between stages until these are even.",
        "stages that hand work to any peer; preemptible nodes", _swarm,
        (Parameter("pause_min", 1.0, "min", "to rebalance; no figure is cited", "assumed"), RARE),
    ),
    Policy(
        "varuna", "Varuna (EuroSys 22)",
        "From the checkpoint with the best plan for the nodes that are left, without waiting.",
        "a planner of pipeline depth and replicas; a batch that stays", _varuna,
        (Parameter("deepest", 2.0, "times", "depth of a pipeline that is tried", "assumed"),),
    ),
    Policy(
        "universal", "Universal checkpointing (2406.18820)",
        "Any parallelism can load the checkpoint: the job resumes smaller.",
        "conversion where the layout changes", _universal,
        (Parameter("convert_min", 1.0, "min", "where the layout changes", "assumed"),),
    ),
)  # fmt: skip
