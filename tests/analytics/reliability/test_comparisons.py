"""Published MTTF figures: which follow from the paper's own failure rate."""

from __future__ import annotations

import pytest

from analytics.reliability.comparisons import PUBLISHED_MTTF, RSC1_RATE
from analytics.reliability.failure_rate import projection_of_rate


def test_two_measured_figures_do_not_follow_from_the_published_rate() -> None:
    follows = {published.gpus: published.follows for published in PUBLISHED_MTTF}
    assert follows == {
        8: "no", 1024: "no", 4096: "roughly", 16384: "yes", 100_000: "roughly", 131_072: "yes",
    }  # fmt: skip


def test_the_implied_rate_gives_the_published_figure() -> None:
    for published in PUBLISHED_MTTF:
        implied = published.implied_rate_per_1000_node_days
        (projection,) = projection_of_rate(implied, [published.gpus])
        assert projection.mttf_hours.value == pytest.approx(published.mttf_hours)
    largest = PUBLISHED_MTTF[-1]
    assert largest.projected_hours == pytest.approx(24 / (131_072 / 8 * RSC1_RATE / 1000))
