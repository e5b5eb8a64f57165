"""Rates of causes by week: gaps stay gaps, what is not told apart is put together."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest

from analytics.failures.cause_rates import causes_by_week

MONDAY = pd.Timestamp("2026-01-05", tz="UTC")
WEEK = pd.Timedelta(days=7)


def _counts(rows: list[tuple[int, str | None, str | None, int | None, float]]) -> pd.DataFrame:
    columns = ["week", "cause", "domain", "n_attempts", "exposure_node_days"]
    frame = pd.DataFrame(rows, columns=columns)
    weeks = [MONDAY + n * WEEK for n in frame["week"]]
    return frame.assign(week=weeks, n_exposed=frame["n_attempts"])


COUNTS = _counts(
    [
        (0, "pcie", "hardware", 4, 500.0),
        (0, "unknown", "unknown", 90, 500.0),
        (1, None, None, None, 250.0),
        (3, "pcie", "hardware", 2, 1000.0),
        (3, "power", "hardware", 1, 1000.0),
        (3, "nic", "hardware", 1, 1000.0),
    ]
)


def test_a_rate_is_attempts_over_the_weeks_exposure_with_garwoods_interval() -> None:
    (series,) = causes_by_week(COUNTS[COUNTS["cause"].eq("pcie")], ["hardware"]).series
    first = series.weeks[0].rate_per_1000_node_days
    assert first.value == pytest.approx(8.0)
    assert (first.lower, first.upper) == (
        pytest.approx(2.733, abs=1e-3),
        pytest.approx(18.307, abs=1e-3),
    )


def test_a_quiet_week_is_zero_and_a_week_without_record_is_unknown() -> None:
    weeks = causes_by_week(COUNTS, ["hardware"]).total
    assert [week.exposure_node_days for week in weeks] == [500.0, 250.0, None, 1000.0]
    assert [week.rate_per_1000_node_days.value for week in weeks] == [8.0, 0.0, None, 4.0]


def test_causes_beyond_the_top_are_one_series_of_their_domain() -> None:
    series = causes_by_week(COUNTS, ["hardware", "unknown"], top=2).series
    assert [(s.cause, s.domain, s.n_attempts, s.n_causes) for s in series] == [
        ("pcie", "hardware", 6, 1),
        (None, "hardware", 2, 2),
        ("unknown", "unknown", 90, 1),
    ]


def test_the_total_is_the_sum_of_the_series() -> None:
    causes = causes_by_week(COUNTS, ["hardware", "unknown"], top=1)
    assert sum(s.n_attempts for s in causes.series) == sum(w.n_attempts for w in causes.total) == 98


def test_the_order_of_rows_is_irrelevant() -> None:
    assert causes_by_week(COUNTS, ["hardware"]) == causes_by_week(COUNTS[::-1], ["hardware"])


def test_weeks_of_the_period_without_a_record_are_gaps() -> None:
    period = (datetime(2026, 1, 3, tzinfo=UTC), datetime(2026, 2, 9, tzinfo=UTC))
    causes = causes_by_week(COUNTS, ["hardware"], period=period)
    assert [week.exposure_node_days for week in causes.total] == [
        None,
        500.0,
        250.0,
        None,
        1000.0,
        None,
    ]
    assert (causes.from_at, causes.to_at) == period


def test_without_exposure_attempts_are_still_counted() -> None:
    counts = COUNTS.assign(exposure_node_days=float("nan"))
    (total, *_) = causes_by_week(counts, ["hardware"]).total
    assert (total.n_attempts, total.rate_per_1000_node_days.value) == (4, None)


def test_nothing_at_all_has_no_week() -> None:
    causes = causes_by_week(COUNTS.head(0), ["hardware"])
    assert (causes.series, causes.total, causes.from_at) == ((), (), None)


def test_a_series_has_its_place_in_its_domain() -> None:
    causes = causes_by_week(COUNTS, ["hardware", "unknown"], top=2)
    assert [(series.cause, place) for series, place in causes.ranked] == [
        ("pcie", 0), (None, 1), ("unknown", 0),
    ]  # fmt: skip
