"""What runs are expected to get at the rate at which they were interrupted themselves."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.efficiency.beside_expected import expected_at_own_rate
from analytics.efficiency.expected_ettr import EttrSettings, expected_ettr
from analytics.efficiency.group_ettr import RunTotals
from analytics.efficiency.habits import Habit

DAY = 86_400.0
HOURLY = Habit(interval_s=3600, write_s=60, restart_s=300)


def test_it_is_the_exact_form_at_their_own_rate_mean_wait_and_mean_length() -> None:
    """10 interruptions in 20 days of running, 12 starts after 6 h of waiting, 2 runs of 9 days."""
    runs = RunTotals(2, 12, 10, queued_s=DAY / 4, scheduled_s=20 * DAY, productive_s=18 * DAY)
    found = expected_at_own_rate(runs, HOURLY, conf_level=0.9)
    alone = expected_ettr(
        EttrSettings(
            gpus=8, rate_per_1000_node_days=500, restart_min=5, write_min=1, interval_min=60,
            queue_min=30, run_days=9,
        )
    )  # fmt: skip
    assert found.value == pytest.approx(alone.exact_of_run)
    assert found.lower < found.value < found.upper
    assert found.n == 10


def test_levels_nest_and_no_interruption_is_no_proof_of_none() -> None:
    runs = RunTotals(3, 3, 0, queued_s=0.0, scheduled_s=3 * DAY, productive_s=2.9 * DAY)
    half, most = (expected_at_own_rate(runs, HOURLY, conf_level=level) for level in (0.5, 0.99))
    assert most.lower < half.lower < half.value == half.upper


def test_runs_that_got_nothing_done_have_no_expectation() -> None:
    runs = RunTotals(1, 1, 1, queued_s=60.0, scheduled_s=60.0, productive_s=0.0)
    assert expected_at_own_rate(runs, HOURLY, conf_level=0.9).value is None


def test_the_mean_wait_counts_for_a_few_starts_that_waited_long() -> None:
    """Played: 400 runs, waits of 22 min in the median and 109 in the mean. The median falls short."""
    rng = np.random.default_rng(0)
    work_s, rate = 5 * DAY, 2 / DAY
    spread = (2 * np.log(109 / 22)) ** 0.5
    ended = rng.poisson(rate * work_s, 400)
    starts = int((1 + ended).sum())
    waits = 60 * 22 * np.exp(spread * rng.normal(size=starts))
    lost = rng.uniform(0, 3600, int(ended.sum())).sum()
    kept = (400 * work_s - lost - 300 * starts) * 3600 / 3660
    runs = RunTotals(400, starts, int(ended.sum()), waits.sum(), 400 * work_s, kept)
    found = expected_at_own_rate(runs, HOURLY, conf_level=0.9)
    played = kept / (400 * work_s + waits.sum())
    assert found.value == pytest.approx(played, abs=0.005)
    by_median = expected_at_own_rate(
        RunTotals(400, starts, int(ended.sum()), float(np.median(waits)) * starts, 400 * work_s, kept),
        HOURLY, conf_level=0.9,
    )  # fmt: skip
    assert by_median.value > played + 0.05
