"""The ledger of GPU-hours: sums, intervals, prices, and what it says it rests on."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.efficiency.buckets import BUCKETS
from analytics.efficiency.goodput import GoodputLedger, goodput_ledger

NOTES: dict[str, Any] = {
    "attempts_without_gpus": 0,
    "excess_gpu_seconds": 0,
}  # fmt: skip


def row(bucket: str, seconds: int, **more: Any) -> dict[str, Any]:
    return {
        "cluster": "a", "bucket": bucket, "cause": None, "gpu_seconds": seconds,
        "lower_gpu_seconds": seconds, "upper_gpu_seconds": seconds, "variance_gpu_s2": 0.0,
        "shared_gpu_seconds": 0.0, "habit_gpu_s2": 0.0,
        "n_attempts": None, "rule_gpu_seconds": None,
    } | more  # fmt: skip


def ledger(*rows: dict[str, Any], **options: Any) -> GoodputLedger:
    frame = pd.DataFrame(list(rows), columns=list(row("idle", 0)))
    return goodput_ledger(frame, **{"prices": {}, "notes": NOTES} | options)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(list(BUCKETS)), st.integers(0, 10**12)), max_size=30))
def test_buckets_sum_to_the_total_exactly(rows: list[tuple[str, int]]) -> None:
    found = ledger(*(row(bucket, seconds) for bucket, seconds in rows))
    assert sum(each.gpu_seconds for each in found.buckets) == found.total_gpu_seconds
    assert found.total_gpu_seconds == sum(seconds for _, seconds in rows)


def test_a_fleet_shows_every_bucket_and_a_filter_that_leaves_jobs_only_those_of_jobs() -> None:
    fleet = ledger(row("productive", 3600), row("idle", 7200))
    assert [each.bucket for each in fleet.buckets] == list(BUCKETS)
    jobs = ledger(row("productive", 3600))
    assert [each.bucket for each in jobs.buckets] == [
        b for b, kind in BUCKETS.items() if kind.of_jobs
    ]


def test_intervals_join_what_is_assumed_and_chance_and_stay_within_the_total() -> None:
    found = ledger(
        row("productive", 36_000),
        row("lost_work", 3600, lower_gpu_seconds=1800, upper_gpu_seconds=7200,
            variance_gpu_s2=900.0**2, n_attempts=3, rule_gpu_seconds=3600, cause="pcie"),
        row("lost_work", 0, lower_gpu_seconds=0, upper_gpu_seconds=100_000, n_attempts=1,
            rule_gpu_seconds=0, cause="nvlink"),
    )  # fmt: skip
    lost = found.bucket("lost_work")
    assert lost is not None
    assert (lost.gpu_hours.value, lost.gpu_hours.n) == (1.0, 4)
    assert lost.gpu_hours.lower == pytest.approx((1800 - 1.6449 * 900) / 3600, rel=1e-3)
    assert lost.gpu_hours.upper == found.total_gpu_hours
    pcie = next(loss for loss in found.losses if loss.cause == "pcie")
    assert pcie.gpu_hours.upper == pytest.approx((7200 + 1.6449 * 900) / 3600, rel=1e-3)


def test_an_assumed_range_has_no_level_and_a_statistical_one_widens_with_it() -> None:
    rows = (
        row("lost_work", 36_000, variance_gpu_s2=3600.0**2, n_attempts=9, rule_gpu_seconds=0),
        row("startup", 36_000, lower_gpu_seconds=1800, n_attempts=9),
        row("productive", 360_000),
    )
    widths = []
    for level in (0.5, 0.9, 0.99):
        found = ledger(*rows, conf_level=level)
        lost, startup = found.bucket("lost_work"), found.bucket("startup")
        assert lost is not None
        assert startup is not None
        assert (lost.gpu_hours.conf_level, startup.gpu_hours.conf_level) == (level, None)
        assert (lost.gpu_hours.assumed, startup.gpu_hours.assumed) == (False, True)
        widths.append(lost.gpu_hours.upper - lost.gpu_hours.lower)  # type: ignore[operator]
    assert widths == sorted(widths)
    assert widths[0] < widths[2] / 3


def test_what_runs_have_in_common_does_not_average_out() -> None:
    def relative_width(**more: Any) -> float:
        rows = [row("startup", 3600, n_attempts=1, **more) for _ in range(100)]
        bucket = ledger(*rows, row("productive", 10**6)).bucket("startup")
        assert bucket is not None
        hours = bucket.gpu_hours
        return (hours.upper - hours.lower) / hours.value  # type: ignore[operator]

    own, shared = relative_width(habit_gpu_s2=720.0**2), relative_width(shared_gpu_seconds=720.0)
    assert own == pytest.approx(2 * 1.645 * 0.2 / 10, rel=0.02)
    assert shared == pytest.approx(2 * 1.645 * 0.2, rel=0.05)


def test_what_records_fix_has_no_spread() -> None:
    idle = ledger(row("idle", 7200), row("productive", 1)).bucket("idle")
    assert idle is not None
    assert idle.gpu_hours.lower == idle.gpu_hours.value == idle.gpu_hours.upper == 2.0
    assert not idle.kind.estimated


def test_the_papers_rule_tells_first_from_second_order() -> None:
    found = ledger(
        row("lost_work", 100, n_attempts=1, rule_gpu_seconds=3600, cause="pcie"),
        row("lost_work_preempted", 100, n_attempts=2, rule_gpu_seconds=7200, cause="pcie"),
        row("lost_work_preempted", 100, n_attempts=5, rule_gpu_seconds=36_000),
    )
    assert (found.rule_first_order_gpu_hours, found.rule_second_order_gpu_hours) == (1.0, 2.0)
    assert {loss.cause for loss in found.losses} == {"pcie", None}


def test_costs_need_a_price_of_every_cluster_in_one_currency() -> None:
    rows = (row("idle", 3600), row("idle", 7200, cluster="b"), row("productive", 3600))
    priced = ledger(*rows, prices={"a": (2.0, "USD"), "b": (3.0, "USD")})
    assert priced.currency == "USD"
    assert [each.cost for each in priced.buckets if each.bucket in ("productive", "idle")] == [
        2.0,
        8.0,
    ]
    one = ledger(*rows, prices={"a": (2.0, "USD")})
    assert {each.bucket: each.cost for each in one.buckets}["idle"] is None
    assert {each.bucket: each.cost for each in one.buckets}["productive"] == 2.0
    two = ledger(*rows, prices={"a": (2.0, "USD"), "b": (3.0, "EUR")})
    assert two.currency is None
    assert all(each.cost is None for each in two.buckets)


def test_of_nothing_no_share_is_known() -> None:
    found = ledger()
    assert found.total_gpu_seconds == 0
    assert all(each.ratio.value is None for each in found.buckets)
    assert found.runtime_goodput.value is None


def test_what_records_leave_open_is_said() -> None:
    notes = NOTES | {
        "several_nodes": {"basis": "observed_runs", "n_runs": 20, "interval_s": [3600, 3400, 4000],
                          "write_s": [60, 50, 70], "restart_s": [300, 290, 340]},
        "attempts_without_gpus": 7, "excess_gpu_seconds": 7200,
    }  # fmt: skip
    text = " ".join(ledger(notes=notes).notes)
    for part in ("60.0 min (56.7 to 66.7)", "training metrics of 20 runs", "7 attempts", "2 GPU-hours"):  # fmt: skip
        assert part in text


def test_time_out_of_service_is_unknown_where_no_record_says_when_nodes_were() -> None:
    rows = (row("drained", 3600), row("down_unplanned", 7200), row("productive", 7200))
    known, unstated = ledger(*rows), ledger(*rows, without_states=["a"])
    assert (known.out_of_service_gpu_hours, known.out_of_service_ratio) == (3.0, pytest.approx(0.6))
    assert (unstated.out_of_service_gpu_hours, unstated.out_of_service_ratio) == (None, None)
    partly = ledger(*rows, row("idle", 1, cluster="b"), without_states=["b"])
    assert partly.out_of_service_gpu_hours == 3.0


def test_only_preemption_with_a_cause_is_of_second_order() -> None:
    found = ledger(
        row("lost_work_preempted", 3600, n_attempts=1, rule_gpu_seconds=0, cause="pcie"),
        row("lost_work_preempted", 7200, n_attempts=1, rule_gpu_seconds=0),
        row("lost_work", 1800, n_attempts=1, rule_gpu_seconds=0, cause="pcie"),
        row("productive", 90_000),
    )
    assert found.second_order_gpu_hours == 1.0


def test_losses_cost_what_is_lost_and_out_of_service_and_nothing_is_known_of_a_part() -> None:
    rows = (row("lost_work", 3600, n_attempts=1, rule_gpu_seconds=0), row("drained", 7200),
            row("productive", 36_000), row("idle", 3600))  # fmt: skip
    assert ledger(*rows, prices={"a": (2.0, "USD")}).losses_cost == 6.0
    assert ledger(*rows).losses_cost is None
    other = row("drained", 3600, cluster="b")
    assert ledger(*rows, other, prices={"a": (2.0, "USD")}).losses_cost is None


@settings(deadline=None)
@given(st.lists(st.integers(1, 10**9), min_size=4, max_size=4), st.integers(0, 10**9))
def test_the_way_down_has_no_rounding_left_over(seconds: list[int], kept: int) -> None:
    lost = zip(("drained", "down_unplanned", "startup", "checkpoint"), seconds, strict=True)
    found = ledger(*(row(*each) for each in lost), row("productive", kept))
    last = found.steps[-1]
    assert (last.title, last.to_ratio) == ("Productive", kept / (sum(seconds) + kept))
    out = ledger(row("drained", seconds[0]), row("down_unplanned", seconds[1]))
    assert out.out_of_service_ratio == 1.0


def test_the_way_down_ends_at_what_was_productive() -> None:
    found = ledger(
        row("drained", 100), row("idle", 200), row("startup", 50), row("productive", 650)
    )
    assert [(step.title, step.from_ratio, step.to_ratio) for step in found.steps] == [
        ("Capacity", 0.0, 1.0),
        ("Drained", 1.0, pytest.approx(0.9)),
        ("Idle", pytest.approx(0.9), pytest.approx(0.7)),
        ("Held by jobs", 0.0, pytest.approx(0.7)),
        ("Start-up", pytest.approx(0.7), pytest.approx(0.65)),
        ("Productive", 0.0, pytest.approx(0.65)),
    ]
    of_jobs = ledger(row("productive", 3600))
    assert [step.title for step in of_jobs.steps] == ["Held by jobs", "Productive"]
    assert not of_jobs.covers_fleet
