"""ETTR as measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from analytics.efficiency.ettr import EttrReport, ettr_report

AT = pd.Timestamp("2026-01-05", tz="UTC")


def run(run_id: str = "1", **more: Any) -> dict[str, Any]:
    found = {
        "cluster": "a", "run_id": run_id, "name": "llm", "user": "u", "account": "x", "n_gpus": 16,
        "n_jobs": 1, "n_attempts": 1, "n_interruptions": 0, "n_failures": 0, "first_submit_at": AT,
        "first_start_at": AT, "last_end_at": AT, "queued_s": 1000, "scheduled_s": 9000,
        "productive_s": 8000, "startup_s": 300, "checkpoint_s": 100, "lost_s": 600,
        "variance_productive_s2": 0.0, "shared_productive_s": 0.0, "basis": "assumed",
    } | more  # fmt: skip
    bounds = {f"{side}_productive_s": found["productive_s"] for side in ("lower", "upper")}
    return bounds | found


def report(*runs: dict[str, Any], **options: Any) -> EttrReport:
    return ettr_report(pd.DataFrame(list(runs), columns=list(run())), notes={}, **options)


def test_a_run_is_productive_over_queued_and_scheduled() -> None:
    found = report(run())
    assert found.ettr.value == found.by_run["ettr"][0] == 0.8


def test_runs_together_are_weighted_by_gpu_time() -> None:
    found = report(run("1", n_gpus=8), run("2", n_gpus=24, productive_s=4000))
    assert found.ettr.value == pytest.approx((8 * 8000 + 24 * 4000) / (32 * 10_000))


def test_bounds_join_what_is_assumed_and_chance_and_stay_possible() -> None:
    wide = run(lower_productive_s=7000, upper_productive_s=8900, variance_productive_s2=1000.0**2)
    found = report(wide)
    assert found.ettr.lower == pytest.approx((7000 - 1644.9) / 10_000, abs=1e-4)
    assert found.ettr.upper == 0.9
    assert (found.by_run["lower"][0], found.by_run["upper"][0]) == (
        found.ettr.lower,
        found.ettr.upper,
    )


def test_chance_averages_out_over_runs() -> None:
    one = report(run("0", variance_productive_s2=500.0**2))
    many = report(*(run(str(i), variance_productive_s2=500.0**2) for i in range(100)))
    assert one.ettr.lower is not None
    assert many.ettr.lower is not None
    assert (0.8 - many.ettr.lower) == pytest.approx((0.8 - one.ettr.lower) / 10)


def test_sizes_and_weeks_stand_in_their_order() -> None:
    found = report(
        run("1", n_gpus=1024), run("2", n_gpus=16),
        run("3", n_gpus=200, first_start_at=AT + pd.Timedelta(days=7)),
    )  # fmt: skip
    assert [each.group for each in found.by_size] == ["9-16", "129-256", "513-1024"]
    assert [(each.group, each.n_runs) for each in found.by_week] == [
        ("2026-W02", 2),
        ("2026-W03", 1),
    ]


def test_the_largest_run_stands_first_and_equal_ones_as_given() -> None:
    found = report(run("c"), run("a"), run("b", n_gpus=32), run("d", queued_s=None))
    assert found.by_run["run_id"].tolist() == ["b", "c", "a"]


def test_runs_that_never_ran_do_not_count() -> None:
    found = report(run("1"), run("2", scheduled_s=0, productive_s=0))
    assert found.n_runs == 1
    empty = report()
    assert (empty.ettr.value, empty.median.value, empty.n_runs) == (None, None, 0)


def test_the_interval_of_the_median_covers_it_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        draws = rng.beta(8, 2, 25)
        median = report(
            *(run(str(i), productive_s=x * 9000, queued_s=0) for i, x in enumerate(draws))
        ).median
        assert median.lower is not None
        assert median.upper is not None
        covered += median.lower <= 0.8203 <= median.upper
    assert covered >= 176


def test_few_runs_have_a_median_without_interval() -> None:
    median = report(run("1"), run("2")).median
    assert (median.value, median.lower, median.upper) == (0.8, None, None)


def test_a_run_without_a_known_wait_is_left_out_and_counted() -> None:
    found = report(run("1"), run("2", queued_s=None))
    assert (found.n_runs, found.ettr.value) == (1, 0.8)
    assert any("1 run is left out" in note for note in found.notes)
