"""GPU-hours by day and group: gaps stay unknown, shares are of what jobs held."""

from __future__ import annotations

import pandas as pd
import pytest

from analytics.efficiency.buckets import (
    DAY,
    WEEK,
    bucket_columns,
    gpu_hours_by,
    hours_over_time,
    losses_by_group,
)

MONDAY = pd.Timestamp("2026-01-05", tz="UTC")


def days(n: int) -> pd.DataFrame:
    rows = [(MONDAY + day * DAY, "productive", 10.0 + day) for day in range(n)]
    return pd.DataFrame(rows, columns=["day", "bucket", "gpu_hours"])


def test_groups_add_up_clusters_and_keep_those_without_a_name() -> None:
    rows = pd.DataFrame(
        {
            "account": ["a", "a", None],
            "cluster": ["x", "y", "x"],
            "bucket": "productive",
            "gpu_seconds": [3600, 7200, 1800],
        }
    )
    found = gpu_hours_by(rows, "account")
    assert found["gpu_hours"].tolist() == [3.0, 0.5]
    assert found["account"].isna().tolist() == [False, True]


def test_a_bucket_that_a_group_has_none_of_is_zero() -> None:
    by_group = pd.DataFrame(
        [("a", "productive", 2.0), ("b", "idle", 1.0)], columns=["account", "bucket", "gpu_hours"]
    )
    wide = bucket_columns(by_group, "account").set_index("account")
    assert wide.loc["a"].to_dict() == {"idle": 0.0, "productive": 2.0}


def test_a_day_without_record_or_gpu_is_a_gap_and_a_recorded_one_is_none() -> None:
    span = (MONDAY, MONDAY + 3 * DAY)
    found = hours_over_time(days(1), span=span, recorded=[MONDAY + DAY])
    assert found.step == DAY
    assert found.gpu_hours["productive"].tolist()[:2] == [10.0, 0.0]
    assert list(found.gaps) == [MONDAY + 2 * DAY]


def test_weeks_are_means_of_the_days_that_are_known() -> None:
    found = hours_over_time(days(100), span=(MONDAY, MONDAY + 100 * DAY), recorded=())
    assert found.step == WEEK
    assert found.gpu_hours["productive"].iloc[0] == 13.0
    assert found.gpu_hours.index[1] == MONDAY + WEEK


def test_the_largest_groups_come_first_and_sizes_in_their_order() -> None:
    rows = [
        ("9-16", "productive", 30.0), ("9-16", "lost_work", 10.0), ("1", "productive", 5.0),
        ("2-8", "startup", 7.0), ("2-8", "idle", 99.0),
    ]  # fmt: skip
    for by, names in (("size_class", ["2-8", "9-16"]), ("partition", ["9-16", "2-8"])):
        frame = pd.DataFrame(rows, columns=[by, "bucket", "gpu_hours"])
        found = losses_by_group(frame, by)  # type: ignore[arg-type]
        assert found.n_groups == 3
        assert [each.group for each in found.largest(2)] == names
    largest = found.largest(1)[0]
    assert (largest.gpu_hours, largest.productive_ratio) == (40.0, pytest.approx(0.75))


def test_a_group_of_one_bucket_has_exactly_all_of_it() -> None:
    hours = [number / 7 for number in range(1, 2000)]
    rows = [(f"a{place}", "productive", each) for place, each in enumerate(hours)]
    found = losses_by_group(
        pd.DataFrame(rows, columns=["account", "bucket", "gpu_hours"]), "account"
    )
    assert set(found.rows["percent"]) == {100.0}
