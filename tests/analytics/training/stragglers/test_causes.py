"""Causes that are planted are named, and nothing else is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analytics.training.stragglers.analysis import analyse_trace, analysis_record
from analytics.training.stragglers.causes import LEAST_GAIN
from analytics.training.stragglers.compute_causes import correlations, take_apart
from analytics.training.stragglers.slowdown import slowdowns
from analytics.training.stragglers.step_model import StepModel
from data.synthetic.trace_schedule import TraceCosts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from analytics.training.stragglers.causes import StragglerCause

STEPS = tuple(range(10, 22))
DP, PP, MICRO_BATCHES = 4, 3, 6
FORWARD_S, BACKWARD_S = 0.1, 0.2
STEP_S = (FORWARD_S + BACKWARD_S) * (MICRO_BATCHES + PP - 1)


class Plant:
    """Costs of a healthy job, to be spoilt."""

    def __init__(self, *, dp: int = DP, pp: int = PP, noise: float = 0.02, seed: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.sizes = {"dp": dp, "pp": pp, "micro_batches": MICRO_BATCHES, "steps": STEPS}
        computes, self.workers = (len(STEPS), dp, pp, 1, MICRO_BATCHES), (len(STEPS), dp, pp)
        self.forward = FORWARD_S * self.rng.lognormal(0, noise, computes)
        self.backward = BACKWARD_S * self.rng.lognormal(0, noise, computes)
        self.other = {
            "forward_p2p": self.around(0.002),
            "backward_p2p": self.around(0.002),
            "all_gather": self.around(0.01 * STEP_S),
            "reduce_scatter": self.around(0.02 * STEP_S),
            "optimizer": self.around(0.01 * STEP_S),
            "launch": np.zeros(self.workers[:2]),
            "pause": np.zeros(self.workers),
        }

    def around(self, seconds: float) -> np.ndarray:
        return seconds * self.rng.lognormal(0, 0.05, self.workers)

    def slow(self, factor: float, *at: Any) -> None:
        self.forward[at] *= factor
        self.backward[at] *= factor

    def work(self, spread: float) -> None:
        size = (len(STEPS), self.workers[1], 1, 1, MICRO_BATCHES)
        self.slow(self.rng.lognormal(0, spread, size))

    def costs(self) -> TraceCosts:
        return TraceCosts(forward=self.forward, backward=self.backward, **self.other)


@pytest.fixture(scope="session")
def named(trace_of: Callable[..., Any]) -> Callable[[Plant], tuple[StragglerCause, ...]]:
    return lambda plant: analyse_trace(StepModel.of(trace_of(plant.costs(), **plant.sizes))).causes


def at(target: Mapping[str, Any] | None, *keys: str) -> tuple[Any, ...]:
    assert target is not None
    return tuple(target[key] for key in keys)


def test_the_public_traces_have_the_causes_that_their_authors_found(public_trace) -> None:
    found = {
        name: analyse_trace(StepModel.of(public_trace(name))).causes for name in ("AR", "SE", "ST")
    }
    assert [one.cause for one in found["AR"]] == ["worker"]
    assert at(found["AR"][0].target, "dp_rank", "stage", "rank") == (0, 0, 0)
    assert [one.cause for one in found["SE"]] == ["sequence_length", "stage"]
    assert at(found["SE"][1].target, "stage") == (1,)
    assert found["SE"][0].evidence["correlation_raw"] == pytest.approx(0.993, abs=0.001)
    assert [one.cause for one in found["ST"]] == ["stage"]
    assert at(found["ST"][0].target, "stage") == (3,)


@pytest.mark.parametrize("seed", range(4))
def test_a_healthy_job_has_no_cause(named, seed: int) -> None:
    noise = (0.0, 0.01, 0.03, 0.05)[seed]
    (found,) = named(Plant(noise=noise, seed=seed))
    assert (found.cause, found.target, found.gain_ratio) == ("none", None, 0.0)
    assert found.evidence["straggles"] is False


@pytest.mark.parametrize(("dp", "pp"), [(2, 1), (2, 2), (2, 4), (8, 1), (5, 3)])
def test_a_slow_worker_is_named_by_rank_and_stage(named, dp: int, pp: int) -> None:
    plant = Plant(dp=dp, pp=pp)
    plant.slow(1.3, slice(None), dp - 1, pp - 1)
    (found,) = named(plant)
    assert found.cause == "worker"
    assert at(found.target, "dp_rank", "stage", "rank") == (dp - 1, pp - 1, dp * pp - 1)
    assert found.evidence["time_over_peers_ratio"] == pytest.approx(1.3, abs=0.03)
    assert found.gain_ratio > 0.05


def test_a_worker_slow_from_some_step_on_is_a_slow_worker(named) -> None:
    plant = Plant()
    plant.slow(1.8, slice(7, None), 2, 1)
    (found,) = named(plant)
    assert (found.cause, *at(found.target, "dp_rank", "stage")) == ("worker", 2, 1)
    assert found.evidence["slow_steps_ratio"] == pytest.approx(5 / 12)


def test_a_data_parallel_rank_slow_on_all_stages_is_named_without_a_stage(named) -> None:
    plant = Plant()
    plant.slow(1.4, slice(None), 3)
    (found,) = named(plant)
    assert (found.cause, *at(found.target, "dp_rank", "stage", "rank")) == ("worker", 3, None, None)
    assert [one["stage"] for one in found.target["workers"]] != []


def test_workers_that_are_slow_together_are_one_cause_with_all_named(named) -> None:
    plant = Plant(dp=8)
    plant.slow(1.5, slice(None), [1, 6], 1)
    (found,) = named(plant)
    assert {one["dp_rank"] for one in found.target["workers"]} == {1, 6}
    assert found.gain_ratio > 0.1


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_a_slow_stage_is_named(named, stage: int) -> None:
    plant = Plant()
    plant.slow(1.3, slice(None), slice(None), stage)
    (found,) = named(plant)
    assert (found.cause, *at(found.target, "stage")) == ("stage", stage)
    assert found.evidence["time_over_usual_stage_ratio"] == pytest.approx(1.3, abs=0.02)


@pytest.mark.parametrize(("dp", "pp"), [(2, 1), (4, 3), (16, 2)])
def test_uneven_sequences_are_told_from_slow_workers(named, dp: int, pp: int) -> None:
    plant = Plant(dp=dp, pp=pp)
    plant.work(0.4)
    (found,) = named(plant)
    assert (found.cause, found.target) == ("sequence_length", None)
    assert found.evidence["correlation_demeaned"] > 0.95


@pytest.mark.parametrize("other", ["pauses", "a slow worker"])
@pytest.mark.parametrize("seed", range(3))
def test_levelling_sequences_gives_what_it_does_beside_another_cause(
    trace_of, other: str, seed: int
) -> None:
    plant = Plant(dp=8, pp=2, noise=0.005, seed=seed)
    size = (len(STEPS), 8, 1, 1, MICRO_BATCHES)
    work = plant.rng.lognormal(0, 0.3, size)
    factor, pause = np.ones((1, 8, 2, 1, 1)), np.zeros(plant.forward.shape)
    if other == "pauses":
        pause[plant.rng.random(pause.shape) < 0.01] = 3 * FORWARD_S
    else:
        factor[:, 5, 1] = 1.5

    def found(work: Any) -> Any:
        costs = plant.costs()
        costs = replace(
            costs,
            forward=costs.forward * factor * work + pause,
            backward=costs.backward * factor * work,
        )
        return analyse_trace(StepModel.of(trace_of(costs, **plant.sizes)))

    uneven = found(work)
    even = found(work.mean())
    original = [one.slowdowns.original_seconds.mean() for one in (even, uneven)]
    gain = 1 - original[0] / original[1]
    (sequences,) = (one for one in uneven.causes if one.cause == "sequence_length")
    assert sequences.gain_ratio == pytest.approx(gain, abs=0.006)


def test_a_rank_that_drew_short_sequences_makes_no_stage_slow(trace_of) -> None:
    steps, dp, pp = (0, 1, 2), 3, 3
    for seed in range(20):
        rng = np.random.default_rng(seed)
        forward = FORWARD_S * rng.lognormal(0, 0.3, (len(steps), dp, 1, 1, 2)).repeat(pp, axis=2)
        forward[:, 2, 0] *= 1.2
        costs = TraceCosts(forward=forward, backward=2 * forward)
        job = trace_of(costs, dp=dp, pp=pp, micro_batches=2, steps=steps)
        assert "stage" not in {one.cause for one in analyse_trace(StepModel.of(job)).causes}, seed


def test_independent_noise_is_no_uneven_sequence(named) -> None:
    plant = Plant(noise=0.15)
    assert [one.cause for one in named(plant)] == ["none"]


@pytest.mark.parametrize("pp", [1, 3])
def test_isolated_long_computes_are_pauses(named, pp: int) -> None:
    plant = Plant(pp=pp)
    for step in range(0, len(STEPS), 2):
        plant.forward[step, plant.rng.integers(DP), 0, 0, plant.rng.integers(MICRO_BATCHES)] += 0.5
    (found,) = named(plant)
    assert found.cause == "pause"
    assert found.evidence["n_pauses"] == 6
    assert found.evidence["steps_between"] == 2
    assert found.evidence["seconds_per_pause"] == pytest.approx(0.5, rel=0.05)


def test_garbage_collections_traced_as_such_are_pauses(named) -> None:
    plant = Plant()
    plant.other["pause"][::3, 1, 0] = 0.3
    (found,) = named(plant)
    assert (found.cause, found.evidence["n_pauses"], found.evidence["steps_between"]) == (
        "pause",
        4,
        3,
    )
    assert found.target["workers"][0]["dp_rank"] == 1


def test_slow_gradients_of_one_rank_name_the_rank_and_those_of_all_the_stage(named) -> None:
    plant = Plant()
    plant.other["reduce_scatter"][:, 2, 1] *= 6
    (found,) = named(plant)
    assert (found.cause, *at(found.target, "dp_rank", "stage", "rank")) == ("dp_link", 2, 1, 6)
    plant = Plant()
    plant.other["reduce_scatter"][:, :, 1] *= 6
    (found,) = named(plant)
    assert (found.cause, *at(found.target, "dp_rank", "stage")) == ("dp_link", None, 1)


@pytest.mark.parametrize("way", ["forward", "backward"])
def test_a_slow_link_between_stages_is_named_with_its_direction(named, way: str) -> None:
    plant = Plant()
    receiver = 1 if way == "forward" else 0
    plant.other[f"{way}_p2p"][:, 3, receiver] *= 30
    (found,) = named(plant)
    wanted = ("pp_link", 3, [0, 1], way, [3, 7])
    assert (found.cause, *at(found.target, "dp_rank", "stages", "direction", "ranks")) == wanted


def test_a_slow_optimizer_names_its_worker(named) -> None:
    plant = Plant()
    plant.other["optimizer"][:, 1, 2] *= 8
    (found,) = named(plant)
    assert (found.cause, *at(found.target, "dp_rank", "stage")) == ("optimizer", 1, 2)
    assert found.evidence["operation"] == "optimizer"


@pytest.mark.parametrize(
    ("slow", "dp_rank", "stage"),
    [
        ([(0, 2), (1, 2), (2, 2), (3, 2)], None, 2),
        ([(1, 0), (1, 1), (1, 2)], 1, None),
        ([(0, 2), (3, 2)], None, None),
        ([(0, 1), (3, 2)], None, None),
    ],
    ids=["a stage", "a rank", "two of a stage", "two apart"],
)
def test_slow_optimizers_name_what_they_have_in_common(named, slow, dp_rank, stage) -> None:
    plant = Plant()
    for dp, pp in slow:
        plant.other["optimizer"][:, dp, pp] *= 8
    (found,) = named(plant)
    assert (found.cause, *at(found.target, "dp_rank", "stage")) == ("optimizer", dp_rank, stage)
    assert {at(worker, "dp_rank", "stage") for worker in found.target["workers"]} == set(slow)


def test_waiting_for_data_counts_in_the_step_with_the_wait(named) -> None:
    plant = Plant(noise=0.0)
    plant.other["launch"][:] = STEP_S / 4
    (found,) = named(plant)
    assert found.cause == "data_loading"
    assert found.evidence["seconds_a_step"] == pytest.approx(STEP_S / 4, rel=0.01)
    assert found.gain_ratio == pytest.approx(0.2, abs=0.02)


def test_two_causes_are_both_named_strongest_first(named) -> None:
    plant = Plant()
    plant.work(0.4)
    plant.slow(1.15, slice(None), slice(None), 2)
    found = named(plant)
    assert [one.cause for one in found] == ["sequence_length", "stage"]
    assert found[0].gain_ratio > found[1].gain_ratio >= LEAST_GAIN


def test_of_two_equal_causes_each_is_named_though_fixing_it_alone_gives_little(named) -> None:
    plant = Plant(pp=4, noise=0.0)
    plant.slow(1.5, slice(None), slice(None), [0, 3])
    found = named(plant)
    assert {at(one.target, "stage")[0] for one in found} == {0, 3}
    assert all(one.alone_ratio > 0.02 for one in found)


def test_the_gain_of_a_worker_is_that_of_a_job_without_its_slowness(trace_of) -> None:
    plant, healthy = Plant(), Plant()
    plant.slow(1.6, slice(None), 1, 1)
    seconds = [
        slowdowns(StepModel.of(trace_of(one.costs(), **one.sizes))).original_seconds.mean()
        for one in (plant, healthy)
    ]
    (found,) = analyse_trace(StepModel.of(trace_of(plant.costs(), **plant.sizes))).causes
    assert found.gain_ratio == pytest.approx(1 - seconds[1] / seconds[0], abs=0.005)


def test_a_uniform_factor_changes_no_cause(named) -> None:
    plant = Plant()
    plant.slow(1.4, slice(None), 0, 2)
    before = named(plant)
    for costs in (plant.forward, plant.backward, *plant.other.values()):
        costs *= 3.0
    after = named(plant)
    assert [(one.cause, one.target) for one in after] == [(one.cause, one.target) for one in before]


@pytest.mark.parametrize(
    "sizes",
    [
        {"dp": 1, "pp": 1, "micro_batches": 1, "steps": (0,)},
        {"dp": 1, "pp": 3, "micro_batches": 2, "steps": (0, 1)},
        {"dp": 2, "pp": 1, "micro_batches": 1, "steps": (4,)},
        {"dp": 2, "pp": 2, "vpp": 2, "micro_batches": 2, "steps": (4,), "overlapped": True},
    ],
    ids=["one-compute", "one-rank", "one-micro-batch", "one-step"],
)
def test_the_smallest_traces_have_no_cause_where_all_is_even(trace_of, sizes) -> None:
    (found,) = analyse_trace(StepModel.of(trace_of(**sizes))).causes
    assert found.cause == "none"


def test_the_result_holds_correlations_and_goes_into_json(trace_of) -> None:
    plant = Plant()
    plant.work(0.3)
    model = StepModel.of(trace_of(plant.costs(), **plant.sizes))
    parts = take_apart(model)
    assert parts is not None
    assert correlations(model, parts)["raw"] > 0.95
    (record,) = analysis_record(analyse_trace(model))["causes"]
    assert list(record) == [
        "cause", "target", "gain_ratio", "alone_ratio", "evidence", "gain_estimate",
    ]  # fmt: skip
