"""The nodes of the demo: where they stand, how often they fail, when they are maintained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from data.synthetic import calibration as cal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from data.synthetic.spec import DemoSpec

NODES_PER_RACK: Final = 2
RACKS_PER_POD: Final = 10

MAINTENANCE: Final = 0
"""Outage planned long before: a rack is updated."""

INSPECTION: Final = 1
"""Outage after a check of low severity: the node is drained once its jobs have ended (A4)."""

REPAIR: Final = 2
"""Outage after a hardware failure."""

_MAINTENANCE_EVERY_S: Final = 30 * cal.DAY_S
_MAINTENANCE_MEAN_S: Final = 2.5 * cal.HOUR_S
_INSPECTIONS_PER_NODE_DAY: Final = 0.008
_INSPECTION_MEDIAN_S: Final = 3 * cal.HOUR_S


@dataclass(frozen=True)
class Fleet:
    """The nodes, by number from 0."""

    names: list[str]
    hazard: NDArray[np.float64]
    """Hardware failures per second of running time of a whole node's GPUs."""
    lemons: list[int]
    installed_days: NDArray[np.int64]
    """Days between installation and the beginning of the period; one value per delivery."""

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class PlannedOutages:
    """Outages that are due at a time and begin when the node next stands empty."""

    due_s: NDArray[np.int64]
    node: NDArray[np.int64]
    kind: NDArray[np.int64]
    length_s: NDArray[np.int64]


def fleet(spec: DemoSpec, rng: np.random.Generator) -> Fleet:
    """Nodes of which a few are lemons; the mean failure rate is RSC-1's, lemons included."""
    n = spec.n_nodes
    n_lemons = max(1, round(cal.LEMON_RATIO * n)) if n >= cal.LEMON_LEAST_NODES else 0
    lemons = sorted(rng.choice(n, n_lemons, replace=False).tolist())
    relative = np.ones(n)
    relative[lemons] = cal.LEMON_HAZARD
    per_second = cal.FAILURES_PER_1000_NODE_DAYS / 1000 / cal.DAY_S
    width = max(4, len(str(n)))
    delivery = np.searchsorted([0.4, 0.7, 0.9], np.arange(n) / n, side="right")
    return Fleet(
        names=[f"gpu{i:0{width}d}" for i in range(1, n + 1)],
        hazard=relative / relative.mean() * per_second,
        lemons=lemons,
        installed_days=np.array([420, 240, 95, 20])[delivery],
    )


def planned_outages(spec: DemoSpec, nodes: Fleet, rng: np.random.Generator) -> PlannedOutages:
    """Monthly maintenance, rack by rack, and inspections, of lemons three times as often."""
    n, period = spec.n_nodes, spec.period_s
    racks = np.arange(n) // NODES_PER_RACK
    rounds = np.arange(period // _MAINTENANCE_EVERY_S + 1)
    offset = rng.integers(0, _MAINTENANCE_EVERY_S, racks[-1] + 1)[racks]
    due = (rounds[:, None] * _MAINTENANCE_EVERY_S + offset).ravel()
    node = np.tile(np.arange(n), len(rounds))
    length = rng.gamma(4, _MAINTENANCE_MEAN_S / 4, len(due))
    weight = np.ones(n)
    weight[nodes.lemons] = 3
    n_inspections = rng.poisson(_INSPECTIONS_PER_NODE_DAY * n * period / cal.DAY_S)
    more_due = rng.integers(0, period, n_inspections)
    more_node = rng.choice(n, n_inspections, p=weight / weight.sum())
    more_length = _INSPECTION_MEDIAN_S * rng.lognormal(0, 0.8, n_inspections)
    due, node = np.concatenate([due, more_due]), np.concatenate([node, more_node])
    kind = np.repeat([MAINTENANCE, INSPECTION], [len(length), n_inspections])
    order = np.lexsort((node, due))
    order = order[due[order] < period]
    return PlannedOutages(
        due_s=due[order],
        node=node[order],
        kind=kind[order],
        length_s=np.concatenate([length, more_length])[order].astype(np.int64) + 600,
    )
