"""Launch delays of one rank, of one type and of one stage: each as if the step were played alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.training.stragglers.launch import delayed_rank_seconds
from analytics.training.stragglers.operations import OPTIMIZER
from analytics.training.stragglers.step_model import StepModel, latest_ends
from data.synthetic.trace_schedule import TraceCosts

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from analytics.training.stragglers.trace import Trace


def assert_as_if_played_alone(model: StepModel, delays: NDArray[np.float64]) -> None:
    own = model.costs.own.astype(np.float64)
    last = np.flatnonzero(model.trace.operations.optype == OPTIMIZER).tolist()
    found = delayed_rank_seconds(model.graph, own.__getitem__, delays.__getitem__, last)
    begin = np.zeros(own.shape[1:])
    for dp in range(model.trace.n_dp):
        alone = delays * (np.arange(model.trace.n_dp) == dp)
        wanted = latest_ends(
            model.graph,
            own.__getitem__,
            begin=begin,
            launch=lambda op, start, alone=alone: start + alone[op],
            of=set(last),
        )
        assert found[:, dp] == pytest.approx(wanted, rel=1e-12)


@settings(deadline=None)
@given(
    seed=st.integers(0, 1000),
    sizes=st.sampled_from([(1, 1, 1), (1, 2, 1), (2, 1, 1), (3, 3, 1), (4, 2, 2), (5, 4, 1)]),
)
def test_a_delayed_rank_slows_the_step_as_if_played_alone(
    trace_of: Callable[..., Trace], seed: int, sizes: tuple[int, int, int]
) -> None:
    (dp, pp, vpp), rng = sizes, np.random.default_rng(seed)
    computes, workers = (2, dp, pp, vpp, 2 * pp), (2, dp, pp)
    costs = TraceCosts(
        forward=rng.lognormal(-2, 0.4, computes),
        backward=rng.lognormal(-1, 0.4, computes),
        all_gather=rng.lognormal(-3, 1, workers),
        reduce_scatter=rng.lognormal(-3, 1, workers),
    )
    shape = {"dp": dp, "pp": pp, "vpp": vpp, "micro_batches": 2 * pp, "steps": (0, 1)}
    model = StepModel.of(trace_of(costs, **shape))
    delays = rng.exponential(0.05, model.costs.own.shape) * rng.integers(
        0, 2, model.costs.own.shape
    )
    assert_as_if_played_alone(model, delays)


@pytest.mark.parametrize("name", ["AR", "SE", "ST"])
def test_the_same_of_public_traces(public_trace: Callable[[str], Trace], name: str) -> None:
    model = StepModel.of(public_trace(name))
    rng = np.random.default_rng(0)
    assert_as_if_played_alone(model, rng.exponential(0.01, model.costs.own.shape))
