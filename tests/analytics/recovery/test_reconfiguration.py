"""Unicron's dynamic program beside every assignment of GPUs to jobs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from analytics.errors import OutOfRangeError
from analytics.failures.taxonomy import taxonomy
from analytics.recovery.reconfiguration import SEVERITIES, Task, action, if_hit, reconfigured


def _value(tasks: list[Task], sizes: tuple[int, ...], hours: tuple[float, float],
           faulted: str | None) -> float:  # fmt: skip
    running, transition = hours
    total = 0.0
    for task, size in zip(tasks, sizes, strict=True):
        now = task.weight * (task.gpus if task.flops is None else task.flops)
        used = min(size, task.most_gpus or task.gpus)
        after = now * (used / task.gpus) ** task.scaling if size >= task.least_gpus else 0.0
        before = now if task.gpus >= task.least_gpus else 0.0
        changed = size != task.gpus or task.job == faulted
        total += after * running - changed * before * transition
    return total


@pytest.mark.parametrize("seed", range(200))
def test_the_plan_is_the_best_of_all_assignments(seed: int) -> None:
    chance = np.random.default_rng(seed)
    tasks = []
    for place in range(int(chance.integers(1, 4))):
        gpus = int(chance.integers(1, 7))
        tasks.append(
            Task(
                f"job{place}", gpus, int(chance.integers(1, gpus + 1)),
                weight=float(chance.uniform(0.1, 3)), flops=float(chance.uniform(1, 9)),
                scaling=float(chance.uniform(0.6, 1.1)),
                most_gpus=int(chance.choice([gpus, gpus + 2])),
            )
        )  # fmt: skip
    left = int(chance.integers(0, sum(task.gpus for task in tasks) + 3))
    hours = (float(chance.uniform(0, 10)), float(chance.uniform(0, 2)))
    faulted = str(chance.choice([*(task.job for task in tasks), ""])) or None
    found = reconfigured(
        tasks, left, running_hours=hours[0], transition_hours=hours[1], faulted=faulted
    )
    best = max(
        _value(tasks, sizes, hours, faulted)
        for sizes in product(range(left + 1), repeat=len(tasks))
        if sum(sizes) <= left
    )
    assert found.value == pytest.approx(best)
    assert _value(tasks, found.gpus, hours, faulted) == pytest.approx(best)
    assert sum(found.gpus) <= left


def test_nothing_changes_where_enough_is_left() -> None:
    tasks = [Task("a", 16, 8), Task("b", 8, 8)]
    found = reconfigured(tasks, 24, running_hours=5.0, transition_hours=1.0)
    assert found.gpus == (16, 8)
    assert found.gives == ()
    assert found.weighted_flops == 24.0


def test_the_job_that_cannot_shrink_keeps_its_nodes_and_another_gives_them() -> None:
    tasks = [Task("rigid", 64, 64, weight=2.0), Task("elastic", 64, 32)]
    hits = if_hit(tasks, lost_gpus=8, rate_per_gpu_hour=1e-4, transition_hours=0.25)
    plan = next(hit.plan for hit in hits if hit.job == "rigid")
    assert plan.gives == (("elastic", 8),)
    assert sum(hit.chance for hit in hits) == pytest.approx(1.0)
    assert hits[0].cost_hours >= hits[1].cost_hours > 0
    spared = if_hit(tasks, lost_gpus=8, idle_gpus=8, rate_per_gpu_hour=1e-4, transition_hours=0.25)
    assert all(not hit.plan.gives for hit in spared)


def test_jobs_that_are_alike_have_the_same_plan_with_their_own_name() -> None:
    tasks = [Task("a", 16, 8), Task("b", 16, 8), Task("c", 32, 32, weight=3.0)]
    hits = {
        hit.job: hit
        for hit in if_hit(tasks, lost_gpus=8, rate_per_gpu_hour=1e-3, transition_hours=0.5)
    }
    assert hits["a"].cost_hours == pytest.approx(hits["b"].cost_hours)
    for job in ("a", "b"):
        alone = reconfigured(tasks, 56, running_hours=1 / 0.056, transition_hours=0.5, faulted=job)
        assert hits[job].plan.value == pytest.approx(alone.value)
        assert hits[job].plan.gives == ((job, 8),)


def test_severities_are_of_causes_that_exist() -> None:
    assert set(SEVERITIES) <= set(taxonomy().causes)
    assert action("illegal_memory_access") == (2, "restart the process in place")
    assert action("ib_link") == (3, "reattempt in place")
    assert action("name_error") is None


def test_large_fleets_are_planned_in_units_of_nodes() -> None:
    tasks = [Task(f"job{place}", 1024, 512) for place in range(12)]
    found = reconfigured(tasks, 12 * 1024 - 8, running_hours=3.0, transition_hours=0.2)
    assert sum(found.gpus) == 12 * 1024 - 8


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(OutOfRangeError, match="one of the jobs"):
        reconfigured([Task("a", 8, 8)], 8, running_hours=1, transition_hours=1, faulted="b")
    with pytest.raises(OutOfRangeError, match="gpus of a"):
        Task("a", 0, 1)
    with pytest.raises(OutOfRangeError, match="plan jobs of more GPUs"):
        reconfigured([Task("a", 99_991, 7)], 99_990, running_hours=1, transition_hours=1)
    alone = {"lost_gpus": 8, "rate_per_gpu_hour": 1e-5, "transition_hours": 0.1}
    with pytest.raises(OutOfRangeError, match="lost_gpus"):
        if_hit([Task("a", 8, 8)], **alone)  # type: ignore[arg-type]
    (hit,) = if_hit([Task("a", 8, 8)], **alone, repair_hours=5.0)  # type: ignore[arg-type]
    assert hit.plan.gpus == (0,)
    assert hit.cost_hours == pytest.approx(5.1)
