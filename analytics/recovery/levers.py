"""Nodes drained, checkpoint interval, restart time and spares, moved together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.efficiency.ettr_forms import ettr_exact
from analytics.errors import OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Floats
    from analytics.efficiency.expected_ettr import EttrSettings
    from analytics.estimate import Estimate

DRAINED: Final = 10
"""Nodes that may be drained, at most."""
STEPS: Final = np.array([0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0])
"""Of the present interval and restart."""


@dataclass(frozen=True)
class Levers:
    """What a job gets at every place of the levers."""

    rates: tuple[Estimate, ...]
    """Failures per 1,000 node-days with 0, 1, 2 ... nodes drained."""
    mttf_hours: tuple[Estimate, ...]
    """Of the job, at each of them."""
    intervals_min: Floats
    restarts_min: Floats
    spares: tuple[int, ...]
    ettr: Floats
    """Value, lower and upper bound by the rate's; shape (drained, spares, intervals, restarts, 3),
    NaN where a bound is not known."""


def levers(
    settings: EttrSettings,
    rate: Estimate,
    *,
    ratios: Sequence[float],
    weights: Sequence[float],
    enough: Sequence[float],
    swap_min: float,
) -> Levers:
    """ETTR and MTTF of a job where its worst nodes are drained and it saves, restarts and waits
    otherwise.

    .. math:: r_d = r \\, \\frac{\\sum_{i > d} \\rho_i w_i / \\sum_{i > d} w_i}
        {\\sum_i \\rho_i w_i / \\sum_i w_i}, \\quad q_k = P_k s + (1 - P_k) q

    with rho the rate of each node over that of a healthy one, the highest first, in its posterior
    mean: so that nodes that had bad luck count by as much as they differ; w their exposure; P_k the
    share of the time for which k spares are enough, s the swap and q the queue. ETTR is the exact
    form at r_d and q_k.

    Parameters
    ----------
    settings
        The job as it is.
    rate : Estimate
        Of the fleet, failures per 1,000 node-days.
    ratios, weights
        Of each node, of one length; >= 0.
    enough
        P_k for 0, 1, 2 ... spares; 0 where none stands ready.
    swap_min : float
        Until a spare is in place, at most the queue.

    Raises
    ------
    OutOfRangeError
        Without a node, or where no rate is known.
    """
    if not len(ratios) or rate.value is None:
        raise OutOfRangeError("ratios", "of at least one node, with a rate", 0, "ingest nodes")
    order = np.argsort(-np.asarray(ratios, dtype=float), kind="stable")
    rho, weight = np.asarray(ratios, float)[order], np.asarray(weights, float)[order]
    mean = _mean(rho, weight)
    most = min(DRAINED, len(rho) - 1)
    rates = tuple(rate.scaled(_mean(rho[d:], weight[d:]) / mean) for d in range(most + 1))
    swap = min(swap_min, settings.queue_min)
    queues = [share * swap + (1.0 - share) * settings.queue_min for share in enough]
    intervals, restarts = settings.checkpoint_min * STEPS, settings.restart_min * STEPS
    nodes = settings.gpus / settings.gpus_per_node
    bounds = np.array([[each.value, each.upper, each.lower] for each in rates], dtype=float)
    per_min = bounds * nodes / 1000.0 / 1440.0
    found = ettr_exact(
        per_min[:, None, None, None, :],
        restarts[None, None, None, :, None],
        intervals[None, None, :, None, None],
        write_min=settings.write_min,
        queue_min=np.array(queues)[None, :, None, None, None],
    )
    mttf = tuple(each.inverted(24_000.0 / nodes) for each in rates)
    return Levers(rates, mttf, intervals, restarts, tuple(range(len(queues))), found)


def _mean(ratios: Floats, weights: Floats) -> float:
    """Mean rate of some nodes over that of a healthy one, by exposure."""
    total = float(weights.sum())
    return float(ratios @ weights) / total if total > 0 else float(ratios.mean())
