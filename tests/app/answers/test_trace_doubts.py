"""A trace that contradicts itself is told: clocks set right, impossible steps, another unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analytics.training.stragglers.analysis import StragglerAnalysis, analyse_trace
from analytics.training.stragglers.clocks import ClockOffset
from analytics.training.stragglers.operations import optype_codes
from analytics.training.stragglers.step_model import StepModel
from analytics.training.stragglers.trace import TraceRows
from app.answers.training.causes import doubts
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns


@pytest.fixture(scope="module")
def rows() -> TraceRows:
    """Rows of a healthy job."""
    shape = TraceShape(dp=2, pp=2, micro_batches=4, steps=(10, 30, 50))
    columns = trace_columns(shape, TraceCosts(forward=0.1, backward=0.2))
    codes = optype_codes([str(name) for name in columns.pop("optype")])
    return TraceRows(**columns, optype=codes)


@pytest.fixture(scope="module")
def healthy(rows: TraceRows) -> StragglerAnalysis:
    """Its results."""
    return analyse_trace(StepModel.of_rows(rows))


def test_of_a_trace_that_holds_together_nothing_is_said(healthy: StragglerAnalysis) -> None:
    assert list(doubts(healthy)) == []


def test_clocks_set_right_are_named_and_many_are_counted(healthy: StragglerAnalysis) -> None:
    offsets = [ClockOffset(dp, 1, 4 + dp, 12.0 - 15 * dp) for dp in range(5)]
    first, second, _, more = doubts(replace(healthy, clock_offsets=tuple(offsets)))
    assert first.startswith("The clock of dp rank 0, stage 1 (rank 4) was 12")
    assert "ms ahead of the others and was set right" in first
    assert "3" in second
    assert "ms behind the others" in second
    assert more == "2 more clocks set right."


def test_milliseconds_in_place_of_seconds_are_told(rows: TraceRows) -> None:
    thousand = replace(rows, start_ts=rows.start_ts * 1e3, duration=rows.duration * 1e3)
    (note,) = doubts(analyse_trace(StepModel.of_rows(thousand)))
    assert "Times must be seconds" in note


def test_steps_of_one_moment_are_told(healthy: StragglerAnalysis) -> None:
    slow = replace(healthy.slowdowns, steps=np.array([1, 2, 3]))
    (note,) = doubts(replace(healthy, slowdowns=slow))
    assert note.endswith("How far S is from that of other steps cannot be judged.")


def test_a_step_shorter_than_its_operations_is_told(healthy: StragglerAnalysis) -> None:
    slow = replace(healthy.slowdowns, launch_slowdown=0.981)
    (note,) = doubts(replace(healthy, slowdowns=slow))
    assert note.startswith("The traced step is 1.9 % shorter than its operations take")
    assert "launch slowdown 0.981, below 1" in note


def test_slowdown_waste_and_gains_have_intervals_between_steps() -> None:
    from analytics.training.stragglers.analysis import analysis_of_record, analysis_record

    shape = TraceShape(dp=3, pp=2, micro_batches=4, steps=(10, 20, 30, 50, 80, 90))
    forward = np.random.default_rng(0).normal(0.1, 0.005, (6, 3, 2, 1, 4))
    forward[:, 1, 1] *= np.linspace(1.5, 2.0, 6)[:, None, None]
    columns = trace_columns(shape, TraceCosts(forward, np.full_like(forward, 0.2)))
    codes = optype_codes([str(name) for name in columns.pop("optype")])
    analysis = analyse_trace(StepModel.of_rows(TraceRows(**columns, optype=codes)))
    record = analysis_record(analysis)
    pairs = [
        (record["S"], record["S_estimate"]),
        (record["gpu_hours_wasted_ratio"], record["gpu_hours_wasted_ratio_estimate"]),
        (record["causes"][0]["gain_ratio"], record["causes"][0]["gain_estimate"]),
    ]
    for value, estimate in pairs:
        assert estimate["value"] == pytest.approx(value)
        assert estimate["lower"] < value < estimate["upper"]
        assert (estimate["conf_level"], estimate["n"]) == (0.9, 6)
    assert analysis_of_record(record).causes == analysis.causes
