"""Chances and throughput of groups, beside the enumeration of every set of lost nodes."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analytics.errors import OutOfRangeError
from analytics.recovery.groups import (
    Grid,
    at_most,
    by_worst_stage,
    chances,
    from_memory,
    neighbours_survive,
    replica_survives,
    stage_survives,
    whole_replicas,
)
from analytics.recovery.liveput import liveput, poisson
from analytics.recovery.policies.pipelines import replanned

if TYPE_CHECKING:
    from collections.abc import Callable

    Lost = set[tuple[int, int]]

GRIDS = [Grid(stages, replicas, 4 * stages) for stages in range(1, 5) for replicas in range(1, 4)]


def _sets(grid: Grid, lost: int) -> list[Lost]:
    """Every set of so many lost nodes, each (replica, stage)."""
    nodes = [(d, s) for d in range(grid.replicas) for s in range(grid.stages)]
    return [set(each) for each in combinations(nodes, lost)]


def _share(sets: list[Lost], lives: Callable[[Lost], bool]) -> float:
    return sum(map(lives, sets)) / len(sets)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_survival_and_throughput_are_those_of_all_failure_sets(grid: Grid) -> None:
    replicas, stages = range(grid.replicas), range(grid.stages)

    def staged(lost: Lost) -> bool:
        return all(any((d, s) not in lost for d in replicas) for s in stages)

    def one_whole(lost: Lost) -> bool:
        return any(all((d, s) not in lost for s in stages) for d in replicas)

    def no_two(lost: Lost) -> bool:
        return not any((d, s) in lost and (d, s + 1) in lost for d in replicas for s in stages)

    def rerouted(lost: Lost) -> float:
        worst = max(sum((d, s) in lost for d in replicas) for s in stages)
        return grid.slowed(grid.replicas / (grid.replicas - worst), 0.5)

    most = min(3, grid.nodes)
    slowed = by_worst_stage(
        grid, most, lambda lost: grid.slowed(grid.replicas / (grid.replicas - lost), 0.5)
    )
    for lost in range(most + 1):
        sets = _sets(grid, lost)
        alive = [each for each in sets if staged(each)]
        assert stage_survives(grid, most)[lost] == pytest.approx(_share(sets, staged))
        assert replica_survives(grid, most)[lost] == pytest.approx(_share(sets, one_whole))
        assert neighbours_survive(grid, most)[lost] == pytest.approx(_share(sets, no_two))
        mean = float(np.mean([rerouted(each) for each in alive])) if alive else 0.0
        assert slowed[lost] == pytest.approx(mean)
        whole = [sum(all((d, s) not in x for s in stages) for d in replicas) for x in sets]
        assert whole_replicas(grid, most)[lost] == pytest.approx(np.mean(whole) / grid.replicas)


@pytest.mark.parametrize(
    ("nodes", "copies"), [(8, 2), (9, 3), (7, 2), (10, 4), (11, 4), (5, 5), (6, 1), (9, 5)]
)
def test_a_state_in_memory_is_had_as_often_as_the_placement_lets(nodes: int, copies: int) -> None:
    whole = nodes // copies - (nodes % copies > 0)
    groups = [range(i * copies, (i + 1) * copies) for i in range(whole)]
    ring = list(range(whole * copies, nodes))
    if ring:  # the last group is a ring: each with the next of it
        groups += [[ring[(i + j) % len(ring)] for j in range(copies)] for i in range(len(ring))]
    found = from_memory(nodes, copies, nodes)
    for lost in range(nodes + 1):
        sets = [set(each) for each in combinations(range(nodes), lost)]
        alive = sum(not any(gone.issuperset(group) for group in groups) for gone in sets)
        assert found[lost] == pytest.approx(alive / len(sets)), (nodes, copies, lost)


def test_published_chances_of_gemini() -> None:
    found = from_memory(16, 2, 6)
    assert [round(found[lost], 4) for lost in (2, 3, 4, 6)] == [0.9333, 0.8, 0.6154, 0.2238]
    exact = 1 - sum(
        (-1) ** (j + 1) * comb(8, j) * comb(16 - 2 * j, 4 - 2 * j) for j in (1, 2)
    ) / comb(16, 4)  # fmt: skip
    assert found[4] == pytest.approx(exact)


def test_parity_outlives_one_node_a_group() -> None:
    assert chances([(at_most(4, 1), 2)], 8, 2)[2] == pytest.approx(16 / 28)


def test_large_jobs_have_chances_too() -> None:
    chance = from_memory(12_500, 2, 64)
    assert chance[2] == pytest.approx(1 - 1 / 12_499)
    assert np.all(np.diff(chance) <= 0)
    assert 0 < chance[64] < 1


def test_more_copies_than_nodes_are_refused() -> None:
    with pytest.raises(OutOfRangeError, match="copies"):
        from_memory(4, 5, 1)


def test_liveput_is_the_mean_over_all_sets_of_preempted_nodes() -> None:
    nodes, stages, chance, cost = 7, 2, np.array([0.5, 0.3, 0.15, 0.05]), 0.3
    found = liveput(nodes, stages, chance, moved_cost=cost)
    for replicas, value in enumerate(found.by_replicas, start=1):
        used, mean = set(range(replicas * stages)), 0.0
        for lost, p in enumerate(chance):
            sets = [set(each) for each in combinations(range(nodes), lost)]
            runs = min(replicas, (nodes - lost) // stages)
            mean += p * sum(runs * (1 - cost * bool(x & used)) for x in sets) / len(sets)
        assert value == pytest.approx(mean)
    assert found.value == max(found.by_replicas) == found.by_replicas[found.replicas - 1]
    assert poisson(2.0, 60).sum() == pytest.approx(1.0)
    assert poisson(0.0, 3).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_a_new_plan_uses_what_is_left_as_well_as_a_search_over_all_plans() -> None:
    grid = Grid(2, 3, 8)
    slots, batches = 9, 24
    for lost, got in enumerate(replanned(grid, 6, 2.0)):
        plans = [
            slots / ((batches / (left // depth) + depth - 1) * 2 / depth)
            for left in [6 - lost]
            for depth in (2, 3, 4)
            if left // depth
        ]
        assert got == pytest.approx(min(max(plans, default=0.0), 1.0))
