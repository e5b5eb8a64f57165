"""Fixing a part: what a slow worker or stage costs comes back, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from analytics.errors import AnalysisError
from analytics.training.stragglers.fixes import (
    Part,
    fixed,
    saved_estimate,
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
    few, many = rng.normal(1.5, 0.1, 125), rng.normal(1.5, 0.1, 12_500)
    widths = []
    for seconds in (few, many):
        found = slowdown_estimate(seconds, 1.0, np.arange(len(seconds)))
        assert found.lower is not None
        assert found.upper is not None
        assert found.value is not None
        assert found.lower < found.value < found.upper
        widths.append(found.upper - found.lower)
    assert widths[1] < widths[0] / 4


def test_steps_of_one_moment_tell_nothing_of_others() -> None:
    seconds = np.random.default_rng(1).normal(1.5, 0.1, 12)
    close, apart = (slowdown_estimate(seconds, 1.0, every * np.arange(12)) for every in (1, 20))
    assert (close.value, close.lower, close.upper) == (apart.value, None, None)
    assert wasted_estimate(close).lower is None
    saved = saved_estimate(seconds, 0.9 * seconds, np.arange(12))
    assert (saved.lower, saved.upper) == (None, None)
    assert apart.lower is not None


def test_a_slowdown_is_not_below_one_by_chance() -> None:
    """Two steps of three hundred: one half wave, and a wide interval."""
    found = slowdown_estimate(np.array([1.1, 1.6]), 1.0, np.array([0, 300]))
    assert found.lower == 1.0
    assert wasted_estimate(found).lower == 0.0
    below = slowdown_estimate(np.array([0.97, 0.99]), 1.0, np.array([0, 300]))
    assert below.lower == below.value == pytest.approx(0.98)


def followed(rng: np.random.Generator, n: int, n_traces: int, kept: float) -> np.ndarray:
    """An autoregression, (traces, n): what it keeps from step to step."""
    level = rng.normal(size=(n_traces, n)) * (1 - kept**2) ** 0.5
    level[:, 0] = rng.normal(size=n_traces)
    for at in range(1, n):
        level[:, at] += kept * level[:, at - 1]
    return level


def switched(rng: np.random.Generator, n: int, n_traces: int, stays: float) -> np.ndarray:
    """Steps of a job that a host slows by spells, (traces, n): three in ten steps are slow."""
    slow, moved = rng.random((n_traces, n)) < 0.3, rng.random((n_traces, n)) > stays
    for at in range(1, n):
        slow[:, at] = np.where(moved[:, at], slow[:, at], slow[:, at - 1])
    return 1.05 + 0.6 * slow + 0.03 * rng.normal(size=(n_traces, n))


STEPS_OF = {
    "each by itself": lambda rng, *size: 1 + 0.2 * np.exp(rng.normal(size=size[::-1])),
    "autoregression, 0.5": lambda rng, *size: 1.3 + 0.15 * followed(rng, *size, 0.5),
    "autoregression, 0.8": lambda rng, *size: 1.3 + 0.15 * followed(rng, *size, 0.8),
    "autoregression, 0.9": lambda rng, *size: 1.3 + 0.15 * followed(rng, *size, 0.9),
    "skewed, 0.7": lambda rng, *size: 1 + 0.2 * np.exp(followed(rng, *size, 0.7)),
    "spells of 3 steps": lambda rng, *size: switched(rng, *size, 0.7),
    "spells of 10 steps": lambda rng, *size: switched(rng, *size, 0.9),
}


def coverage(name: str, n: int, n_traces: int) -> float:
    """How often the interval of S holds the long-run S."""
    draw, rng = STEPS_OF[name], np.random.default_rng(n)
    truth = draw(rng, 200, 3000).mean()
    found = [slowdown_estimate(steps, 1.0, np.arange(n)) for steps in draw(rng, n, n_traces)]
    return float(np.mean([each.lower <= truth <= each.upper for each in found]))  # type: ignore[operator]


def test_the_interval_holds_where_steps_depend_on_each_other() -> None:
    """Steps taken one by one held in 0.4."""
    assert 0.82 <= coverage("autoregression, 0.8", 120, 100) <= 0.98  # three standard errors


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS_OF)
def test_nine_in_ten_intervals_hold_the_slowdown_however_steps_depend(name: str) -> None:
    for n in (40, 60, 120, 300):
        share = coverage(name, n, 600)
        print(f"{name}, {n} steps: {share:.3f}")
        seen = n >= 300 or name != "spells of 10 steps"  # a short trace may lie within one spell
        assert (0.85 if seen else 0.6) - 0.025 <= share <= 0.95 + 0.02  # two standard errors


def test_one_step_has_no_interval() -> None:
    found = slowdown_estimate(np.array([1.5]), 1.0, np.array([7]))
    assert (found.value, found.lower, found.upper, found.n) == (1.5, None, None, 1)
    assert wasted_estimate(found).lower is None
