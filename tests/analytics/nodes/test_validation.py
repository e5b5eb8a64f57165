"""Results of benchmarks against the fleet's, and the plan of what to test next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analytics.errors import OutOfRangeError
from analytics.nodes.validation import better_of, regressions, similarity
from analytics.nodes.validation_plan import (
    BENCHMARKS,
    NodeRecord,
    PastIncident,
    ValidationPlan,
    validation_plan,
)
from tests.analytics.nodes.made_incidents import HABITS, drawn

RESULTS = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=12)


@given(RESULTS, RESULTS)
def test_similarity_is_a_share_and_one_for_the_same(one: list[float], other: list[float]) -> None:
    a, b = np.array(one), np.array(other)
    assert 0 <= similarity(a, b) <= 1 + 1e-12
    assert similarity(a, b) == pytest.approx(similarity(b, a))
    assert similarity(a, a[::-1]) == pytest.approx(1.0)
    assert similarity(a, b, "higher") >= similarity(a, b) - 1e-12


def test_similarity_by_hand() -> None:
    # F of {1, 3}, G of {2, 4}: both quantiles lie 1 apart, the larger ones are 2 and 4.
    assert similarity(np.array([1.0, 3.0]), np.array([2.0, 4.0])) == pytest.approx(1 - 1 / 3)
    assert similarity(np.array([1.0, 3.0]), np.array([2.0, 4.0]), "lower") == 1.0


@pytest.mark.parametrize(
    ("metric", "better"),
    [
        ("mem-bw/H2D_Mem_BW", "higher"), ("gemm-flops/FP16_TC", "higher"), ("nccl-bw/allreduce_8_time", "lower"),
        ("bert_models/pytorch-bert-large/steptime_train_float16", "lower"), ("bert_models/pytorch-bert-large/throughput_train_float16", "higher"),
        ("kernel-launch/event_overhead", "lower"), ("ib-loopback/IB_write_8388608_Avg_0", "higher"), ("gpu-sm-copy-bw/dtoh", "higher"),
        ("pytorch-computation-communication-overlap/mul_cost", "lower"), ("new-test/score", "unknown"),
    ],
)  # fmt: skip
def test_words_of_metrics_say_which_way_is_better(metric: str, better: str) -> None:
    assert better_of(metric) == better


def fleet(n: int = 60, *, noise: float = 0.005, seed: int = 3) -> dict[str, dict[str, list[float]]]:
    rng = np.random.default_rng(seed)
    return {
        f"n{at:02d}": {
            "mem-bw/h2d_bw": list(26 * rng.normal(1, noise, 8)),
            "kernel-launch/event_time": list(0.0055 * rng.normal(1, noise, 8)),
            "noisy/throughput": list(100 * rng.lognormal(0, 0.2, 1)),
            "nccl-bw/allreduce_8_busbw": [0.0],
        }
        for at in range(n)
    }


def test_regressed_nodes_are_named_and_faster_ones_are_not() -> None:
    results = fleet()
    results["n07"]["mem-bw/h2d_bw"] = [value * 0.8 for value in results["n07"]["mem-bw/h2d_bw"]]
    results["n08"]["kernel-launch/event_time"][:4] = [0.01] * 4  # half of its GPUs
    results["n09"]["mem-bw/h2d_bw"] = [value * 1.3 for value in results["n09"]["mem-bw/h2d_bw"]]
    found = regressions(results)
    assert {(each.node, each.metric) for each in found.found} == {
        ("n07", "mem-bw/h2d_bw"), ("n08", "kernel-launch/event_time"),
    }  # fmt: skip
    ratio = next(each.ratio for each in found.found if each.node == "n07")
    assert (ratio.lower < 0.8 < ratio.upper, ratio.n) == (True, 8)


def test_a_tenth_of_the_fleet_may_be_regressed() -> None:
    results = fleet()
    for at in range(6):  # as many as SuperBench found
        metric = results[f"n{at:02d}"]["mem-bw/h2d_bw"]
        metric[:] = [value * 0.9 for value in metric]
    assert set(regressions(results).regressed) == {f"n{at:02d}" for at in range(6)}


def test_a_fleet_without_regression_flags_hardly_any_node() -> None:
    flagged = [len(regressions(fleet(seed=seed)).regressed) for seed in range(20)]
    assert sum(flagged) <= 0.01 * 20 * 60


def test_failed_benchmarks_few_nodes_and_negative_values() -> None:
    results = fleet(6)
    results["n01"]["gemm-flops/return_code"] = [0, 0, 1]
    results["n02"] |= {"rare/throughput": [5.0]}
    for metrics in results.values():
        metrics["delta/throughput"] = [-1.0, 2.0]
    found = regressions(results)
    assert (dict(found.failed), found.regressed) == ({"n01": ("gemm-flops",)}, ("n01",))
    assert found.too_few == ("rare/throughput",)
    assert "delta/throughput" not in {each.metric for each in found.criteria}
    with pytest.raises(OutOfRangeError, match=r"similarity must be in \(0, 1\), got 95"):
        regressions(results, least_similarity=95)


WINDOW = 60.0


def record(
    node: str,
    days: float = 50.0,
    incidents: int = 0,
    *,
    cost: float = 100.0,
    cause: str = "ib_link",
    regressed: bool = False,
) -> NodeRecord:
    known = tuple(
        PastIncident(WINDOW * (at + 0.5) / incidents, cost, cause) for at in range(incidents)
    )
    return NodeRecord("c", node, days, WINDOW, known, 8.0, regressed)


def test_nodes_with_more_incidents_in_less_time_come_first() -> None:
    records = [
        record("good"),
        record("bad", incidents=6),
        record("new", days=1.0),
        record("worse", days=10, incidents=6),
    ]
    plan = validation_plan(records)
    rates = {each.record.node: each.rate for each in plan.tests}
    assert plan.rate_per_1000_node_days == pytest.approx(1000 * 12 / 111)
    assert rates["good"].value < rates["bad"].value < rates["worse"].value < 600
    assert rates["good"].value < rates["new"].value  # of which less is known
    assert all(rate.lower < rate.value < rate.upper for rate in rates.values())


def test_what_is_staked_is_all_that_will_come_and_not_one_incident() -> None:
    """36 incidents of 100 GPU-hours in 60 days: as many a day are to be expected of 28 more."""
    plan = validation_plan([record("bad", 60.0, 36), *(record(f"n{at}", 60.0) for at in range(40))])
    bad = next(each for each in plan.tests if each.record.node == "bad")
    assert bad.p_incident > 0.9
    assert bad.loss_gpu_hours.value == pytest.approx(36 / 60 * 28 * 100, rel=0.1)
    assert bad.loss_gpu_hours.lower < 1_200 < 2_200 < bad.loss_gpu_hours.upper  # type: ignore[operator]
    assert 0 < bad.at_stake_gpu_hours.value < bad.loss_gpu_hours.value  # type: ignore[operator]


def test_a_node_that_is_seldom_in_jobs_will_lose_less_at_the_same_rate() -> None:
    plan = validation_plan([record("busy", 60.0, 30), record("idle", 6.0, 3), record("none", 60.0)])
    loss = {each.record.node: each.loss_gpu_hours.value for each in plan.tests}
    assert loss["idle"] < loss["busy"] / 5


def test_few_costs_that_differ_much_leave_more_open_than_many_alike() -> None:
    def relative(costs: list[float]) -> float:
        known = tuple(PastIncident(4.0 * at, cost, "nic") for at, cost in enumerate(costs))
        others = [record(f"n{at}", 60.0) for at in range(20)]
        plan = validation_plan([NodeRecord("c", "bad", 60.0, WINDOW, known, 8.0), *others])
        loss = plan.tests[0].loss_gpu_hours
        return ((loss.upper or 0.0) - (loss.lower or 0.0)) / (loss.value or 1.0)

    assert relative([1, 2, 1, 900, 2, 1]) > 1.1 * relative([150] * 6)


def test_the_nodes_own_causes_choose_its_tests() -> None:
    records = [record(f"n{at}") for at in range(20)] + [
        record("cpu", incidents=8, cause="cpu"),
        record("ib", incidents=8),
    ]
    first = {each.record.node: each.tests[0] for each in validation_plan(records).tests}
    assert (first["cpu"], first["ib"], first["n3"]) == (
        "cpu-memory-bw-latency",
        "ib-loopback",
        "ib-loopback",
    )


def test_of_incidents_whose_kind_no_test_shows_little_is_at_stake() -> None:
    shown, hidden = (
        validation_plan([record("a", incidents=20, cause=cause), record("b")]).at_stake_gpu_hours
        for cause in ("ib_link", "filesystem_mount")
    )
    assert hidden.value < shown.value / 3  # type: ignore[operator]


def test_tests_that_cost_more_than_incidents_are_not_planned() -> None:
    records = [record("a", incidents=1, cost=0.1), record("b")]
    assert validation_plan(records).worthwhile == ()
    dear = validation_plan([*records, record("c", regressed=True)])
    assert [each.record.node for each in dear.worthwhile] == ["c"]
    assert len(dear.worthwhile[0].tests) == len(BENCHMARKS)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 60), st.integers(0, 20)), min_size=1, max_size=30))
@example([(5e-324, 1)])
def test_any_records_have_a_plan(rows: list[tuple[float, int]]) -> None:
    records = [record(f"n{at}", days, n) for at, (days, n) in enumerate(rows)]
    plan = validation_plan(records)
    assert {each.record.node for each in plan.tests} == {each.node for each in records}
    for each in plan.tests:
        assert 0 <= each.p_incident <= 1
        loss, stake = each.loss_gpu_hours, each.at_stake_gpu_hours
        assert 0 <= stake.value <= loss.value * (1 + 1e-9)
        assert 0 <= stake.lower <= stake.value


def test_without_incidents_nothing_is_worth_a_test() -> None:
    plan = validation_plan([record("a"), record("b", days=0.0)])
    assert (plan.worthwhile, plan.tests[0].p_incident, plan.tests[0].rate.upper) == ((), 0.0, None)
    with pytest.raises(OutOfRangeError, match="horizon_days"):
        validation_plan([record("a")], horizon_days=0)


def covered(plan: ValidationPlan, came: tuple[float, float]) -> tuple[bool, ...]:
    staked = plan.loss_gpu_hours, plan.at_stake_gpu_hours
    return tuple(
        (each.lower or 0.0) <= true <= (each.upper or 0.0)
        for each, true in zip(staked, came, strict=True)
    )


@pytest.mark.slow
def test_what_the_plan_staked_covers_what_came_in_200_back_tests() -> None:
    held: dict[str, list[tuple[bool, ...]]] = {habit: [] for habit in HABITS}
    for habit, of in held.items():
        for seed in range(50):
            fleet = drawn(habit, seed)
            plan = validation_plan(fleet.records, horizon_days=fleet.horizon_days)
            if plan.worthwhile:
                of.append(covered(plan, fleet.came(plan.worthwhile)))
    print({habit: np.mean(of, axis=0).round(3).tolist() for habit, of in held.items()})
    loss, stake = np.mean([each for of in held.values() for each in of], axis=0)
    assert 0.85 <= loss <= 0.95
    assert 0.85 <= stake <= 0.95
