"""Fixing a part: what a slow worker or stage costs comes back, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from analytics.errors import AnalysisError
from analytics.training.stragglers.fixes import (
    Part,
    fixed,
    slowdown_estimate,
    wasted_estimate,
)
from analytics.training.stragglers.slowdown import slowdowns
from analytics.training.stragglers.step_model import StepModel
from data.synthetic.trace_schedule import TraceCosts

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.training.stragglers.trace import Trace


@pytest.fixture(scope="module")
def slow_worker(trace_of: Callable[..., Trace]) -> Trace:
    """Worker dp 3, stage 1 of 8 x 2 computes at half speed."""
    slow = np.ones((1, 8, 2, 1, 1))
    slow[:, 3, 1] = 2.0
    return trace_of(TraceCosts(forward=0.1 * slow, backward=0.2 * slow), dp=8, pp=2)


@pytest.mark.parametrize("text", ["worker:3,1", "stage:2", "type:backward-pp-comm"])
def test_the_name_of_a_part_names_it(text: str) -> None:
    assert str(Part.named(text)) == text


@pytest.mark.parametrize("text", ["", "worker:3", "worker:-1,0", "stage:x", "type:", "dp:3"])
def test_what_names_no_part_is_refused(text: str) -> None:
    with pytest.raises(AnalysisError, match="must be worker:DP,STAGE, stage:N or type:NAME"):
        Part.named(text)


@pytest.mark.parametrize("text", ["worker:8,0", "stage:2", "type:none-such"])
def test_a_part_that_the_trace_lacks_is_refused(slow_worker: Trace, text: str) -> None:
    with pytest.raises(AnalysisError, match="holds no operation"):
        fixed(StepModel.of(slow_worker), [Part.named(text)])


def test_fixing_the_slow_worker_gives_back_most(slow_worker: Trace) -> None:
    model = StepModel.of(slow_worker)
    parts = [Part(dp=dp, stage=stage) for dp in range(8) for stage in range(2)]
    gains = {each.part: each.saved_ratio.value for each in fixed(model, parts)}
    assert max(gains, key=gains.__getitem__) == Part(dp=3, stage=1)
    assert gains[Part(dp=3, stage=1)] == pytest.approx(0.4, abs=0.1)


def test_a_fix_is_the_engines_own(slow_worker: Trace) -> None:
    model = StepModel.of(slow_worker)
    analysis = slowdowns(model)
    found = fixed(model, [Part(stage=1)])[0]
    assert found.original_seconds == pytest.approx(analysis.original_seconds)
    assert found.fixed_seconds.mean() == pytest.approx(analysis.stages[1].fixed_seconds)


def test_hours_saved_grow_with_the_job(slow_worker: Trace) -> None:
    found = fixed(StepModel.of(slow_worker), [Part(dp=3, stage=1)])[0]
    assert found.saved_ratio.value is not None
    saved = found.saved_gpu_hours_per_day(128)
    assert saved.value == pytest.approx(found.saved_ratio.value * 128 * 24)


def test_the_interval_holds_the_value_and_narrows_with_more_steps() -> None:
    rng = np.random.default_rng(1)
    few, many = rng.normal(1.5, 0.1, 10), rng.normal(1.5, 0.1, 1000)
    found = [slowdown_estimate(seconds.tolist(), 1.0) for seconds in (few, many)]
    for each in found:
        assert each.lower is not None
        assert each.upper is not None
        assert each.value is not None
        assert each.lower <= each.value <= each.upper
    widths = [(each.upper or 0) - (each.lower or 0) for each in found]
    assert widths[1] < widths[0] / 4
    assert found[1].lower == pytest.approx(many.mean() - 1.645 * 0.1 / np.sqrt(1000), abs=0.001)


def test_one_step_has_no_interval() -> None:
    found = slowdown_estimate([1.5], 1.0)
    assert (found.value, found.lower, found.upper, found.n) == (1.5, None, None, 1)
    assert wasted_estimate(found).lower is None
