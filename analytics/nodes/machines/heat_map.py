"""The metric that decided, of the machine that is unlike the others and of those beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.nodes.machines.detection import SILENCE

if TYPE_CHECKING:
    from analytics.nodes.machines.detection import Detection
    from analytics.nodes.machines.samples import Array, Samples

MOST_MACHINES, MOST_TIMES = 40, 180


@dataclass(frozen=True)
class HeatMap:
    """One metric by machine and time."""

    metric: str
    machines: tuple[str, ...]
    """The one that was found, or came nearest, first; then by distance from the median."""
    n_machines: int
    """How many there are in all."""
    at: Array
    """(times) Seconds since 1970 at which each cell begins."""
    values: Array
    """(machines, times) Mean of the samples in a cell; NaN where there is none."""
    faulty: bool
    """Whether the first machine is faulty."""
    since_at: float | None


def heat_map(samples: Samples, found: Detection) -> HeatMap:
    """The picture of a verdict: the deciding metric, or that in which a machine came nearest."""
    nearest = found.nearest[0] if found.nearest else None
    metric = found.metric if found.metric not in (None, SILENCE) else None
    metric = metric or (nearest.metric if nearest else next(iter(samples.values)))
    machine = found.machine or (nearest.machine if nearest else samples.machines[0])
    values = samples.values[metric]
    size = -(-len(values) // MOST_TIMES)
    begins = np.arange(0, len(values), size)
    known = np.isfinite(values)
    total = np.add.reduceat(np.where(known, values, 0.0), begins, axis=0)
    count = np.add.reduceat(known, begins, axis=0, dtype=np.int64)
    cells = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    middle = [np.median(row[np.isfinite(row)]) if np.isfinite(row).any() else 0.0 for row in cells]
    apart = np.nan_to_num(np.abs(cells - np.array(middle)[:, None])).mean(axis=0)
    first = samples.machines.index(machine)
    apart[first] = np.inf
    shown = np.argsort(-apart, kind="stable")[:MOST_MACHINES]
    return HeatMap(
        metric,
        tuple(samples.machines[k] for k in shown),
        len(samples.machines),
        samples.start_at + begins * samples.step_seconds,
        cells[:, shown].T,
        found.machine is not None,
        found.since_at,
    )
