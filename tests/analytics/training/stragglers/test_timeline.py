"""Timelines in the Chrome trace format: what Perfetto needs, and the times of the simulation."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analytics.errors import AnalysisError
from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.step_model import StepModel
from analytics.training.stragglers.timeline import CLASSES, GAP_RATIO, chrome_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.training.stragglers.trace import Trace

NEEDED = {"ph", "ts", "dur", "pid", "tid", "name"}
US = 1e6


def _events(text: str, kind_of: str = "X") -> list[dict[str, Any]]:
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == kind_of]


def _assert_valid(text: str) -> None:
    """What the Trace Event Format asks of every event, sorted; no thread holds two at a time."""
    events = json.loads(text)["traceEvents"]
    assert all(event.keys() >= NEEDED for event in events)
    assert all(event["ts"] >= 0 and event["dur"] >= 0 for event in events)
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    by_thread = defaultdict(list)
    for event in _events(text):
        by_thread[event["pid"], event["tid"]].append(event)
    for found in by_thread.values():
        ends = np.array([round(1000 * (e["ts"] + e["dur"])) for e in found])
        starts = np.array([round(1000 * e["ts"]) for e in found])
        assert (starts[1:] >= np.maximum.accumulate(ends)[:-1]).all()
    named = {(e["pid"], e["tid"]) for e in _events(text, "M") if e["name"] == "thread_name"}
    assert by_thread.keys() <= named


@pytest.mark.parametrize("sizes", [{}, {"dp": 4, "pp": 1}, {"vpp": 2}, {"dp": 1, "pp": 4}])
def test_every_timeline_is_valid_and_holds_every_operation(
    trace_of: Callable[..., Trace], sizes: dict[str, int]
) -> None:
    trace = trace_of(**sizes)
    model = StepModel.of(trace)
    for timeline in (model.timeline(), model.timeline(False), model.traced_timeline()):
        text = chrome_trace(trace, timeline)
        _assert_valid(text)
        assert len(_events(text)) == trace.start.size


def test_steps_follow_each_other_after_a_tenth(trace_of: Callable[..., Trace]) -> None:
    trace = trace_of()
    model = StepModel.of(trace)
    seconds = model.keep(True)
    ends, starts = defaultdict(float), defaultdict(lambda: np.inf)
    for event in _events(chrome_trace(trace, model.timeline())):
        step = event["args"]["step"]
        ends[step] = max(ends[step], event["ts"] + event["dur"])
        starts[step] = min(starts[step], event["ts"])
    begin = 0.0
    for step, length in zip(trace.steps.tolist(), seconds.tolist(), strict=True):
        assert starts[step] == pytest.approx(begin * US, abs=0.01)
        assert ends[step] == pytest.approx((begin + length) * US, abs=0.01)
        begin += length * (1 + GAP_RATIO)


def test_a_process_is_a_rank_and_a_thread_a_worker_and_class(
    trace_of: Callable[..., Trace],
) -> None:
    trace = trace_of(dp=3)
    assert trace.ranks is not None
    text = chrome_trace(trace, StepModel.of(trace).timeline(), title="original")
    stride = len(CLASSES) * (int(trace.ranks.max()) + 1)
    for event in _events(text):
        rank = trace.ranks[event["pid"], event["args"]["stage"]]
        assert event["tid"] % stride == len(CLASSES) * rank + CLASSES.index(event["cat"])
    names = {e["args"]["name"] for e in _events(text, "M") if e["name"] == "process_name"}
    assert names == {"dp 0, original", "dp 1, original", "dp 2, original"}


def test_communication_is_its_transfer_alone(trace_of: Callable[..., Trace]) -> None:
    trace = trace_of()
    model = StepModel.of(trace)
    drawn = sum(e["dur"] for e in _events(chrome_trace(trace, model.timeline())))
    assert drawn == pytest.approx(np.maximum(model.costs.own, 0).sum() * US, rel=1e-6)


def test_chosen_steps_are_drawn_alone(trace_of: Callable[..., Trace]) -> None:
    trace = trace_of()
    timeline = StepModel.of(trace).timeline()
    assert {e["args"]["step"] for e in _events(chrome_trace(trace, timeline, steps=[5]))} == {5}
    for steps in ([4], []):
        with pytest.raises(AnalysisError, match="steps must be among the trace's 3, 3 to 9"):
            chrome_trace(trace, timeline, steps=steps)


def test_workers_without_labels_are_numbered_by_stage(trace_of: Callable[..., Trace]) -> None:
    from dataclasses import replace

    trace = trace_of(dp=2, pp=2)
    bare = replace(trace, ranks=None)
    events = _events(chrome_trace(bare, StepModel.of(bare).timeline()))
    computes = {(e["pid"], e["args"]["stage"]): e["tid"] for e in events if e["cat"] == "compute"}
    assert computes == {(0, 0): 0, (1, 0): 5, (0, 1): 10, (1, 1): 15}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["AR", "SE", "ST"])
def test_a_public_trace_makes_valid_timelines(
    public_trace: Callable[[str], Trace], name: str
) -> None:
    trace = public_trace(name)
    model = StepModel.of(trace)
    steps = trace.steps.tolist()[:3]
    for timeline in (model.timeline(), model.timeline(False), model.traced_timeline()):
        text = chrome_trace(trace, timeline, steps=steps)
        _assert_valid(text)
        assert {e["name"] for e in _events(text)} <= set(kind.OPTYPES)
