"""Nodes in groups: the chance that a job outlives a random loss, and what it then still gives.

A job's nodes fall into groups that live or die by themselves: peers that hold copies of each other,
a parity group, a pipeline, a stage. Of each kind one polynomial says how many sets of i lost nodes
it outlives; their product says it of the job, exactly, in whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from analytics import validate
from analytics.errors import OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Outlived = list[int]
"""By number of lost nodes: how many sets of so many a group outlives."""


@dataclass(frozen=True)
class Grid:
    """Nodes as pipelines: `replicas` copies of `stages` nodes each."""

    stages: int
    replicas: int
    microbatches: int
    """Of a pipeline in each step."""

    def __post_init__(self) -> None:
        for name in ("stages", "replicas", "microbatches"):
            validate.positive(name, getattr(self, name), "pass a whole number")

    @property
    def nodes(self) -> int:
        """All of them."""
        return self.stages * self.replicas

    def slowed(self, load: float, bubbles_ratio: float) -> float:
        """Part of the throughput that is left where one stage does `load` times its work.

        .. math:: \\frac{m + P - 1}{m + P - 1 + \\max(0, m (l - 1) - b (P - 1))}

        with m micro-batches, P stages, l the load and b the share of the pipeline's idle slots
        (P - 1 of a stage in each step) that takes up the extra work.
        """
        slots = self.microbatches + self.stages - 1
        extra = self.microbatches * (load - 1.0) - bubbles_ratio * (self.stages - 1)
        return slots / (slots + max(0.0, extra))


def not_all(size: int) -> Outlived:
    """A group that lives while one of its nodes does: copies of a state, replicas of a stage."""
    return [comb(size, lost) for lost in range(size)]


def at_most(size: int, most: int) -> Outlived:
    """A group that lives while at most so many of its nodes are lost: parity."""
    return [comb(size, lost) for lost in range(min(most, size) + 1)]


def no_neighbours(size: int) -> Outlived:
    """A pipeline that lives while no two neighbouring stages are lost."""
    return [comb(size - lost + 1, lost) for lost in range((size + 1) // 2 + 1)]


def ring(size: int, copies: int) -> Outlived:
    """A ring in which each node keeps its state on itself and the next `copies` - 1.

    Of fewer than twice as many nodes at most one run of lost neighbours holds all copies of a
    state: one of l >= m nodes has a node that lives at each end, and the others are as they are.
    """
    lived = [comb(size, lost) for lost in range(size + 1)]
    for run in range(copies, size + 1):
        ends = min(2, size - run)
        for lost in range(run, size - ends + 1):
            places = 1 if run == size else size
            lived[lost] -= places * comb(size - run - ends, lost - run)
    return lived


def outlived(groups: Sequence[tuple[Outlived, int]], most: int) -> Outlived:
    """Sets of 0 to `most` lost nodes that all groups outlive, each kind so many times."""
    product = [1]
    for group, times in groups:
        product = _times(product, _power(group, times, most), most)
    return product + [0] * (most + 1 - len(product))


def chances(groups: Sequence[tuple[Outlived, int]], nodes: int, most: int) -> tuple[float, ...]:
    """Chance that all groups outlive the loss of 0 to `most` of so many nodes at random."""
    most = min(most, nodes)
    return tuple(sets / comb(nodes, lost) for lost, sets in enumerate(outlived(groups, most)))


def from_memory(nodes: int, copies: int, most: int) -> tuple[float, ...]:
    """Chance that a state in memory can be had after k machines are lost at once, k = 0 to `most`.

    .. math:: 1 - \\sum_{j \\ge 1} (-1)^{j+1}
        \\binom{N/m}{j} \\binom{N - jm}{k - jm} \\Big/ \\binom{N}{k}

    for N `nodes` in groups of m `copies` that hold each other's state. Where m does not divide N
    the last group is a ring of the nodes that are left over with m others.

    Raises
    ------
    OutOfRangeError
        For fewer nodes than copies.

    Notes
    -----
    Placement knows no racks: k nodes of one rack are as k at random. The paper's own bound,
    1 - N C(N-m, k-m) / (m C(N, k)), is a union bound: equal below k = 2m, too low from there on.
    References: Wang et al. (2023), GEMINI, SOSP.

    Examples
    --------
    >>> chance = from_memory(16, 2, 6)
    >>> [round(chance[k], 4) for k in (2, 3, 4, 6)]
    [0.9333, 0.8, 0.6154, 0.2238]
    """
    return tuple(after_loss(nodes, copies, lost) for lost in range(min(most, nodes) + 1))


def after_loss(nodes: int, copies: int, lost: int) -> float:
    """The same for one number of machines lost."""
    if not 1 <= copies <= nodes:
        raise OutOfRangeError("copies", f"from 1 to {nodes} nodes", copies, "pass e.g. 2")
    if not 0 <= lost <= nodes:
        raise OutOfRangeError("lost", f"from 0 to {nodes} nodes", lost, "pass those lost at once")
    rest = nodes % copies
    whole = nodes // copies - (rest > 0)
    last = ring(copies + rest, copies) if rest else [1]
    outlived_sets = sum(
        sets * _no_group_full(whole, copies, lost - in_last)
        for in_last, sets in enumerate(last[: lost + 1])
    )
    return outlived_sets / comb(nodes, lost)


def _no_group_full(groups: int, size: int, lost: int) -> int:
    """Sets of so many lost nodes that fill no group, by inclusion and exclusion."""
    nodes = groups * size
    return sum(
        (-1) ** full * comb(groups, full) * comb(nodes - full * size, lost - full * size)
        for full in range(min(groups, lost // size) + 1)
        if lost - full * size <= nodes - full * size
    )


def stage_survives(grid: Grid, most: int) -> tuple[float, ...]:
    """Chance that every stage keeps a replica after k nodes are lost, k = 0 to `most`."""
    return chances([(not_all(grid.replicas), grid.stages)], grid.nodes, most)


def replica_survives(grid: Grid, most: int) -> tuple[float, ...]:
    """Chance that one whole pipeline is left after k nodes are lost, k = 0 to `most`."""
    hit = [0] + [comb(grid.stages, lost) for lost in range(1, grid.stages + 1)]
    none_left = chances([(hit, grid.replicas)], grid.nodes, most)
    return tuple(1.0 - chance for chance in none_left)


def neighbours_survive(grid: Grid, most: int) -> tuple[float, ...]:
    """Chance that no pipeline lost two neighbouring stages, k = 0 to `most` nodes lost."""
    return chances([(no_neighbours(grid.stages), grid.replicas)], grid.nodes, most)


def by_worst_stage(grid: Grid, most: int, given: Callable[[int], float]) -> tuple[float, ...]:
    """Mean of what a loss gives, by the number that the worst stage lost, where all stages live.

    For k = 0 to `most` nodes lost at random; 0 where no such loss is outlived.
    """
    most = min(most, grid.nodes)
    sets = np.array(
        [
            outlived([(at_most(grid.replicas, worst), grid.stages)], most)
            for worst in range(min(most, grid.replicas - 1) + 1)
        ],
        dtype=object,
    )
    exactly = np.diff(sets, axis=0, prepend=0)
    return tuple(
        float(sum(int(n) * given(worst) for worst, n in enumerate(column)) / sum(column))
        if sum(column)
        else 0.0
        for column in exactly.T
    )


def whole_replicas(grid: Grid, most: int) -> tuple[float, ...]:
    """Mean share of pipelines that no loss touched, k = 0 to `most` nodes lost at random."""
    most = min(most, grid.nodes)
    return tuple(
        comb(grid.nodes - grid.stages, lost) / comb(grid.nodes, lost) for lost in range(most + 1)
    )


def _times(one: Outlived, other: Outlived, most: int) -> Outlived:
    """Product of two polynomials up to a power."""
    product = [0] * min(len(one) + len(other) - 1, most + 1)
    for i, a in enumerate(one[: most + 1]):
        for j, b in enumerate(other[: most + 1 - i]):
            product[i + j] += a * b
    return product


def _power(base: Outlived, exponent: int, most: int) -> Outlived:
    """A polynomial so many times, up to a power."""
    result, square = [1], base
    while exponent:
        if exponent % 2:
            result = _times(result, square, most)
        square, exponent = _times(square, square, most), exponent // 2
    return result
