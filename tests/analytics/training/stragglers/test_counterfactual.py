"""Step times at changed costs are those of the whole graph played at these costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.step_model import (
    Change,
    StepModel,
    changed_seconds,
    most_gained,
    timeline,
)
from data.synthetic.trace_schedule import TraceCosts


@pytest.fixture(scope="session")
def noisy(trace_of):
    def make(seed: int, pp: int, vpp: int) -> StepModel:
        rng, n_micro = np.random.default_rng(seed), 2 * pp
        computes, workers = (3, 3, pp, vpp, n_micro), (3, 3, pp)
        costs = TraceCosts(
            forward=rng.lognormal(-2, 0.4, computes),
            backward=rng.lognormal(-1, 0.4, computes),
            forward_p2p=rng.lognormal(-4, 1, workers),
            backward_p2p=rng.lognormal(-4, 1, workers),
            all_gather=rng.lognormal(-3, 1, workers),
            reduce_scatter=rng.lognormal(-3, 1, workers),
        )
        sizes = {"dp": 3, "pp": pp, "vpp": vpp, "micro_batches": n_micro, "steps": (0, 1, 2)}
        return StepModel.of(trace_of(costs, **sizes))

    return make


def played(model: StepModel, costs: np.ndarray) -> np.ndarray:
    ends = timeline(model.graph, lambda op: costs[op], shape=costs.shape).end
    return ends.max(axis=(0, 2))


@given(seed=st.integers(0, 1000), sizes=st.sampled_from([(1, 1), (2, 1), (3, 1), (2, 2)]))
def test_changed_transfers_and_computes_give_the_time_of_the_whole_graph(
    noisy, seed, sizes
) -> None:
    model = noisy(seed, *sizes)
    rng, optype = np.random.default_rng(seed), model.trace.operations.optype
    own = model.costs.own.astype(np.float64)
    transfers = np.flatnonzero(~np.isin(optype, kind.COMPUTES))
    change = Change(transfers, rng.uniform(0, 1, (len(transfers), *own.shape[1:])))
    costs = own.copy()
    costs[transfers] *= change.ratio
    none, found = changed_seconds(model, [[], [change]])
    assert none == pytest.approx(played(model, own), rel=1e-6)
    assert found == pytest.approx(played(model, costs), rel=2e-3)
    assert (none - found).mean() <= most_gained(model, change) + 1e-9


def test_a_compute_gets_no_faster_than_it_ever_was(noisy) -> None:
    model = noisy(3, 2, 1)
    computes = np.flatnonzero(np.isin(model.trace.operations.optype, kind.COMPUTES))
    (found,) = changed_seconds(model, [[Change(computes, np.zeros((1, 1, 1)))]])
    costs = model.costs.own.astype(np.float64)
    ideal = model.costs.ideal[model.trace.operations.optype]
    fastest = np.minimum(costs.min(axis=(1, 2)), ideal)
    costs[computes] = fastest[computes, None, None]
    assert found == pytest.approx(played(model, costs), rel=1e-6)


def test_changes_of_a_scenario_multiply(noisy) -> None:
    model = noisy(5, 2, 1)
    one = np.flatnonzero(model.trace.operations.optype == kind.REDUCE_SCATTER)
    half = Change(one, np.full((1, 1, 1), 0.5))
    twice, quarter = changed_seconds(model, [[half, half], [Change(one, np.full((1, 1, 1), 0.25))]])
    assert twice == pytest.approx(quarter)


def test_many_scenarios_give_what_each_gives_alone(noisy) -> None:
    model = noisy(7, 3, 1)
    changes = [
        Change(np.flatnonzero(model.trace.operations.stage == stage), np.full((1, 1, 1), 0.9))
        for stage in range(3)
    ]
    together = changed_seconds(model, [[change] for change in changes])
    for change, seconds in zip(changes, together, strict=True):
        assert changed_seconds(model, [[change]])[0] == pytest.approx(seconds, rel=2e-3)


def test_no_scenario_gives_no_times(noisy) -> None:
    assert changed_seconds(noisy(1, 1, 1), []).shape == (0, 3)
