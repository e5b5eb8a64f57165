"""Figures of ETTR: runs beside the expected curve, one run over time, what moves it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from analytics.efficiency.beside_expected import (
    ExpectedCurve,
    expected_curve,
    measured_and_expected,
)
from analytics.efficiency.ettr import EttrReport, ettr_report
from analytics.efficiency.expected_ettr import EttrSettings, ettr_sensitivities
from analytics.efficiency.habits import Habit
from analytics.efficiency.run_ettr import ettr_over_time, part_spans
from analytics.estimate import Estimate
from app.answers.efficiency.ettr import size_chart
from app.figures.efficiency import buckets, ettr_by_size, run_timeline, runs_and_expected
from app.figures.efficiency import sensitivity_bars as bars
from data.filters import Selection

MODES = pytest.mark.parametrize("mode", ["light", "dark"])
MONDAY = pd.Timestamp("2026-01-05", tz="UTC")


def traces(chart: Any, name: str) -> list[Any]:
    return [trace for trace in chart.data if trace.name == name]


def texts(chart: Any) -> list[str]:
    return [note["text"] for note in chart.to_dict()["layout"]["annotations"]]


@pytest.fixture
def runs() -> EttrReport:
    """Two of 256 GPUs, of which one was measured, and one of 1,024 with a name like markup."""
    rows = [
        {
            "cluster": "c/d", "run_id": run, "name": name, "n_gpus": gpus, "n_attempts": 2,
            "n_interruptions": 1, "n_failures": 1, "first_start_at": MONDAY, "queued_s": 1000,
            "scheduled_s": 9000, "startup_s": 300, "checkpoint_s": 100, "lost_s": 600,
            "productive_s": 8000, "lower_productive_s": 7500, "upper_productive_s": 8500,
            "variance_productive_s2": 0.0,
            "shared_productive_s": 0.0, "basis": basis,
        }
        for run, name, gpus, basis in (
            ("1", "llm", 256, "assumed"),
            ("2", "llm", 256, "training_metrics"),
            ("3", "<b>", 1024, "assumed"),
        )
    ]  # fmt: skip
    return ettr_report(pd.DataFrame(rows), notes={})


@pytest.fixture
def curve() -> ExpectedCurve:
    found = expected_curve(
        Estimate(6.5, 5.0, 8.0, 0.9, 100), habit=Habit(3600, 60, 300), queue_hours=0.5,
        run_hours=24.0, gpus=[256.0, 1024.0, 4096.0],
    )  # fmt: skip
    assert found is not None
    return found


@pytest.fixture
def attempts() -> pd.DataFrame:
    """Waited an hour and failed after ten of which one was lost; then requeued and done."""
    rows = [
        {
            "job_id": "7", "attempt": place, "cluster": "c", "state": state, "cause": cause,
            "domain": domain, "bucket": bucket, "interrupted": bucket is not None,
            "start_at": MONDAY + pd.Timedelta(hours=1 + 11 * (place - 1)),
            "end_at": MONDAY + pd.Timedelta(hours=11 * place),
            "eligible_s": MONDAY.timestamp() + 39_600 * (place - 1), "waited_s": 3600,
            "start_s": MONDAY.timestamp() + 3600 + 39_600 * (place - 1), "ran_s": 36_000,
            "startup_s": 600, "checkpoint_s": 600, "lost_s": lost,
            "productive_s": 34_800 - lost,
        }
        for place, state, cause, domain, bucket, lost in (
            (1, "NODE_FAIL", "gpu_lost", "hardware", "lost_work", 3600),
            (2, "COMPLETED", None, None, None, 0),
        )
    ]  # fmt: skip
    return pd.DataFrame(rows)


@MODES
def test_runs_are_points_with_whiskers_where_nothing_was_measured(
    runs: EttrReport, curve: ExpectedCurve, mode: Any
) -> None:
    chart = runs_and_expected.figure(runs, curve, mode=mode, note="all")
    (points,) = traces(chart, "measured")
    assert list(points["y"]) == [0.8, 0.8, 0.8]
    order = runs.by_run["run_id"].tolist()
    assert [key for key, _ in points["customdata"]] == [f"c/d/{run}" for run in order]
    whiskers = dict(zip(order, points["error_y"]["arrayminus"], strict=True))
    assert whiskers == {"1": pytest.approx(0.05), "2": 0.0, "3": pytest.approx(0.05)}
    assert not any("<b><b>" in text for _, text in points["customdata"])
    sizes = np.asarray(points["marker"]["size"])
    assert sizes[0] ** 2 == pytest.approx(4 * sizes[1] ** 2)
    assert np.asarray(points["x"]) == pytest.approx([1024, 256, 256], rel=0.21)
    assert points["x"][1] != points["x"][2]


def test_both_expectations_are_drawn_with_their_band_and_named(
    runs: EttrReport, curve: ExpectedCurve
) -> None:
    chart = runs_and_expected.figure(runs, curve)
    (line,) = traces(chart, "expected, long run")
    assert list(line["y"]) == curve.lines["expected_long_run"][0].tolist()
    assert len(traces(chart, "expected, long run, interval")) == 1
    assert "expected, run of<br>24.0 h of training" in texts(chart)
    frame = measured_and_expected(runs, curve)
    assert frame["series"].value_counts().to_dict() == {
        "measured": 3, "expected_long_run": 3, "expected_of_mean_run": 3,
    }  # fmt: skip


def test_without_a_rate_the_runs_stand_alone(runs: EttrReport) -> None:
    chart = runs_and_expected.figure(runs, None)
    assert len(chart.data) == 1
    assert set(measured_and_expected(runs, None)["series"]) == {"measured"}


@MODES
def test_the_parts_of_an_attempt_lie_as_the_ledger_takes_them(
    attempts: pd.DataFrame, mode: Any
) -> None:
    spans = part_spans(attempts)
    assert list(spans) == list(run_timeline.TITLES)
    start = MONDAY + pd.Timedelta(hours=1)
    first = {part: rows.iloc[0] for part, rows in spans.items()}
    assert first["queued"]["start_at"] == MONDAY
    assert first["startup"]["start_at"] == start
    assert first["productive"]["start_at"] == start + pd.Timedelta(minutes=10)
    ends = first["lost"]["start_at"] + pd.Timedelta(seconds=float(first["lost"]["seconds"]))
    assert abs(ends - (start + pd.Timedelta(hours=10))) < pd.Timedelta(seconds=1)
    shares = first["productive"]["share"] + first["checkpoint"]["share"]
    assert shares == pytest.approx(1.0)
    assert first["checkpoint"]["below"] == pytest.approx(first["productive"]["share"])
    assert len(spans["lost"]) == 1
    colours = run_timeline._marker("lost", spans["lost"], mode)["color"]
    assert colours == [buckets.colour("lost_work", mode)]


@MODES
def test_a_run_shows_attempts_interruptions_and_both_curves(
    attempts: pd.DataFrame, mode: Any
) -> None:
    over_time = ettr_over_time(attempts)
    chart = run_timeline.figure(
        attempts, over_time, titles={"gpu_lost": "GPU lost"}, timezone="Europe/Berlin", mode=mode
    )
    (whole,) = traces(chart, "whole run so far")
    assert whole["y"][-1] == pytest.approx(66_000 / 79_200)
    assert whole["yaxis"] == "y2"
    assert len(chart.to_dict()["layout"]["shapes"]) == 1
    assert "NODE_FAIL: GPU lost" in texts(chart)
    assert any("Lost to failures" in text for text in texts(chart))
    frame = over_time.table()
    assert str(frame["at"].dt.tz) == "UTC"
    assert frame["cumulative"].iloc[-1] == over_time.cumulative[-1]


def test_an_attempt_that_still_runs_or_never_started_is_drawn_as_far_as_it_is_known(
    attempts: pd.DataFrame,
) -> None:
    open_ended = attempts.assign(
        end_at=[attempts["end_at"][0], pd.NaT],
        start_at=[pd.NaT, attempts["start_at"][1]],
        start_s=[np.nan, attempts["start_s"][1]],
        **{name: [0, attempts[name][1]] for name in
           ("ran_s", "startup_s", "checkpoint_s", "lost_s", "productive_s")},
    )  # fmt: skip
    chart = run_timeline.figure(open_ended, ettr_over_time(open_ended), titles={}, timezone="UTC")
    assert "COMPLETED, no end recorded" in texts(chart)


@MODES
def test_sensitivities_are_bars_the_strongest_on_top(mode: Any) -> None:
    job = EttrSettings(gpus=8000, rate_per_1000_node_days=6.5, restart_min=5.0, write_min=1.0,
                       interval_min=60.0, queue_min=2.0)  # fmt: skip
    found = ettr_sensitivities(job)
    chart = bars.figure(found, mode=mode)
    (bar,) = chart.to_dict()["data"]
    assert bar["y"][-1] == "failures, 6.50 per 1,000 node-days"
    strengths = np.abs(np.asarray(bar["x"]))
    assert (np.diff(strengths) >= 0).all()
    assert pd.DataFrame(found)["parameter"].tolist() == [each.parameter for each in found]


def test_bands_are_named_and_say_what_they_rest_on(runs: EttrReport) -> None:
    expected = (Estimate(0.9, 0.85, 0.95, 0.9, 2), Estimate(0.8, None, None, 0.9, 0))
    chart = ettr_by_size.figure(runs.by_size, expected, note="demo")
    assert list(chart.layout.yaxis.ticktext) == ["129 to 256 GPUs", "513 to 1,024 GPUs"]
    assert texts(chart) == ["2 runs, 1,420 GPU-hours", "1 run, 2,840 GPU-hours"]
    (measured,), (ring,) = traces(chart, "measured"), traces(chart, "expected")
    assert list(ring.x) == [0.9, 0.8]
    assert [name for name, _ in measured.customdata] == ["129-256", "513-1024"]
    assert "measured 0.800<br>2 runs" in measured.customdata[0][1]  # they overlap: no interval
    assert "measured 0.800, 0.750 to 0.850 (assumed range)" in measured.customdata[1][1]
    assert ring.customdata[1][1].startswith("<b>513 to 1,024 GPUs</b>: expected 0.800<br>1 run")
    listed = size_chart(runs, expected, Selection()).rows.frame()
    assert listed[["n_runs", "expected_ettr"]].to_numpy().tolist() == [[2, 0.9], [1, 0.8]]
    assert not ettr_by_size.figure((), ()).layout.annotations
