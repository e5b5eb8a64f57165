"""Expected ETTR of a job over the interval of its failure rate, which may be unknown or 0.

And where published figures do not follow from their own paper's rate and formula.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from analytics.efficiency.ettr_forms import ettr_v1, ettr_v2, optimal_interval
from analytics.efficiency.expected_ettr import EttrSettings
from analytics.estimate import Estimate
from analytics.reliability.comparisons import RSC1_RATE, RSC2_RATE


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
    return replace(settings, rate_per_1000_node_days=rate or 0.0).exact


@dataclass(frozen=True)
class PublishedInconsistency:
    """A published figure beside what the same paper's formula gives with its own inputs."""

    quantity: str
    paper: float
    own_formula: float
    unit: str
    remark: str
    """What would be needed for the published figure."""
    source: str = "Kokolis et al., arXiv 2410.21680"


def _job(gpus: int, rate: float, **costs: float) -> EttrSettings:
    """A job of a paper: restarts take 5 minutes where it says nothing else."""
    return EttrSettings(gpus=gpus, rate_per_1000_node_days=rate, **{"restart_min": 5.0} | costs)


RSC2_AT_100K = _job(100_000, RSC2_RATE, interval_min=21.0)
PUBLISHED_INCONSISTENCIES = (
    PublishedInconsistency(
        "MTTF of a job of 1,024 GPUs, RSC-1",
        7.9,
        _job(1024, RSC1_RATE).mttf_hours or 0.0,
        "h",
        "measured; it implies 23.7 failures per 1,000 node-days instead of 6.50",
    ),
    PublishedInconsistency(
        "MTTF of a job of 8 GPUs, RSC-1",
        47.7,
        (_job(8, RSC1_RATE).mttf_hours or 0.0) / 24.0,
        "d",
        "measured; it implies 21.0 failures per 1,000 node-days instead of 6.50",
    ),
    PublishedInconsistency(
        "MTTF of a job of 4,096 GPUs (about 10 h, Observation 8)",
        10.0,
        _job(4096, RSC1_RATE).mttf_hours or 0.0,
        "h",
        "it takes 4.69 failures per 1,000 node-days: RSC-1's 6.50 give 7.21 h, RSC-2's 2.34 20.0 h",
    ),
    PublishedInconsistency(
        "MTTF of a job of 100,000 GPUs, RSC-1",
        15.0,
        60.0 * (_job(100_000, RSC1_RATE).mttf_hours or 0.0),
        "min",
        "it takes 7.68 failures per 1,000 node-days instead of 6.50, or 118,000 GPUs",
    ),
    PublishedInconsistency(
        "expected ETTR of 100,000 GPUs at the rate of RSC-2, checkpoints every 21 min (v1)",
        0.5,
        float(ettr_v1(RSC2_AT_100K.failures_per_min, 5.0, 21.0)),
        "",
        "0.5 takes u0 + dt/2 = 24.6 min; with u0 of five minutes it is 15.5 min",
    ),
)
"""Shown as they are: no rate is tuned to hide them."""


@dataclass(frozen=True)
class PublishedWhatIf:
    """A what-if of a paper: the form it uses, its inputs, and what it says comes of them."""

    form: Literal["v1", "v2"]
    settings: EttrSettings
    paper: str
    """In the paper's words."""
    follows: bool = True
    """Whether the paper's own form gives that."""
    source: str = "Kokolis et al., arXiv 2410.21680"

    @property
    def ours(self) -> float:
        """ETTR by the same form with the same inputs."""
        job = self.settings
        rate, restart, interval = job.failures_per_min, job.restart_min, job.checkpoint_min
        if self.form == "v1":
            return float(ettr_v1(rate, restart, interval, queue_min=job.queue_min))
        return float(ettr_v2(rate, restart, interval, write_min=job.write_min))


LLAMA_3 = "Llama 3, arXiv 2407.21783, Table 5"
LLAMA_3_RATE = 419 / (54 * 2048) * 1000
"""Failures per 1,000 node-days: 419 in 54 days of 2,048 nodes."""
PUBLISHED_WHAT_IFS = (
    PublishedWhatIf("v1", _job(16_000, RSC1_RATE, interval_min=60.0), "0.7"),
    PublishedWhatIf("v1", _job(16_000, RSC1_RATE, interval_min=5.0), "0.93"),
    PublishedWhatIf("v1", _job(8_000, RSC1_RATE, interval_min=30.0, queue_min=1.0), "0.9"),
    PublishedWhatIf("v1", _job(100_000, RSC1_RATE, interval_min=7.0, queue_min=1.0), "0.5"),
    PublishedWhatIf(
        "v1", _job(100_000, RSC2_RATE, restart_min=2.0, interval_min=2.0, queue_min=1.0), "0.9"
    ),
    PublishedWhatIf("v1", RSC2_AT_100K, "0.5", follows=False),
    PublishedWhatIf("v2", _job(12_000, RSC1_RATE, write_min=5.0), "below 0.9"),
    PublishedWhatIf("v2", _job(12_000, 1.0, write_min=5.0), "0.9"),
    PublishedWhatIf("v2", _job(12_000, RSC1_RATE, write_min=1 / 6), "0.9"),
    PublishedWhatIf(
        "v2",
        _job(16_384, LLAMA_3_RATE, restart_min=10.0, write_min=1 / 6),
        "over 0.9",
        source=LLAMA_3,
    ),
    PublishedWhatIf(
        "v2", _job(16_384, LLAMA_3_RATE, write_min=5.0), "over 0.9", follows=False, source=LLAMA_3
    ),
)
"""What the papers say of jobs, beside which ours stands."""
