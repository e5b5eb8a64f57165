"""Published MTTF figures beside what the same paper's failure rate gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from analytics.reliability.failure_rate import projection_of_rate

if TYPE_CHECKING:
    from analytics.frames import FailureDefinition

PUBLISHED_BY: FailureDefinition = "paper"
"""Definition of a failure by which the published fleets were counted, and another is compared."""
SOURCE = "Kokolis et al., arXiv 2410.21680, cluster RSC-1: r_f = 6.50 per 1,000 node-days"
RSC1_RATE, RSC2_RATE = 6.50, 2.34
"""Failures per 1,000 node-days of the paper's two clusters."""
AGREES, ROUGHLY = 0.05, 0.5
"""Relative differences up to which two figures agree, or do so roughly."""


@dataclass(frozen=True)
class PublishedMttf:
    """An MTTF of RSC-1 as the paper states it."""

    gpus: int
    mttf_hours: float
    stated_as: str

    @property
    def projected_hours(self) -> float:
        """24 / (N r_f) at the published rate, hours."""
        (projection,) = projection_of_rate(RSC1_RATE, [self.gpus])
        return projection.mttf_hours.value or 0.0

    @property
    def implied_rate_per_1000_node_days(self) -> float:
        """The failure rate at which the published MTTF would follow."""
        return RSC1_RATE * self.projected_hours / self.mttf_hours

    @property
    def follows(self) -> Literal["yes", "roughly", "no"]:
        """Whether it follows from the published rate."""
        ratio = self.projected_hours / self.mttf_hours
        difference = max(ratio, 1.0 / ratio) - 1.0
        if difference <= AGREES:
            return "yes"
        return "roughly" if difference <= ROUGHLY else "no"


PUBLISHED_MTTF = (
    PublishedMttf(8, 47.7 * 24, "47.7 d, measured"),
    PublishedMttf(1024, 7.9, "7.9 h, measured"),
    PublishedMttf(4096, 10.0, "about 10 h"),
    PublishedMttf(16384, 1.8, "1.8 h, projected"),
    PublishedMttf(100_000, 0.25, "about 15 min"),
    PublishedMttf(131_072, 0.23, "0.23 h, projected"),
)
"""Two of the measured values do not follow from the paper's own rate."""
