"""The report of failure rate and MTTF is put together from its parts and says what it rests on."""

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import OutOfRangeError
from analytics.frames import CountedFailures, FailureCounts
from analytics.reliability.failure_rate import failure_rate, projected_mttf
from analytics.reliability.mttf import (
    GroupRate,
    group_rates,
    mean_estimate,
    mean_gap_hours,
    mttf_report,
    weekly_rates,
    with_known_rate,
)

BURSTS = FailureCounts(
    by_day=pd.DataFrame(
        {
            "day": range(10),
            "failures": [0, 0, 14, 0, 0, 1, 0, 0, 0, 1],
            "incidents": [0, 0, 2, 0, 0, 1, 0, 0, 0, 1],
            "exposure_node_days": [100.0] * 10,
        }
    ),
    by_size=pd.DataFrame(
        {
            "n_gpus": [8, 4, 1, 130, 256, 129],
            "day": [0, 0, 1, 2, 2, 5],
            "failures": [0, 0, 0, 9, 5, 2],
            "running_days": [10.0, 5.0, 4.0, 6.0, 3.0, 1.0],
        }
    ),
    starts_hours=pd.Series([50.0, 0.0, 51.0, 200.0]),
    repair_minutes=pd.Series([30.0, 90.0]),
    exposure_known=True,
    basis="gpu_time",
    gpus_per_node=8.0,
    from_at=datetime(2026, 1, 1, tzinfo=UTC),
    to_at=datetime(2026, 1, 11, tzinfo=UTC),
    attempts_without_gpus=0,
    counted=CountedFailures({}, 0, 0, 0),
)


def test_the_report_holds_each_estimate_as_its_own_function_gives_it() -> None:
    report = mttf_report(BURSTS, conf_level=0.8, seed=5, gpus=[8, 64])
    days = BURSTS.by_day
    exposure = days["exposure_node_days"]
    for found, counted in ((report.rate, "failures"), (report.incident_rate, "incidents")):
        assert found == failure_rate(
            days[counted], exposure, days=days["day"], conf_level=0.8, seed=5
        )
    assert report.projection == projected_mttf(report.rate.rate, [8, 64])
    assert report.mean_time_between_failures_hours == mean_gap_hours(
        BURSTS.starts_hours, conf_level=0.8
    )
    assert report.mean_repair_hours == mean_estimate([0.5, 1.5], conf_level=0.8)
    assert (report.from_at, report.to_at) == (BURSTS.from_at, BURSTS.to_at)


def test_clustered_failures_are_told_and_widen_the_rate_but_not_the_incidents() -> None:
    report = mttf_report(BURSTS)
    assert report.rate.dispersion.widened
    assert report.incident_rate.dispersion is None
    (note,) = report.notes
    assert note.startswith(
        "Failures come in clusters (dispersion test over days p < 0.005 and over weeks p < 0.005; "
        "one in twenty such tests says so of failures that are chance alone): the interval is"
    )
    # on each side the wider bound, so the projection is widened with the rate
    one = report.projection[0].mttf_hours
    assert one.lower == pytest.approx(24.0 / report.rate.rate.upper)


def test_nodes_that_differ_are_told_with_how_often_chance_says_so_and_widen_nothing() -> None:
    lemon = {"failures": [12, 0, 1, 1], "exposure_node_days": [50.0, 50.0, 60.0, 40.0]}
    even = replace(BURSTS, by_day=BURSTS.by_day.assign(failures=[1, 2] * 5))
    report, without = mttf_report(replace(even, by_node=lemon)), mttf_report(even)
    assert report.dispersion_over_nodes.p_value < 0.01
    assert not report.dispersion_over_nodes.widened
    assert report.rate == without.rate
    few, note = report.notes
    assert few.startswith("Failures may come together: fewer than 50")
    assert note.startswith("Nodes fail at different rates (dispersion test over nodes p < 0.005; ")
    assert "one in twenty such tests says so of failures that are chance alone" in note
    assert (without.dispersion_over_nodes, without.notes) == (None, (few,))


def test_a_class_of_sizes_has_its_running_hours_over_its_failures() -> None:
    report = mttf_report(BURSTS)
    assert [(c.gpus_from, c.gpus_to, c.running_hours, c.mttf_hours.n) for c in report.by_size] == [
        (1, 1, 96.0, 0),
        (2, 8, 360.0, 0),
        (129, 256, 240.0, 16),
    ]
    largest = report.by_size[-1]
    assert largest.mttf_hours.value == pytest.approx(240.0 / 16)
    # sizes of one class are added up by day before anything is tested over days
    assert largest.mttf_hours == failure_rate([14, 2], [9.0, 1.0], days=[2, 5]).mttf_hours


def test_the_rate_projects_any_size_and_none_where_the_gpus_of_a_node_are_not_known() -> None:
    report = mttf_report(BURSTS)
    assert report.mttf_of(64) == report.projection[3].mttf_hours
    unknown = replace(report, gpus_per_node=None).mttf_of(64)
    assert (unknown.value, unknown.lower, unknown.n) == (None, None, report.rate.failures)


def test_the_default_projection_runs_to_131072_gpus() -> None:
    report = mttf_report(BURSTS)
    assert [point.gpus for point in report.projection] == [2**k for k in range(3, 18)]
    assert report.projection[0].mttf_hours == report.rate.mttf_hours


@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(random) -> None:
    def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
        order = list(range(len(frame)))
        random.shuffle(order)
        return frame.iloc[order]

    other = replace(
        BURSTS,
        by_day=shuffled(BURSTS.by_day),
        by_size=shuffled(BURSTS.by_size),
        starts_hours=shuffled(BURSTS.starts_hours),
    )
    assert mttf_report(other) == mttf_report(BURSTS)


def test_every_estimate_carries_the_level_asked_for() -> None:
    report = mttf_report(BURSTS, conf_level=0.5)
    estimates = [
        report.rate.rate,
        report.incident_rate.mttf_hours,
        report.mean_time_between_failures_hours,
        report.mean_repair_hours,
        *(size.mttf_hours for size in report.by_size),
        *(point.mttf_hours for point in report.projection),
    ]
    assert {estimate.conf_level for estimate in estimates} == {0.5}


def test_unknown_gpus_per_node_leave_the_rate_and_take_the_projection() -> None:
    report = mttf_report(replace(BURSTS, gpus_per_node=None), gpus=[8])
    (point,) = report.projection
    assert report.rate.rate.value is not None
    assert (point.gpus, point.mttf_hours.value, point.mttf_hours.n) == (8, None, 16)


def test_a_level_in_percent_is_refused() -> None:
    with pytest.raises(OutOfRangeError, match=r"pass 0\.9 for 90 %"):
        mttf_report(BURSTS, conf_level=90)


def test_groups_keep_their_order_and_their_own_interval() -> None:
    table = pd.DataFrame(
        {
            "group": ["b", "a", "b"],
            "day": [1, 1, 2],
            "failures": [1.0, 0.0, 2.0],
            "exposure_node_days": [10.0, 5.0, 20.0],
        }
    )
    second, first = group_rates(table, conf_level=0.8)
    assert (second.group, first.group) == ("b", "a")
    assert second.estimate == failure_rate([1, 2], [10.0, 20.0], conf_level=0.8)
    assert first.estimate.rate.value == 0.0


def test_the_projection_agrees_with_jobs_that_fail_at_the_rate_of_their_nodes() -> None:
    """Simulated jobs of 64 nodes at RSC-1's rate: measured MTTF lies where it is projected."""
    generator = np.random.default_rng(0)
    running_days = generator.uniform(0.2, 1.0, 2000)
    failures = generator.poisson(64 * 0.0065 * running_days)
    counts = replace(
        BURSTS,
        by_day=pd.DataFrame(
            {"day": range(2000), "failures": failures, "incidents": failures,
             "exposure_node_days": 64 * running_days}
        ),
        by_size=pd.DataFrame(
            {"n_gpus": 512, "day": range(2000), "failures": failures, "running_days": running_days}
        ),
    )  # fmt: skip
    report = mttf_report(counts, gpus=[512])
    (size,), (point,) = report.by_size, report.projection
    assert size.mttf_hours.value == pytest.approx(point.mttf_hours.value)
    assert size.mttf_hours.lower < 24 / (64 * 0.0065) < size.mttf_hours.upper
    assert math.isclose(point.mttf_hours.value, 24 / (64 * 0.0065), rel_tol=0.1)


def groups_of(*rows: tuple[str, int, float]) -> tuple[GroupRate, ...]:
    """Groups of one day each: name, failures, exposure."""
    days = [(name, 0, failures, exposure) for name, failures, exposure in rows]
    columns = ["group", "day", "failures", "exposure_node_days"]
    return group_rates(pd.DataFrame(days, columns=columns))


def test_weeks_between_the_first_and_the_last_are_gaps_where_nothing_ran() -> None:
    weeks = groups_of(("2026-01-05", 1, 10.0), ("2026-01-12", 2, 10.0), ("2026-01-26", 0, 10.0),
                      ("2026-02-02", 0, 0.0))  # fmt: skip
    rates = weekly_rates(weeks)
    assert [str(week.date()) for week in rates.gaps] == ["2026-01-19"]
    assert [[rate.n for _, rate in run] for run in rates.runs] == [[1, 2], [0]]
    assert weekly_rates(groups_of(("2026-01-05", 0, 0.0))).runs == []


def test_groups_of_unknown_rate_are_left_out_and_the_highest_rate_comes_first() -> None:
    groups = groups_of(("a", 1, 10.0), ("b", 3, 10.0), ("c", 0, 0.0))
    assert [group.group for group in with_known_rate(groups, sort=True)] == ["b", "a"]
    assert [group.group for group in with_known_rate(groups, sort=False)] == ["a", "b"]
