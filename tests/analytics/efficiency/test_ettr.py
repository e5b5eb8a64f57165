"""ETTR as measured."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analytics.efficiency.ettr import EttrReport, ettr_report

AT = pd.Timestamp("2026-01-05", tz="UTC")


def day(number: int) -> pd.Timestamp:
    """So many days after the first Monday."""
    return AT + pd.Timedelta(days=number)


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
    assert one.of_these_runs.lower is not None
    assert many.of_these_runs.lower is not None
    reach = 0.8 - one.of_these_runs.lower
    assert (0.8 - many.of_these_runs.lower) == pytest.approx(reach / 10)


def test_sizes_and_weeks_stand_in_their_order() -> None:
    found = report(
        run("1", n_gpus=1024), run("2", n_gpus=16),
        run("3", n_gpus=200, first_start_at=day(7)),
    )  # fmt: skip
    assert [each.group for each in found.by_size] == ["9-16", "129-256", "513-1024"]
    assert [(each.group, each.totals.n_runs) for each in found.by_week] == [
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


@pytest.mark.slow
def test_the_interval_of_the_median_covers_it_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered, judged = 0, 0
    for _ in range(200):
        draws = rng.beta(8, 2, 25)
        rows = [
            run(str(i), productive_s=x * 9000, queued_s=0, first_start_at=day(2 * i))
            for i, x in enumerate(draws)
        ]
        median = report(*rows).median
        if median.lower is not None and median.upper is not None:
            judged += 1
            covered += median.lower <= 0.8203 <= median.upper
    assert judged >= 190
    assert 0.87 <= covered / judged <= 0.97


def test_few_runs_have_a_median_without_interval() -> None:
    median = report(run("1"), run("2")).median
    assert (median.value, median.lower, median.upper) == (0.8, None, None)


def test_a_run_without_a_known_wait_is_left_out_and_counted() -> None:
    found = report(run("1"), run("2", queued_s=None))
    assert (found.n_runs, found.ettr.value) == (1, 0.8)
    assert any("1 run is left out" in note for note in found.notes)


def drawn(n: int, seed: int = 1) -> list[dict[str, Any]]:
    """Runs whose ETTR and GPU-time differ, all parts as records fix them."""
    rng = np.random.default_rng(seed)
    hours = rng.lognormal(2.5, 1.0, n)
    return [
        run(str(i), n_gpus=8 * int(g), queued_s=3600 * h * q, scheduled_s=3600 * h,
            productive_s=3600 * h * r, first_start_at=day(i % 20))
        for i, (h, g, q, r) in enumerate(
            zip(hours, rng.integers(65, 129, n), rng.exponential(0.2, n), rng.beta(20, 2, n),
                strict=True)
        )
    ]  # fmt: skip


def test_the_interval_of_these_runs_is_without_their_sampling() -> None:
    (found,) = report(*drawn(39)).by_size
    assert found.ettr.n == 39
    assert found.ettr.lower < found.ettr.value < found.ettr.upper
    assert found.of_these_runs.upper - found.of_these_runs.lower == pytest.approx(0.0, abs=1e-12)


def test_runs_that_overlap_saw_one_queue_and_have_no_interval() -> None:
    """However many: two may follow one another, three must."""
    rows = pd.DataFrame(drawn(30)).assign(scheduled_s=40 * 86_400)
    for starts, judged in (((0, 1), False), ((0, 45), False), ((0, 45, 90), True)):
        found = report(*rows.assign(first_start_at=[day(starts[i % len(starts)]) for i in range(30)])
                       .to_dict("records"))  # fmt: skip
        for estimate in (found.ettr, found.median, found.mean_wait_hours):
            assert (estimate.lower is not None) == judged
        assert found.of_these_runs.lower is not None
        assert any("those that overlap saw one queue" in note for note in found.notes) != judged


def test_intervals_of_every_level_nest_wherever_an_ettr_stands() -> None:
    wide = {"lower_productive_s": 7000, "upper_productive_s": 8900}
    rows = [row | {"variance_productive_s2": 900.0**2} for row in drawn(12)] + [run("w", **wide)]
    levels = [report(*rows, conf_level=level) for level in (0.5, 0.9, 0.99)]
    for narrow, wider in pairwise(levels):
        pairs = [
            (narrow.ettr, wider.ettr),
            (narrow.of_these_runs, wider.of_these_runs),
            (narrow.mean_wait_hours, wider.mean_wait_hours),
            *((a.ettr, b.ettr) for groups in ("by_size", "by_week")
              for a, b in zip(getattr(narrow, groups), getattr(wider, groups), strict=True)
              if a.totals.n_runs > 1 and not a.overlapping),
        ]  # fmt: skip
        for inner, outer in pairs:
            assert outer.lower < inner.lower <= inner.value <= inner.upper < outer.upper
        assert (wider.by_run["lower"] <= narrow.by_run["lower"]).all()
        assert (wider.by_run["lower"] < narrow.by_run["lower"]).any()


def test_what_is_assumed_has_no_level_and_says_so() -> None:
    wide = {"lower_productive_s": 7000, "upper_productive_s": 8900}
    found = report(run("1", **wide), run("2", n_gpus=512), run("3", n_gpus=600))
    assert (found.ettr.conf_level, found.ettr.assumed) == (None, True)
    assert [each.ettr.conf_level for each in found.by_size] == [None, 0.9, 0.9]
    assert found.median.conf_level is None
    assert any("has no probability" in note for note in found.notes)
    assert not any("no probability" in note for note in report(run("1"), run("2")).notes)


def test_one_run_has_no_sampling_interval_and_says_so() -> None:
    found = report(run(variance_productive_s2=500.0**2))
    assert found.ettr == found.of_these_runs
    assert any("One run says nothing of how runs differ" in note for note in found.notes)


def test_runs_that_lost_nothing_have_no_sampling_interval() -> None:
    whole = {"queued_s": 0, "productive_s": 9000}
    found = report(run("1", **whole), run("2", **whole)).ettr
    assert (found.value, found.lower, found.upper) == (1.0, None, None)


def test_the_mean_wait_is_over_all_starts_and_the_median_over_runs() -> None:
    quick = [run(str(i), queued_s=600, n_attempts=1, first_start_at=day(i)) for i in range(8)]
    found = report(*quick, run("s", queued_s=36_000, n_attempts=2))
    assert found.wait_hours.value == pytest.approx(1 / 6)
    assert found.mean_wait_hours.value == pytest.approx((8 * 600 + 36_000) / 10 / 3600)
    assert found.mean_wait_hours.lower < found.mean_wait_hours.value < found.mean_wait_hours.upper


def test_weeks_begin_on_monday_where_the_cluster_stands() -> None:
    sunday = pd.Timestamp("2026-01-04T23:30", tz="UTC")
    runs = [run(cluster=cluster, first_start_at=sunday) for cluster in ("berlin", "other")]
    found = report(*runs, zones={"berlin": "Europe/Berlin"})
    assert [(week.group, week.totals.n_runs) for week in found.by_week] == [
        ("2026-W01", 1),
        ("2026-W02", 1),
    ]
