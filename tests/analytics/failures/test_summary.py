"""Counts, shares and rates of failed attempts."""

from __future__ import annotations

import pandas as pd
import pytest

from analytics.failures.cause_rates import causes_by_week
from analytics.failures.summary import FailureSummary, failure_summary
from analytics.failures.taxonomy import taxonomy
from analytics.frames import CountedFailures

STATES = pd.DataFrame(
    {"state": ["COMPLETED", "FAILED"], "n_attempts": [90, 10], "gpu_seconds": [7200.0, None]}
)
VERDICTS = pd.DataFrame(
    {
        "cause": ["gpu_memory", "gpu_memory", "node_lost", "key_error"],
        "domain": ["hardware", "hardware", "unknown", "user"],
        "day": pd.to_datetime(["2024-01-01", "2024-01-09", "2024-01-09", "2024-01-02"]),
        "n_attempts": [2, 1, 3, 4],
        "n_exposed": [2, 1, 3, 4],
        "gpu_seconds": [3600.0, None, None, None],
    }
)
DAYS = pd.DataFrame(
    {"day": pd.date_range("2024-01-01", periods=10), "exposure_node_days": [100.0] * 10}
)
COUNTED = CountedFailures({"hardware": 3, "unknown": 3}, lost_node=4, logged=0, unexplained=0)


def summary_of(*frames: pd.DataFrame, running: float = 0.0) -> FailureSummary:
    return failure_summary(
        *frames, counted=COUNTED, running_gpu_seconds=running, causes=taxonomy().causes
    )


def test_counts_add_up_and_rates_are_counts_over_exposure() -> None:
    found = summary_of(STATES, VERDICTS, DAYS)
    assert (found.n_ended, found.n_failed) == (100, 10)
    assert (found.n_unknown, found.counted.n) == (3, 6)
    assert found.exposure_node_days == 1000.0
    assert [(c.cause, c.n_attempts) for c in found.by_cause] == [
        ("key_error", 4), ("gpu_memory", 3), ("node_lost", 3),
    ]  # fmt: skip
    assert found.by_cause[0].rate_per_1000_node_days.value == pytest.approx(4.0)
    assert found.unknown_ratio.value == pytest.approx(0.3)
    assert sum(domain.n_attempts for domain in found.by_domain) == found.n_failed


def test_attempts_without_exposure_count_as_failed_and_in_no_rate() -> None:
    bare = VERDICTS.assign(n_exposed=[2, 1, 3, 1])
    found = summary_of(STATES, bare, DAYS)
    (user,) = (cause for cause in found.by_cause if cause.cause == "key_error")
    assert user.n_attempts == 4
    assert (user.rate_per_1000_node_days.value, user.rate_per_1000_node_days.n) == (1.0, 1)
    (domain,) = (domain for domain in found.by_domain if domain.domain == "user")
    assert (domain.n_attempts, domain.rate_per_1000_node_days.n) == (4, 1)
    assert found.by_week["n_exposed"].sum() == 7


def test_gpu_hours_that_nobody_knows_are_unknown_and_not_zero() -> None:
    found = summary_of(STATES, VERDICTS, DAYS)
    hours = {cause.cause: cause.gpu_hours for cause in found.by_cause}
    assert hours == {"key_error": None, "gpu_memory": 1.0, "node_lost": None}
    by_domain = {domain.domain: domain.gpu_hours for domain in found.by_domain}
    assert by_domain == {"user": None, "system_software": 0.0, "hardware": 1.0, "unknown": None}
    by_state = {state.state: (state.gpu_hours, state.gpu_time_share) for state in found.by_state}
    assert by_state == {"COMPLETED": (2.0, 1.0), "FAILED": (None, None)}


def test_time_of_failed_attempts_stands_beside_that_of_all_running_ones_too() -> None:
    found = summary_of(STATES, VERDICTS, DAYS, running=5 * 3600.0)
    assert (found.failed_gpu_hours, found.held_gpu_hours) == (1.0, 7.0)
    bare = summary_of(STATES.assign(gpu_seconds=None), VERDICTS, DAYS, running=float("nan"))
    assert bare.held_gpu_hours is None


def test_without_known_exposure_counts_stand_and_rates_are_unknown() -> None:
    days = DAYS.assign(exposure_node_days=float("nan"))
    found = summary_of(STATES, VERDICTS, days)
    assert found.exposure_node_days is None
    assert found.by_cause[0].n_attempts == 4
    assert found.by_cause[0].rate_per_1000_node_days.value is None


def test_nothing_is_summarised_as_nothing() -> None:
    found = summary_of(STATES[:0], VERDICTS[:0], DAYS[:0])
    assert (found.n_ended, found.n_failed, found.n_unknown) == (0, 0, 0)
    assert found.unknown_ratio.value is None
    assert found.by_cause == ()
    assert [domain.gpu_hours for domain in found.by_domain] == [0.0] * 4


def test_causes_of_some_domains_are_the_same_numbers() -> None:
    summary = summary_of(STATES, VERDICTS, DAYS)
    causes = summary.causes_of(["hardware", "user"])
    assert [cause.cause for cause in causes] == ["key_error", "gpu_memory"]
    assert summary.n_failed_of(["hardware", "user"]) == sum(cause.n_attempts for cause in causes)
    assert summary.n_failed_of([]) == 0
    weeks = causes_by_week(summary.by_week, ["hardware"])
    assert [series.cause for series in weeks.series] == ["gpu_memory"]
    assert weeks.series[0].n_attempts == 3
    assert summary.titles["gpu_memory"] == taxonomy().causes["gpu_memory"].title


def test_a_cause_is_as_frequent_as_its_rate_or_else_its_attempts() -> None:
    cause = summary_of(STATES, VERDICTS, DAYS).by_cause[1]
    assert (cause.frequency(as_rate=True), cause.frequency(as_rate=False)) == (3.0, 3.0)
    nothing = DAYS.assign(exposure_node_days=float("nan"))
    bare = summary_of(STATES, VERDICTS, nothing).by_cause[0]
    assert bare.frequency(as_rate=True) == 4.0
