"""Properties that the what-if has on every trace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.errors import AnalysisError, ShapeError
from analytics.training.stragglers.simulation import Standard, plan_of, simulate
from analytics.training.stragglers.slowdown import Contribution, slowdowns, slowest_first
from analytics.training.stragglers.step_model import Costs, StepModel
from data.synthetic.trace_schedule import TraceCosts

EXACT = 1e-12


@st.composite
def sizes(draw):
    pp = draw(st.integers(1, 4))
    vpp = draw(st.integers(1, 3)) if pp > 1 else 1
    return {
        "dp": draw(st.integers(1, 4)),
        "pp": pp,
        "vpp": vpp,
        "micro_batches": pp * draw(st.integers(1, 3)) if vpp > 1 else draw(st.integers(1, 7)),
        "steps": tuple(range(draw(st.integers(1, 3)))),
        "overlapped": draw(st.booleans()),
        "dsp": draw(st.integers(1, 2)),
    }


@st.composite
def models(draw):
    """Model and random costs: some zero, some transfers below zero, some far larger than others."""
    shape, seed = draw(sizes()), draw(st.integers(0, 2**20))
    return shape, seed


@pytest.fixture(scope="session")
def model_of(trace_of):
    def make(drawn) -> StepModel:
        shape, seed = drawn
        trace, rng = trace_of(**shape), np.random.default_rng(seed)
        model = StepModel.of(trace)
        own = rng.lognormal(-3, 1.5, trace.start.shape) * (rng.random(trace.start.shape) < 0.8)
        transfers = np.array(["compute" not in op for op in model_labels(model)])
        negative = (rng.random(own.shape) < 0.1) & transfers[:, None, None]
        own[negative] = -0.009 * rng.random(negative.sum())
        ideal = np.where(np.isnan(model.costs.ideal), np.nan, rng.lognormal(-3, 1, 14))
        costs = Costs(own, ideal)
        return StepModel(trace, model.graph, costs, plan_of(trace, model.graph, costs))

    return make


def model_labels(model):
    names = {label: model.operations_of(optype=label)[:, 0] for label in model.labels}
    n = len(model.trace.operations)
    local = ("gc", "optimizer", "layernorm-grads-all-reduce")
    return [
        next("compute" if k in local else k for k, at in names.items() if at[op]) for op in range(n)
    ]


def step_seconds(model: StepModel, kept, *, optimizer: bool) -> np.ndarray:
    """Step times by the whole graph, one scenario at a time: the oracle of the batches."""
    end = model.timeline(kept).end
    if optimizer:
        end = end[model.operations_of(optype="optimizer")[:, 0]]
    return end.max(axis=(0, 2))


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(drawn=models())
def test_batches_agree_with_the_whole_graph_scenario_by_scenario(drawn, model_of):
    model = model_of(drawn)
    trace = model.trace
    batch = Standard(trace.n_stages, model.labels, trace.n_dp)
    ends = simulate(model.plan, model.costs, batch)
    everything = model.operations_of()

    def check(found, kept):
        for times, optimizer in zip(found, (True, False), strict=True):
            wanted = step_seconds(model, kept, optimizer=optimizer)
            np.testing.assert_allclose(times, wanted, rtol=EXACT)

    both = (ends.optimizer, ends.last)
    check([e[batch.original].max(axis=-1) for e in both], everything)
    check([e[batch.ideal].max(axis=-1) for e in both], ~everything)
    for stage in range(trace.n_stages):
        of_stage = model.operations_of(stage=stage)
        check([batch.stage(e)[stage] for e in both], of_stage)
        check([batch.fixed_stage(e)[stage] for e in both], ~of_stage)
    for label in model.labels:
        check([batch.types(e)[label] for e in both], model.operations_of(optype=label))
    for dp in range(trace.n_dp):
        check([batch.kept_dp(e)[:, dp] for e in both], model.operations_of(dp=dp))
        for stage in range(trace.n_stages):
            worker = model.operations_of(dp=dp, stage=stage)
            check([batch.kept_worker(e)[stage, :, dp] for e in both], worker)
    rng = np.random.default_rng(drawn[1])
    kept = rng.random((3, *everything.shape)) < 0.5
    wanted = [step_seconds(model, one, optimizer=False) for one in kept]
    np.testing.assert_allclose(model.keep(kept), wanted, rtol=EXACT)
    np.testing.assert_allclose(model.fix(~kept[0]), wanted[0], rtol=EXACT)


@settings(deadline=None)
@given(drawn=models(), factor=st.floats(1.0, 50.0))
def test_slowing_an_operation_never_shortens_a_step(drawn, factor, model_of):
    model = model_of(drawn)
    rng = np.random.default_rng(drawn[1])
    own = model.costs.own.copy()
    at = tuple(rng.integers(size) for size in own.shape)
    own[at] = own[at] * factor if own[at] > 0 else own[at] + factor
    costs = Costs(own, model.costs.ideal)
    slower = StepModel(model.trace, model.graph, costs, plan_of(model.trace, model.graph, costs))
    everything = model.operations_of()
    assert (slower.keep(everything) >= model.keep(everything)).all()


@settings(deadline=None)
@given(drawn=models())
def test_with_all_costs_ideal_there_is_no_slowdown(drawn, model_of):
    model = model_of(drawn)
    ideal = model.costs.ideal[model.trace.operations.optype]
    own = np.broadcast_to(ideal[:, None, None], model.costs.own.shape).copy()
    costs = Costs(own, model.costs.ideal)
    same = StepModel(model.trace, model.graph, costs, plan_of(model.trace, model.graph, costs))
    everything = model.operations_of()
    np.testing.assert_array_equal(same.keep(everything), same.fix(everything))


@settings(deadline=None)
@given(drawn=models(), factor=st.floats(0.01, 100.0))
def test_a_factor_on_all_costs_leaves_the_slowdown(drawn, factor, model_of):
    model = model_of(drawn)
    costs = Costs(model.costs.own * factor, model.costs.ideal * factor)
    scaled = StepModel(model.trace, model.graph, costs, plan_of(model.trace, model.graph, costs))
    everything = model.operations_of()
    ratio = model.keep(everything).mean() / model.fix(everything).mean()
    found = scaled.keep(everything).mean() / scaled.fix(everything).mean()
    assert found == pytest.approx(ratio, rel=1e-9)


@given(shape=sizes(), seed=st.integers(0, 2**20))
def test_the_model_plays_a_generated_schedule_as_it_was_generated(shape, seed, trace_of):
    rng = np.random.default_rng(seed)
    workers = (len(shape["steps"]), shape["dp"], shape["pp"])
    computes = (*workers, shape["vpp"], shape["micro_batches"])
    costs = TraceCosts(
        forward=rng.lognormal(-2, 0.5, computes),
        backward=rng.lognormal(-1.5, 0.5, computes),
        forward_p2p=rng.lognormal(-5, 0.5, workers),
        all_gather=rng.lognormal(-3, 0.5, workers),
    )
    analysis = slowdowns(StepModel.of(trace_of(costs, **shape)))
    np.testing.assert_allclose(analysis.original_seconds, analysis.traced_seconds, rtol=2e-6)
    assert analysis.launch is None
    assert analysis.simulation_error < 2e-6


@given(shape=sizes(), seed=st.integers(0, 2**20))
def test_order_of_rows_and_labels_of_ranks_change_nothing(shape, seed, rows_of):
    rng = np.random.default_rng(seed)
    computes = (len(shape["steps"]), shape["dp"], shape["pp"], shape["vpp"], shape["micro_batches"])
    rows = rows_of(TraceCosts(forward=rng.lognormal(-2, 0.5, computes), backward=0.2), **shape)
    order = rng.permutation(len(rows))
    columns = {key: value[order] for key, value in vars(rows).items() if value is not None}
    shuffled = replace(rows, **columns | {"rank": rng.permutation(10_000)[columns["rank"]]})
    one, other = (
        slowdowns(StepModel.of_rows(some, dsp_size=shape["dsp"])) for some in (rows, shuffled)
    )
    assert one.slowdown == other.slowdown
    np.testing.assert_array_equal(one.by_worker, other.by_worker)
    orders = [slowest_first(each.by_worker) for each in (one, other)]
    np.testing.assert_array_equal(*orders)
    assert one.slowest.contribution == other.slowest.contribution
    assert one.slowest.fixed_ratio == other.slowest.fixed_ratio


def test_a_healthy_job_gets_all_results(trace_of):
    model = StepModel.of(trace_of(dp=3, pp=2))
    analysis = slowdowns(model)
    assert analysis.slowdown == pytest.approx(1.0, abs=1e-6)
    assert analysis.wasted_ratio == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(analysis.by_worker, np.ones((3, 2)), atol=1e-5)
    np.testing.assert_allclose(analysis.by_worker_exact, np.ones((3, 2)), atol=1e-5)
    assert set(analysis.by_type) == set(model.labels)
    assert len(analysis.stages) == 2


def test_a_slow_worker_is_named_and_fixing_it_recovers_what_is_lost(trace_of):
    forward = np.full((2, 8, 4, 1, 8), 0.1)
    forward[:, 5, 2] *= 3
    analysis = slowdowns(
        StepModel.of(
            trace_of(
                TraceCosts(forward=forward, backward=2 * forward),
                dp=8,
                pp=4,
                micro_batches=8,
                steps=(1, 2),
            )
        )
    )
    assert slowest_first(analysis.by_worker)[0].tolist() == [5, 2]
    assert analysis.slowdown > 1.5
    assert analysis.slowest.fixed_ratio[1] > 0.9
    assert analysis.by_worker_exact.argmax() == 5 * 4 + 2
    assert analysis.by_dp.argmax() == 5
    assert analysis.by_stage.argmax() == 2


def test_a_slow_stage_in_the_middle_is_found_though_the_last_is_not_to_blame(trace_of):
    forward = np.full((2, 2, 4, 1, 8), 0.1)
    forward[:, :, 1] *= 2
    analysis = slowdowns(
        StepModel.of(
            trace_of(
                TraceCosts(forward=forward, backward=2 * forward),
                dp=2,
                pp=4,
                micro_batches=8,
                steps=(1, 2),
            )
        )
    )
    shares = [stage.fixed_ratio for stage in analysis.stages]
    assert np.argmax(shares) == 1
    assert shares[1] > 0.9
    assert abs(shares[3]) < 0.2


def test_launch_delays_are_divided_over_groups_from_three_percent_on(trace_of):
    costs = TraceCosts(forward=0.1, backward=0.2, launch=np.array([[0.3, 0.0]] * 3))
    analysis = slowdowns(StepModel.of(trace_of(costs, dp=2, pp=2)))
    assert analysis.launch_slowdown > 1.03
    assert analysis.launch is not None
    assert analysis.launch.by_type["first-op"] == pytest.approx(analysis.launch_slowdown, rel=1e-5)
    assert analysis.launch.by_type["optimizer"] == pytest.approx(1.0, abs=1e-5)
    assert analysis.launch.by_dp[0] == pytest.approx(analysis.launch_slowdown, rel=1e-5)
    assert analysis.launch.by_dp[1] == pytest.approx(1.0, abs=1e-5)
    assert analysis.launch.by_stage[1] == pytest.approx(1.0, abs=1e-5)
    assert analysis.launch.by_stage[0] > 1.03


def test_ties_of_workers_go_by_stage_then_rank(trace_of):
    analysis = slowdowns(StepModel.of(trace_of(dp=2, pp=2)))
    tied = analysis.by_worker
    order = slowest_first(tied).tolist()
    keys = [(-tied[dp, stage], stage, dp) for dp, stage in order]
    assert keys == sorted(keys)


def test_without_loss_there_is_no_share_of_it():
    nothing = Contribution(2.0, 2.0, 2.0, 2.0)
    assert nothing.fixed_ratio is None
    assert nothing.kept_ratio is None
    assert Contribution(3.0, 2.0, 2.5).kept_ratio is None


def test_sets_of_operations_that_do_not_fit_the_trace_are_refused(trace_of):
    model = StepModel.of(trace_of())
    with pytest.raises(ShapeError, match=r"must broadcast to \(\d+, 2\)"):
        model.fix(np.ones((3, 5), dtype=bool))
    with pytest.raises(AnalysisError, match="no operation of type None, stage 7"):
        model.operations_of(stage=7)


def test_times_of_a_timeline_run_forward_and_end_with_the_step(trace_of):
    model = StepModel.of(trace_of(dp=2, pp=3))
    analysis = slowdowns(model)
    for line, seconds in (
        (model.timeline(), analysis.original_seconds),
        (model.timeline(operations=False), analysis.ideal_seconds),
        (model.traced_timeline(), analysis.traced_seconds),
    ):
        assert (line.start <= line.ready + 1e-6).all()
        assert (line.ready <= line.end + 1e-6).all()
        np.testing.assert_allclose(line.end.max(axis=(0, 2)), seconds, rtol=1e-5)
