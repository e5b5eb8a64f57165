"""Liveput: the throughput that is to be expected of a layout, given a forecast of preemptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from analytics import validate
from analytics.recovery.spares import log_choices

if TYPE_CHECKING:
    from analytics.arrays import Floats


@dataclass(frozen=True)
class Liveput:
    """The layout of most liveput."""

    replicas: int
    """Pipelines that run; what nodes are left over stands ready."""
    value: float
    """Pipelines that it is expected to keep running."""
    by_replicas: tuple[float, ...]
    """The same for 1, 2, 3 ... pipelines."""


def liveput(nodes: int, stages: int, preempted: Floats, *, moved_cost: float = 0.0) -> Liveput:
    """Layout of most liveput among those of 1 to N / P pipelines.

    .. math:: \\sum_v p_v \\min(D, \\lfloor (N - v) / P \\rfloor)
        (1 - c \\, [\\text{a used node is lost}])

    with N `nodes`, P `stages`, p_v `preempted` the chance that v of the nodes are taken within the
    time that is looked ahead, v = 0, 1 ...; D pipelines use D P nodes and the rest stands ready; c
    `moved_cost` is the share of that time that moving takes.

    Raises
    ------
    OutOfRangeError
        For sizes that are not > 0, or chances that are negative.

    References
    ----------
    Duan et al. (2024), Parcae, NSDI.

    Examples
    --------
    >>> import numpy as np
    >>> liveput(8, 2, np.array([0.0, 1.0]), moved_cost=0.5).replicas
    3
    """
    validate.positive("nodes", nodes, "pass the nodes that are there")
    validate.positive("stages", stages, "pass nodes of a pipeline")
    chance = validate.nonnegative_array("preempted", preempted)[: nodes + 1]
    lost = np.arange(len(chance))
    values = []
    for replicas in range(1, max(1, nodes // stages) + 1):
        used = replicas * stages
        spared = np.exp(log_choices(nodes - used, lost) - log_choices(nodes, lost))
        running = np.minimum(replicas, (nodes - lost) // stages)
        values.append(float(chance @ (running * (1.0 - moved_cost * (1.0 - spared)))))
    best = int(np.argmax(values))
    return Liveput(best + 1, values[best], tuple(values))


def poisson(mean: float, most: int) -> Floats:
    """Chances of 0 to `most` events where so many are expected, the last of them and all beyond."""
    count = np.arange(most + 1)
    found: Floats = np.exp(special.xlogy(count, mean) - mean - special.gammaln(count + 1))
    found[-1] += max(0.0, 1.0 - float(found.sum()))
    return found
