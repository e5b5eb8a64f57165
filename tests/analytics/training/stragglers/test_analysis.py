"""All results of a trace: the record holds them to the last digit, and gives them back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from analytics.training.stragglers.analysis import (
    analyse_trace,
    analysis_of_record,
    analysis_record,
)
from analytics.training.stragglers.step_model import StepModel
from data.synthetic.trace_schedule import TraceCosts


@pytest.fixture(scope="module")
def slow_model(trace_of):
    """A slow worker, and launch delays that are divided over groups."""
    forward = np.full((3, 4, 2, 1, 4), 0.1)
    forward[:, 1, 0] *= 2
    costs = TraceCosts(forward=forward, backward=0.2, launch=np.array([[0.3, 0.5, 0.1, 0.0]] * 3))
    return StepModel.of(trace_of(costs, dp=4, pp=2))


def stored(record):
    return json.loads(json.dumps(record))


def test_a_record_gives_back_what_it_was_made_of(slow_model) -> None:
    record = analysis_record(analyse_trace(slow_model))
    assert record["launch_S"] is not None
    again = analysis_record(analysis_of_record(stored(record)))
    assert json.dumps(again) == json.dumps(record)


def test_numbers_of_a_stored_record_are_those_of_the_analysis(slow_model) -> None:
    analysis = analyse_trace(slow_model)
    again = analysis_of_record(stored(analysis_record(analysis)))
    one, other = analysis.slowdowns, again.slowdowns
    for name in ("steps", "traced_seconds", "original_seconds", "by_worker", "by_worker_exact"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.workers, one.steps_ranked) == (other.workers, other.steps_ranked)
    assert one.slowest == other.slowest
    assert again.patterns == analysis.patterns
    assert [each.workers for each in again.causes] == [each.workers for each in analysis.causes]
    assert again.strongest.cause == analysis.strongest.cause == "data_loading"
    (worker,) = (each for each in again.causes if each.cause == "worker")
    assert (str(worker.part), worker.n_workers) == ("worker:1,0", 1)


def test_a_record_of_before_causes_were_looked_for_opens_without_them(slow_model) -> None:
    record = stored(analysis_record(analyse_trace(slow_model)))
    del record["causes"], record["patterns"]
    analysis = analysis_of_record(record)
    assert (analysis.causes, analysis.patterns, analysis.strongest) == (None, None, None)
    assert analysis.found_causes == ()
    assert analysis_record(analysis).keys() == record.keys()


def test_slowdowns_are_told_before_causes_are_looked_for(slow_model) -> None:
    calls = []
    analyse_trace(slow_model, on_slowdowns=lambda: calls.append(1))
    assert calls == [1]
