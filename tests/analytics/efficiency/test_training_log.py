"""What a training log says of each attempt, and of the habits of its run."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.efficiency.training_log import attempt_progress, run_habits
from analytics.errors import ShapeError

ZERO = pd.Timestamp("2026-01-01T00:00:00Z")
STEP_COLUMNS = [
    "attempt_key",
    "step",
    "at",
    "step_time_s",
    "checkpoint_event",
    "checkpoint_s",
    "rank",
]


def steps_of(*rows: tuple[Any, ...]) -> pd.DataFrame:
    """Rows (attempt, step, second, step time, event, seconds of the save, rank); tails may lack."""
    filled = [(*row, *(None,) * (len(STEP_COLUMNS) - len(row))) for row in rows]
    frame = pd.DataFrame(filled, columns=STEP_COLUMNS)
    at = ZERO + pd.to_timedelta(frame.pop("at").astype(float), unit="s")
    return frame.assign(cluster="c", logged_at=at)


def attempts_of(*rows: tuple[str, float, float | None], run: str | None = "r") -> pd.DataFrame:
    """Attempts (key, start, end) of one run."""
    frame = pd.DataFrame(rows, columns=["attempt_key", "start", "end"])
    times = {
        f"{name}_at": ZERO + pd.to_timedelta(frame[name].astype(float), unit="s")
        for name in ("start", "end")
    }
    return pd.DataFrame(
        {"cluster": "c", "run_id": run, "attempt_key": frame["attempt_key"], **times}
    )


def facts(steps: pd.DataFrame, attempts: pd.DataFrame) -> dict[str, tuple[float, ...]]:
    """Of each attempt start-up, time in checkpoints, unsaved work and saves."""
    found = attempt_progress(steps, attempts).set_index("attempt_key")
    return {
        str(key): tuple(row)
        for key, row in zip(
            found.index,
            found[["startup_s", "checkpoint_s", "unsaved_s", "n_saves"]].to_numpy().tolist(),
            strict=True,
        )
    }


def training(
    where: tuple[str, float, int],
    *,
    n: int,
    save_every: int,
    write_s: float = 30.0,
    log_every: int = 1,
    load: bool = False,
) -> list[tuple[Any, ...]]:
    """Rows of n steps of an attempt from a second and a step on, a save after every so many steps."""
    key, begin, first = where
    step_s = 10.0
    rows: list[tuple[Any, ...]] = [(key, first, begin, None, "loaded")] if load else []
    at = begin
    for step in range(first + 1, first + n + 1):
        at += step_s
        if step % log_every == 0:
            rows.append((key, step, at, step_s))
        if step % save_every == 0:
            at += write_s
            rows.append((key, step, at, None, "saved", write_s))
    return rows  # fmt: skip


def test_start_up_saves_and_unsaved_work_of_a_plain_log() -> None:
    rows = training(("a", 200, 0), n=25, save_every=10)
    found = facts(steps_of(*rows), attempts_of(("a", 0, 517)))
    assert found == {"a": (200, 60, 517 - (200 + 200 + 60), 2)}


def test_a_restart_counts_from_its_load_and_its_unsaved_work_from_its_last_save() -> None:
    first = training(("a", 100, 0), n=25, save_every=10)
    second = training(("b", 1150, 20), n=13, save_every=10, load=True)
    attempts = attempts_of(("a", 0, 420), ("b", 1000, 1320))
    found = facts(steps_of(*first, *second), attempts)
    assert found == {"a": (100, 60, 60, 2), "b": (150, 30, 1320 - 1280, 1)}


def test_without_a_load_the_first_steps_lead_back_to_the_last_save() -> None:
    rows = [
        *training(("a", 100, 0), n=24, save_every=10, log_every=4),
        *training(("b", 1150, 20), n=13, save_every=10, log_every=4),
    ]
    found = facts(steps_of(*rows), attempts_of(("a", 0, 420), ("b", 1000, 1320)))
    assert (found["a"][0], found["b"][0]) == (100, 150)


def test_a_load_that_ends_before_the_first_step_began_is_not_the_end_of_start_up() -> None:
    rows = [("a", 50, 60, None, "loaded"), ("a", 52, 300, 10.0), ("a", 54, 320, 10.0)]
    assert facts(steps_of(*rows), attempts_of(("a", 0, 400)))["a"][0] == 280


def test_an_attempt_that_saved_nothing_loses_all_its_work() -> None:
    rows = [
        *training(("a", 100, 0), n=20, save_every=10),
        *training(("b", 1100, 20), n=5, save_every=10),
    ]
    found = facts(steps_of(*rows), attempts_of(("a", 0, 360), ("b", 1000, 1155)))
    assert found["b"] == (100, 0, 55, 0)


def test_a_run_that_logs_no_save_has_a_start_up_and_nothing_else() -> None:
    rows = training(("a", 100, 0), n=20, save_every=1000)
    startup, checkpoint, unsaved, n_saves = facts(steps_of(*rows), attempts_of(("a", 0, 300)))["a"]
    assert (startup, n_saves) == (100, 0)
    assert np.isnan([checkpoint, unsaved]).all()


def test_a_save_without_a_time_stops_the_run_for_what_steps_do_not_explain() -> None:
    rows = [row[:5] for row in training(("a", 100, 0), n=35, save_every=10)]
    assert facts(steps_of(*rows), attempts_of(("a", 0, 560)))["a"] == (100, 90, 20 + 50 - 0, 3)


def test_the_pace_of_the_rows_stands_for_step_times_that_are_missing() -> None:
    rows = [(*row[:3], None, *row[4:]) for row in training(("a", 100, 0), n=25, save_every=10)]
    assert facts(steps_of(*rows), attempts_of(("a", 0, 420)))["a"] == (100, 60, 60, 2)


def test_a_write_cut_off_by_the_end_is_no_lost_work_where_saves_come_regularly() -> None:
    rows = training(("a", 0, 0), n=39, save_every=10)  # saves at 130, 260, 390; the next at 490
    rows.append(("a", 40, 490, 10.0))
    assert facts(steps_of(*rows), attempts_of(("a", 0, 505)))["a"] == (0, 90 + 15, 100, 3)
    late = facts(steps_of(*rows), attempts_of(("a", 0, 560)))["a"]
    assert late == (0, 90, 170, 3), "no write of this run took 70 s"


def test_a_log_that_ends_hours_before_its_attempt_says_nothing_of_unsaved_work() -> None:
    rows = training(("a", 100, 0), n=25, save_every=10)
    found = attempt_progress(steps_of(*rows), attempts_of(("a", 0, 20_000)))
    assert found["unsaved_s"].isna().all()
    assert found["silent_s"].tolist() == [20_000 - rows[-1][2]]
    hung = attempt_progress(steps_of(*rows), attempts_of(("a", 0, 2_000)))
    assert hung["unsaved_s"].tolist() == [2_000 - 360]


def test_an_attempt_without_rows_never_reached_a_step_where_it_was_as_short() -> None:
    rows = training(("a", 100, 0), n=20, save_every=10)
    attempts = attempts_of(("a", 0, 400), ("b", 500, 580), ("c", 1000, 9000), ("d", 9500, None))
    found = attempt_progress(steps_of(*rows), attempts)
    assert found["attempt_key"].tolist() == ["a", "b"]
    assert found["startup_s"].tolist() == [100, 80]
    assert run_habits(found)["n_restarts"].tolist() == [1]


def test_of_many_ranks_one_tells_the_steps_and_one_the_saves() -> None:
    rows = training(("a", 100, 0), n=25, save_every=10)
    steps = [(*row, *(None,) * (6 - len(row)), 7) for row in rows if len(row) == 4]
    saves = [(*row, 0) for row in rows if len(row) == 6]
    some = [(*row, *(None,) * (6 - len(row)), 0) for row in rows[:2]]
    every = [(*row[:6], rank) for row in steps for rank in (7, 8)]
    found = facts(steps_of(*every, *saves, *some), attempts_of(("a", 0, 420)))
    assert found == {"a": (100, 60, 60, 2)}


def test_a_running_attempt_ends_with_its_last_row() -> None:
    rows = training(("a", 100, 0), n=25, save_every=10)
    assert facts(steps_of(*rows), attempts_of(("a", 0, None))) == {"a": (100, 60, 50, 2)}


def test_a_counter_that_starts_again_at_0_does_not_lead_back_to_the_save_before() -> None:
    rows = [
        *training(("a", 100, 0), n=25, save_every=10),
        *training(("b", 1100, 0), n=5, save_every=10),
    ]
    assert facts(steps_of(*rows), attempts_of(("a", 0, 420), ("b", 1000, 1160)))["b"][0] == 100


def test_rows_before_the_start_and_after_the_end_give_no_negative_time() -> None:
    rows = training(("a", -5, 0), n=20, save_every=10)
    startup, checkpoint, unsaved, _ = facts(steps_of(*rows), attempts_of(("a", 0, 250)))["a"]
    assert (startup, checkpoint, unsaved) == (0, 60, 0)


def test_a_save_before_the_first_step_is_a_part_of_the_start_up() -> None:
    rows = [("a", 0, 90.0, None, "saved", 40.0), *training(("a", 100, 0), n=25, save_every=10)]
    assert facts(steps_of(*rows), attempts_of(("a", 0, 420)))["a"] == (100, 60, 60, 2)
    short = [("b", 20, 1090.0, None, "saved", 40.0), *training(("b", 1100, 20), n=4, save_every=10)]
    found = facts(steps_of(*rows, *short), attempts_of(("a", 0, 420), ("b", 1000, 1150)))
    assert found["b"] == (100, 0, 50, 0)


def test_saves_alone_tell_unsaved_work_but_no_start_up() -> None:
    rows = [row for row in training(("a", 100, 0), n=25, save_every=10) if len(row) == 6]
    startup, checkpoint, unsaved, _ = facts(steps_of(*rows), attempts_of(("a", 0, 420)))["a"]
    assert np.isnan(startup)
    assert (checkpoint, unsaved) == (60, 60)


def test_habits_are_means_over_all_attempts_of_a_run() -> None:
    rows = [
        *training(("a", 100, 0), n=45, save_every=20, write_s=30),
        *training(("b", 1150, 40), n=45, save_every=20, write_s=50, load=True),
    ]
    progress = attempt_progress(steps_of(*rows), attempts_of(("a", 0, 650), ("b", 1000, 1800)))
    (habit,) = run_habits(progress).to_dict("records")
    assert habit["checkpoint_interval_s"] == 200
    assert (habit["n_intervals"], habit["sd_interval_s"]) == (4, 0)
    assert (habit["checkpoint_write_s"], habit["n_writes"]) == (40, 4)
    assert habit["sd_write_s"] == pytest.approx(np.std([30, 30, 50, 50], ddof=1))
    assert (habit["restart_s"], habit["n_restarts"]) == (125, 2)


def test_nothing_in_gives_nothing_out_with_all_columns() -> None:
    progress = attempt_progress(steps_of(), attempts_of())
    assert progress.empty
    assert {"startup_s", "checkpoint_s", "unsaved_s", "n_saves"} <= set(progress.columns)
    assert run_habits(progress).empty
    assert "checkpoint_interval_s" in run_habits(progress).columns


def test_a_missing_column_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"steps must have the columns .* none named rank"):
        attempt_progress(steps_of().drop(columns="rank"), attempts_of())


@settings(deadline=None)
@given(
    st.integers(1, 60), st.integers(2, 25), st.sampled_from([1, 2, 5]), st.integers(0, 900),
    st.floats(0, 400), st.randoms(use_true_random=False),
)  # fmt: skip
def test_parts_never_exceed_the_running_time_and_the_order_of_rows_is_irrelevant(
    n: int, save_every: int, log_every: int, begin: int, tail: float, chance: random.Random
) -> None:
    rows = training(("a", begin, 0), n=n, save_every=save_every, log_every=log_every)
    ran = max((row[2] for row in rows), default=begin) + tail
    rows += [("a", 0, float(begin), None, "loaded")]
    shuffled = list(rows)
    chance.shuffle(shuffled)
    attempts = attempts_of(("a", 0, ran))
    found = attempt_progress(steps_of(*rows), attempts)
    pd.testing.assert_frame_equal(found, attempt_progress(steps_of(*shuffled), attempts))
    parts = found[["startup_s", "checkpoint_s", "unsaved_s"]].fillna(0).to_numpy()
    assert (parts >= 0).all()
    assert parts.sum() <= ran + 1e-6
    assert found["startup_s"].item() == pytest.approx(begin)


@settings(max_examples=10, deadline=None)
@given(st.integers(-10_000, 10_000))
def test_another_clock_for_all_changes_nothing(shift: int) -> None:
    rows = [
        *training(("a", 100, 0), n=25, save_every=10),
        *training(("b", 1150, 20), n=13, save_every=10),
    ]
    moved = [(key, step, at + shift, *rest) for key, step, at, *rest in rows]
    one = attempt_progress(steps_of(*rows), attempts_of(("a", 0, 420), ("b", 1000, 1320)))
    other = attempt_progress(
        steps_of(*moved), attempts_of(("a", shift, 420 + shift), ("b", 1000 + shift, 1320 + shift))
    )
    pd.testing.assert_frame_equal(one, other)
