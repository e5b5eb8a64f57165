"""When and where a job straggles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from analytics.training.stragglers.analysis import analyse_trace
from analytics.training.stragglers.causes import (
    autocorrelation,
    concentration,
    onset,
)
from analytics.training.stragglers.step_model import StepModel
from data.synthetic.trace_schedule import TraceCosts

AMOUNTS = arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(0, 10, width=32)
)


def test_a_slow_worker_has_nearly_all_of_the_slowdown(public_trace) -> None:
    found = analyse_trace(StepModel.of(public_trace("AR"))).patterns
    assert found.workers.top == (0, 0)
    assert found.workers.top_share_ratio > 0.9
    assert found.dp_ranks.top == (0,)
    assert found.straggling_steps_ratio == 1.0
    assert found.onset is None


def test_uneven_sequences_are_spread_over_the_ranks(public_trace) -> None:
    assert analyse_trace(StepModel.of(public_trace("SE"))).patterns.dp_ranks.gini < 0.1


def test_a_slow_stage_is_spread_over_ranks_and_concentrated_on_the_stage(public_trace) -> None:
    found = analyse_trace(StepModel.of(public_trace("ST"))).patterns
    assert found.stages.top == (3,)
    assert found.stages.top_share_ratio > 0.9
    assert found.dp_ranks.gini < 0.05


def test_slowness_that_begins_is_found_at_its_step(trace_of) -> None:
    forward = np.full((12, 2, 2, 1, 4), 0.1)
    forward[7:, 1, 1] *= 1.6
    steps = tuple(range(100, 220, 10))
    trace = trace_of(TraceCosts(forward=forward, backward=0.2), steps=steps)
    found = analyse_trace(StepModel.of(trace)).patterns
    assert found.onset.step == 170
    assert found.autocorrelation > 0.5


@pytest.mark.parametrize("seed", range(20))
def test_noise_has_no_onset(seed: int) -> None:
    seconds = np.random.default_rng(seed).normal(10, 0.5, 40)
    assert onset(np.arange(40), seconds) is None


def test_what_gets_faster_has_no_onset() -> None:
    assert onset(np.arange(10), np.repeat([2.0, 1.0], 5)) is None


def test_too_few_or_equal_steps_say_nothing() -> None:
    assert onset(np.arange(5), np.array([1.0, 1.0, 1.0, 2.0, 2.0])) is None
    assert autocorrelation(np.ones(9)) is None
    assert autocorrelation(np.array([1.0, 2.0, 1.0])) is None


def test_an_even_job_has_no_concentration() -> None:
    found = concentration(np.zeros((2, 3)))
    assert (found.gini, found.top_share_ratio) == (None, None)


@given(AMOUNTS)
def test_gini_is_that_of_all_pairs(amounts: np.ndarray) -> None:
    found = concentration(amounts)
    if amounts.sum() == 0:
        assert found.gini is None
        return
    gaps = np.abs(np.subtract.outer(amounts.ravel(), amounts.ravel()))
    assert found.gini == pytest.approx(gaps.sum() / (2 * amounts.size * amounts.sum()), abs=1e-9)
    assert amounts[found.top] == amounts.max()
