"""Expected ETTR of a job over the interval of its failure rate, which may be unknown or 0."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analytics.efficiency.ettr_forms import ettr_exact, optimal_interval
from analytics.estimate import Estimate
from analytics.reliability.comparisons import RSC1_RATE, RSC2_RATE

if TYPE_CHECKING:
    from analytics.efficiency.expected_ettr import EttrSettings


@dataclass(frozen=True)
class EttrRange:
    """What the interval of a failure rate leaves open; times in minutes."""

    rate_per_1000_node_days: Estimate
    """As measured; where nothing is known of it, the range of published fleets, assumed."""
    ettr: Estimate
    """Exact form; bounds at those of the rate. No value where the rate has none, or is 0."""
    interval_min: tuple[float | None, float | None]
    """Best interval between checkpoints at the highest and at the lowest rate; None where no
    interval is best: writes cost nothing, or the rate may be 0."""


def ettr_range(settings: EttrSettings, rate_per_1000_node_days: Estimate) -> EttrRange:
    """Expected ETTR and the best interval at the bounds of a failure rate.

    A rate that is not known, or of which no failure was seen, is no rate of 0: it has an upper
    bound, at which the ETTR is least and checkpoints are due. Where it has none, it is assumed to
    lie between those of two published fleets (Kokolis et al., arXiv 2410.21680).

    Parameters
    ----------
    settings : EttrSettings
        The job; its own rate is not used, an interval that is not given is best for each rate.
    rate_per_1000_node_days : Estimate
        Failures per 1,000 node-days.

    Examples
    --------
    >>> from analytics.efficiency.expected_ettr import EttrSettings
    >>> job = EttrSettings(gpus=1024, rate_per_1000_node_days=0, restart_min=5, write_min=1,
    ...     interval_min=60)
    >>> found = ettr_range(job, Estimate(0.0, 0.0, 3.0, 0.9, 0))
    >>> found.ettr.value, round(found.ettr.lower, 3), round(found.ettr.upper, 3)
    (None, 0.974, 0.984)
    >>> round(found.interval_min[0]), found.interval_min[1]
    (86, None)
    """
    rate = rate_per_1000_node_days
    if rate.upper is None:
        rate = Estimate(rate.value, RSC2_RATE, RSC1_RATE, None, rate.n)
    best = tuple(_best_interval(settings, bound) for bound in (rate.upper, rate.lower))
    ettr = Estimate(
        _exact(settings, rate.value) if rate.value else None,
        _exact(settings, rate.upper),
        _exact(settings, rate.lower or 0.0),
        rate.conf_level,
        rate.n,
    )
    return EttrRange(rate, ettr, (best[0], best[1]))


def _best_interval(settings: EttrSettings, rate: float | None) -> float | None:
    """Best interval at a rate; None where none is."""
    job = replace(settings, rate_per_1000_node_days=rate or 0.0)
    best = float(optimal_interval(job.failures_per_min, job.write_min))
    return None if math.isnan(best) else best


def _exact(settings: EttrSettings, rate: float | None) -> float:
    """The exact form at a rate, at the interval of the settings."""
    job = replace(settings, rate_per_1000_node_days=rate or 0.0)
    return float(
        ettr_exact(
            job.failures_per_min,
            job.restart_min,
            job.checkpoint_min,
            write_min=job.write_min,
            queue_min=job.queue_min,
        )
    )
