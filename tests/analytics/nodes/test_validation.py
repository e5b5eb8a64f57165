"""Results of benchmarks against the fleet's, and the plan of what to test next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import OutOfRangeError
from analytics.nodes.validation import better_of, regressions, similarity
from analytics.nodes.validation_plan import BENCHMARKS, NodeRecord, validation_plan

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


def record(node: str, days: float = 50.0, incidents: int = 0, **more: object) -> NodeRecord:
    causes = more.pop("causes", {"ib_link": incidents} if incidents else {})
    return NodeRecord("c", node, days, incidents, causes, 8.0, **more)  # type: ignore[arg-type]


def test_nodes_with_more_incidents_in_less_time_come_first() -> None:
    records = [
        record("good"),
        record("bad", incidents=6),
        record("new", days=1.0),
        record("worse", days=10, incidents=6),
    ]
    plan = validation_plan(records, gpu_hours_per_incident=100.0)
    order = [each.record.node for each in plan.tests]
    assert order == ["worse", "bad", "new", "good"]
    rates = {each.record.node: each.rate for each in plan.tests}
    fleet_rate = plan.rate_per_1000_node_days
    assert fleet_rate == pytest.approx(1000 * 12 / 111)
    assert (
        rates["good"].value < rates["new"].value < rates["bad"].value < rates["worse"].value < 600
    )
    assert all(rate.lower < rate.value < rate.upper for rate in rates.values())


def test_the_nodes_own_causes_choose_its_tests() -> None:
    records = [record(f"n{at}") for at in range(20)] + [
        record("cpu", incidents=8, causes={"cpu": 8}),
        record("ib", incidents=8),
    ]
    first = {
        each.record.node: each.tests[0]
        for each in validation_plan(records, gpu_hours_per_incident=100.0).tests
    }
    assert (first["cpu"], first["ib"], first["n3"]) == (
        "cpu-memory-bw-latency",
        "ib-loopback",
        "ib-loopback",
    )


def test_tests_that_cost_more_than_an_incident_are_not_planned() -> None:
    records = [record("a", incidents=1), record("b")]
    assert validation_plan(records, gpu_hours_per_incident=0.1).worthwhile == ()
    dear = validation_plan([*records, record("c", regressed=True)], gpu_hours_per_incident=0.1)
    assert [each.record.node for each in dear.worthwhile] == ["c"]
    assert len(dear.worthwhile[0].tests) == len(BENCHMARKS)


@given(st.lists(st.tuples(st.floats(0, 400), st.integers(0, 20)), min_size=1, max_size=30))
def test_any_records_have_a_plan(rows: list[tuple[float, int]]) -> None:
    records = [record(f"n{at}", days, n) for at, (days, n) in enumerate(rows)]
    plan = validation_plan(records, gpu_hours_per_incident=50.0)
    assert {each.record.node for each in plan.tests} == {each.node for each in records}
    for each in plan.tests:
        assert 0 <= each.p_incident <= 1
        stake = each.at_stake_gpu_hours
        assert 0 <= stake.lower <= stake.value <= 50


def test_without_incidents_nothing_is_worth_a_test() -> None:
    plan = validation_plan([record("a"), record("b", days=0.0)], gpu_hours_per_incident=100.0)
    assert (plan.worthwhile, plan.tests[0].p_incident, plan.tests[0].rate.upper) == ((), 0.0, None)
    with pytest.raises(OutOfRangeError, match="horizon_days"):
        validation_plan([record("a")], gpu_hours_per_incident=1.0, horizon_days=0)
