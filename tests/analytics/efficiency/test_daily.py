"""Running time of attempts, day by day."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.efficiency.attempt_days import Held, daily_rows, own_of_run
from analytics.efficiency.attempt_time import attempt_time
from analytics.efficiency.habits import OBSERVED, SEVERAL_NODES, Habit, Habits, habits

DAY = 86_400
HABIT = Habit(3600, 60, 300)
KNOWN = Habits(
    HABIT,
    (Habit(900, 0, 0), Habit(7200, 0, 0), Habit(900, 99, 900), Habit(7200, 99, 900)),
    "assumed",
    0,
    None,
)


def held(*attempts: tuple[int, int, int, int, int], since: int = 0) -> Held:
    """Attempts as (start, running time, GPUs, group, loss)."""
    start, ran, gpus, group, loss = np.array(attempts, dtype=np.int64).reshape(-1, 5).T
    return Held(start, ran, gpus, group, loss, np.full(len(start), since))


attempts = st.lists(
    st.tuples(
        st.integers(0, 5 * DAY), st.integers(0, 3 * DAY), st.integers(1, 64), st.integers(0, 2),
        st.integers(-1, 1),
    ),
    max_size=12,
)  # fmt: skip


@settings(deadline=None)
@given(attempts)
def test_days_sum_to_the_attempts_to_the_second(rows: list[tuple[int, int, int, int, int]]) -> None:
    found = held(*rows)
    time = attempt_time(found.ran_s, found.loss >= 0, KNOWN)
    daily = daily_rows(found, time)
    for part in ("productive", "checkpoint", "startup", "lost"):
        in_days = daily.loc[daily["part"].eq(part), "gpu_seconds"].sum()
        assert in_days == (time.value[part] * found.n_gpus).sum()
        for side, bound in (("lower", time.lower), ("upper", time.upper)):
            of_part = daily.loc[daily["part"].eq(part), f"{side}_gpu_seconds"].sum()
            struck = found.loss >= 0 if part == "lost" else True
            assert of_part == (bound[part] * found.n_gpus * struck).sum()
    assert daily["gpu_seconds"].ge(0).all()
    lost = daily[daily["part"].eq("lost")]
    assert lost["n_attempts"].sum() == (found.loss >= 0).sum()
    assert lost["rule_gpu_seconds"].notna().all()
    assert daily.loc[~daily["part"].eq("lost"), "rule_gpu_seconds"].isna().all()


@settings(deadline=None)
@given(attempts, st.permutations(range(12)))
def test_the_order_of_attempts_does_not_matter(
    rows: list[tuple[int, int, int, int, int]], order: list[int]
) -> None:
    again = [rows[i] for i in order if i < len(rows)]
    tables = []
    for each in (rows, again):
        found = held(*each)
        table = daily_rows(found, attempt_time(found.ran_s, found.loss >= 0, KNOWN))
        keys = ["group", "day", "loss", "part"]
        tables.append(table.sort_values(keys).reset_index(drop=True)[[*keys, "gpu_seconds"]])
    assert tables[0].equals(tables[1])


def test_start_up_is_at_the_start_and_lost_work_at_the_end() -> None:
    found = held((DAY - 100, 4 * 3600, 8, 0, 0))
    daily = daily_rows(found, attempt_time(found.ran_s, np.array([True]), KNOWN))
    at = daily.set_index(["part", "day"])["gpu_seconds"]
    assert at["startup", 0] == 100 * 8
    assert at["startup", 1] == 200 * 8
    assert ("lost", 0) not in at.index or at["lost", 0] == 0
    assert at["lost", 1] == 1830 * 8


def test_time_before_the_records_are_complete_is_left_out() -> None:
    found = held((0, 10_000, 8, 0, -1), since=4000)
    daily = daily_rows(found, attempt_time(found.ran_s, np.array([False]), KNOWN))
    assert daily["gpu_seconds"].sum() == 6000 * 8


def test_the_paper_counts_half_an_hour_at_most() -> None:
    found = held((0, 1000, 8, 0, 0), (0, 9000, 4, 0, 0))
    daily = daily_rows(found, attempt_time(found.ran_s, np.array([True, True]), KNOWN))
    assert daily["rule_gpu_seconds"].sum() == 1000 * 8 + 1800 * 4


def test_bounds_of_a_loss_lie_on_the_day_on_which_it_was_lost() -> None:
    """Two thousand seconds lost at the end of three days are bounded there, not on all days."""
    found = held((100, 2 * DAY + 50_000, 8, 0, 0))
    narrow = Habits(HABIT, (Habit(3400, 60, 300), Habit(3800, 60, 300)) * 2, "configured", 0, None)
    time = attempt_time(found.ran_s, np.array([True]), narrow)
    lost = daily_rows(found, time).query("part == 'lost'").set_index("day")
    names = ["lower_gpu_seconds", "gpu_seconds", "upper_gpu_seconds"]
    whole = [int(of["lost"][0]) * 8 for of in (time.lower, time.value, time.upper)]
    assert lost.loc[2, names].tolist() == lost[names].sum().tolist() == whole
    assert whole[2] - whole[0] < 0.15 * whole[1]


def test_the_variance_of_a_run_by_its_habit_adds_up_over_its_days_and_attempts() -> None:
    rng = np.random.default_rng(0)
    shown = pd.DataFrame({name: rng.lognormal(7, 0.5, 9) for name in OBSERVED[1:4]}).assign(
        n_gpus=64, **dict.fromkeys(OBSERVED[4:], 5.0)
    )
    known = habits(shown, stated={}, assumed=SEVERAL_NODES)
    found = held((0, 2 * DAY, 64, 0, 0), (3 * DAY, 5000, 64, 0, 1), (4 * DAY, DAY, 64, 0, -1))
    time = attempt_time(found.ran_s, found.loss >= 0, known, n_gpus=found.n_gpus)
    runs = np.array([7, 7, 8])
    daily = daily_rows(found, time, own_of_run(runs, found.loss, found.n_gpus, time))
    sums = daily.groupby("part")[["habit_gpu_s2", "shared_gpu_seconds"]].sum()
    own = time.own["startup"] * 64
    wanted = (own[0] + own[1]) ** 2 + own[2] ** 2
    assert sums.loc["startup", "habit_gpu_s2"] == pytest.approx(wanted)
    lost = time.own["lost"] * 64  # to two buckets: each adds up by itself
    assert sums.loc["lost", "habit_gpu_s2"] == pytest.approx(lost[0] ** 2 + lost[1] ** 2)
    shared = (time.shared["checkpoint"] * 64).sum()
    assert sums.loc["checkpoint", "shared_gpu_seconds"] == pytest.approx(shared)


def test_variance_grows_with_the_square_of_gpus() -> None:
    one, two = held((0, 50_000, 8, 0, 0)), held((0, 50_000, 16, 0, 0))
    sums = [
        daily_rows(each, attempt_time(each.ran_s, np.array([True]), KNOWN))
        .query("part == 'lost'")["variance_gpu_s2"].sum()
        for each in (one, two)
    ]  # fmt: skip
    assert sums[1] == pytest.approx(4 * sums[0])
