"""Running time of attempts by part: against a clock that ticks second by second."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.efficiency.attempt_time import PARTS, attempt_time
from analytics.efficiency.habits import OBSERVED, SEVERAL_NODES, Habit, Habits, habits

HOURLY = Habit(interval_s=3600, write_s=60, restart_s=300)


def exactly(habit: Habit, *, cycle_spread: float | None = None) -> Habits:
    return Habits(habit, (habit,) * 4, "configured", 0, cycle_spread)


def ticked(ran_s: int, habit: Habit) -> dict[str, int]:
    """Parts of an attempt interrupted at its end, by counting each second."""
    parts = {"startup": 0, "checkpoint": 0, "worked": 0, "unsaved": 0}
    worked = wrote = 0
    for second in range(ran_s):
        if second < habit.restart_s:
            parts["startup"] += 1
        elif worked < habit.interval_s:
            worked += 1
            parts["worked"] += 1
        else:
            wrote += 1
            parts["checkpoint"] += 1
        if worked == habit.interval_s and wrote == habit.write_s:
            worked = wrote = 0
    parts["unsaved"] = worked
    return parts


@settings(deadline=None)
@given(
    ran_s=st.integers(0, 3000),
    interval_s=st.integers(1, 700),
    write_s=st.integers(0, 90),
    restart_s=st.integers(0, 400),
)
def test_parts_are_those_of_a_clock_that_ticks(
    ran_s: int, interval_s: int, write_s: int, restart_s: int
) -> None:
    habit = Habit(interval_s, write_s, restart_s)
    wanted = ticked(ran_s, habit)
    found = attempt_time(np.array([ran_s]), np.array([True]), exactly(habit, cycle_spread=0.0))
    assert found.value["startup"][0] == wanted["startup"]
    assert found.value["checkpoint"][0] == wanted["checkpoint"]
    assert found.value["lost"][0] == wanted["unsaved"]
    assert found.value["productive"][0] == wanted["worked"] - wanted["unsaved"]


@settings(deadline=None)
@given(
    ran=st.lists(st.integers(0, 10**6), min_size=1, max_size=20),
    low=st.integers(1, 4000), high=st.integers(4000, 20_000),
    write=st.integers(0, 600), restart=st.integers(0, 2000), spread=st.none() | st.floats(0, 1),
)  # fmt: skip
def test_parts_sum_to_the_running_time_and_lie_within_their_bounds(
    ran: list[int], low: int, high: int, write: int, restart: int, spread: float | None
) -> None:
    central = Habit((low + high) // 2, write // 2, restart // 2)
    corners = tuple(
        Habit(interval, cost, start)
        for cost, start in ((0, 0), (write, restart))
        for interval in (low, high)
    )
    known = Habits(central, corners, "assumed", 0, spread)
    ran_s = np.array(ran)
    interrupted = np.arange(len(ran)) % 2 == 0
    found = attempt_time(ran_s, interrupted, known)
    assert (sum(found.value[part] for part in PARTS) == ran_s).all()
    for part in PARTS:
        assert (found.lower[part] >= 0).all()
        assert (found.lower[part] <= found.value[part]).all()
        assert (found.value[part] <= found.upper[part]).all()
        assert (found.upper[part] <= ran_s).all()
    assert not found.value["lost"][~interrupted].any()
    assert not found.variance_s2[~interrupted].any()


def test_mean_and_variance_of_lost_work_are_those_of_a_uniform_phase() -> None:
    phases = np.arange(3660)
    unsaved = np.minimum(phases, 3600)
    found = attempt_time(np.array([100_000]), np.array([True]), exactly(HOURLY))
    assert found.value["lost"][0] == pytest.approx(unsaved.mean(), abs=1)
    assert found.variance_s2[0] == pytest.approx(unsaved.var(), rel=1e-3)


def test_an_attempt_that_saved_nothing_loses_all_it_worked() -> None:
    found = attempt_time(np.array([200, 300, 2000]), np.array([True] * 3), exactly(HOURLY))
    assert found.value["lost"].tolist() == [0, 0, 1700]
    assert found.variance_s2.tolist() == [0, 0, 0]


def test_the_phase_counts_while_the_spread_between_runs_leaves_it_known() -> None:
    sure = attempt_time(
        np.array([300 + 3660 + 3500]), np.array([True]), exactly(HOURLY, cycle_spread=0.001)
    )
    assert sure.value["lost"][0] == 3500
    unsure = attempt_time(
        np.array([300 + 3660 + 3500]), np.array([True]), exactly(HOURLY, cycle_spread=0.5)
    )
    assert unsure.value["lost"][0] == 1830
    late = 300 + 400 * 3660 + 3500
    drifted = attempt_time(np.array([late]), np.array([True]), exactly(HOURLY, cycle_spread=0.001))
    assert drifted.value["lost"][0] == 1830


def test_own_training_metrics_take_the_place_of_the_habit() -> None:
    shown = {
        "startup_s": np.array([100.0, np.nan]),
        "checkpoint_s": np.array([50.0, np.nan]),
        "unsaved_s": np.array([70.0, np.nan]),
    }
    wide = Habits(HOURLY, (Habit(900, 0, 0), Habit(14_400, 300, 1200)) * 2, "assumed", 0, None)
    found = attempt_time(np.array([10_000, 10_000]), np.array([True, True]), wide, shown)
    for part, seconds in (("startup", 100), ("checkpoint", 50), ("lost", 70), ("productive", 9780)):
        assert (found.lower[part][0], found.value[part][0], found.upper[part][0]) == (seconds,) * 3
    assert found.variance_s2[0] == 0
    assert found.lower["lost"][1] < found.value["lost"][1] < found.upper["lost"][1]


def test_what_stragglers_waste_is_taken_from_productive_time_alone() -> None:
    found = attempt_time(
        np.array([10_000]), np.array([True]), exactly(HOURLY), wasted_ratio=np.array([0.25])
    )
    kept = 10_000 - 300 - 120 - 1830
    assert found.value["straggler"][0] == round(kept / 4)
    assert found.value["productive"][0] == kept - round(kept / 4)


def observed_habits(n: int, *, seed: int = 0) -> Habits:
    """What n runs that differ show."""
    rng = np.random.default_rng(seed)
    columns = {"checkpoint_interval_s": 7.5, "checkpoint_write_s": 4.0, "restart_s": 6.0}
    shown = pd.DataFrame({name: rng.lognormal(at, 0.5, n) for name, at in columns.items()})
    others = dict.fromkeys(set(OBSERVED) - set(columns), 5.0) | {"n_gpus": 64}
    return habits(shown.assign(**others), stated={}, assumed=SEVERAL_NODES)


def test_parts_are_means_over_the_habits_of_a_further_run() -> None:
    """A further run has the habit of one of the runs observed, any of them alike."""
    known = observed_habits(200)
    size = np.array([64])
    found = attempt_time(np.array([2_000_000]), np.array([True]), known, n_gpus=size)
    interval, write, restart = (
        known.models[name].nodes(size)[:, 0] for name in ("interval_s", "write_s", "restart_s")
    )
    by_interval = 2_000_000 / (interval + write.mean())
    wanted = {
        "startup": (restart, 1.0),
        "checkpoint": (by_interval * write.mean(), write.std() / write.mean()),
        "lost": ((interval**2 / 2 + interval * write.mean()) / (interval + write.mean()), 1.0),
    }
    for part, (seconds, of_write) in wanted.items():
        assert found.value[part][0] == pytest.approx(seconds.mean(), rel=0.02), part
        variance = seconds.var() + (seconds.mean() * of_write) ** 2 * (part == "checkpoint")
        assert found.own[part][0] == pytest.approx(variance**0.5, rel=0.1), part
        assert found.shared[part][0] == pytest.approx(variance**0.5 / 200**0.5, rel=0.15), part
        assert found.lower[part][0] == found.value[part][0] == found.upper[part][0]


def test_what_an_attempts_own_metrics_show_has_no_spread_of_a_habit() -> None:
    known, size = observed_habits(3), np.array([64, 64])
    shown = {name: np.array([seconds, np.nan]) for name, seconds in
             (("startup_s", 100.0), ("checkpoint_s", 50.0), ("unsaved_s", 900.0))}  # fmt: skip
    found = attempt_time(np.full(2, 50_000), np.full(2, True), known, shown, n_gpus=size)
    for part in PARTS:
        if part != "straggler":
            assert found.own[part][0] == found.shared[part][0] == 0, part
            assert found.own[part][1] > 0, part


def test_what_no_run_shows_stays_an_assumption_beside_what_runs_show() -> None:
    shown = pd.DataFrame({name: [np.nan] * 3 for name in OBSERVED}).assign(
        n_gpus=64, restart_s=[200.0, 400.0, 300.0], n_restarts=4, sd_restart_s=20.0
    )
    known = habits(shown, stated={}, assumed=SEVERAL_NODES)
    found = attempt_time(np.array([50_000]), np.array([True]), known, n_gpus=np.array([64]))
    assert found.lower["startup"][0] == found.value["startup"][0] == found.upper["startup"][0]
    assert found.own["startup"][0] > 0
    assert found.lower["lost"][0] < found.value["lost"][0] < found.upper["lost"][0]


def test_sizes_are_asked_for_where_habits_have_models() -> None:
    with pytest.raises(ValueError, match="n_gpus"):
        attempt_time(np.array([10]), np.array([True]), observed_habits(3))
