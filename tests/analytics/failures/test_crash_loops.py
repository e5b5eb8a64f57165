"""A run that fails again and again is a crash loop, with what its requeues pushed aside."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analytics.errors import OutOfRangeError, ShapeError
from analytics.failures.crash_loops import CrashLoops, crash_loops, requeue_preemptions

START = pd.Timestamp("2026-01-01", tz="UTC")


def failing(*hours: float, **given: object) -> pd.DataFrame:
    at = START + pd.to_timedelta(pd.Series(hours, dtype=float), unit="h")
    table = pd.DataFrame({"failed_at": at, "start_at": at - pd.Timedelta(minutes=20)})
    base = {"cluster": "c", "job_id": "7", "state": "NODE_FAIL", "n_gpus": 8}
    keys = [f"{given.get('job_id', '7')}-{k}" for k in range(len(hours))]
    return table.assign(attempt_key=keys, **(base | given))


def aside(*hours: float, **given: object) -> pd.DataFrame:
    table = pd.DataFrame(
        {"end_at": START + pd.to_timedelta(pd.Series(hours, dtype=float), unit="h")}
    )
    names = [f"p{k}" for k in range(len(hours))]
    base = {
        "cluster": "c",
        "attempt_key": names,
        "job_id": names,
        "preempted_by": "7",
        "n_gpus": 16,
    }
    return table.assign(**(base | given))


def looped(failures: pd.DataFrame) -> CrashLoops:
    return crash_loops(failures, min_failures=3, within_hours=24)


def test_three_failures_within_a_day_are_a_loop_and_two_are_not() -> None:
    assert looped(failing(1, 12, 24.9)).number.tolist() == [0, 0, 0]
    assert looped(failing(1, 12)).number.tolist() == [-1, -1]
    assert looped(failing(1, 12, 25.1)).number.tolist() == [-1, -1, -1]


def test_a_loop_goes_on_while_any_three_neighbours_fall_within_a_day() -> None:
    found = looped(failing(*range(0, 100, 10), 200, 201, 500))
    assert found.number.tolist() == [0] * 10 + [-1] * 3


def test_failures_of_another_job_with_the_same_id_a_month_later_are_another_loop() -> None:
    found = looped(failing(1, 2, 3, 721, 722, 723))
    assert sorted(found.loops["n_failures"]) == [3, 3]
    assert len(set(found.number)) == 2


@pytest.mark.parametrize("state", ["TIMEOUT", "CANCELLED", "PREEMPTED"])
def test_jobs_that_end_at_their_limit_or_are_stopped_do_not_crash(state: str) -> None:
    assert looped(failing(1, 2, 3, 4, state=state)).loops.empty


def test_a_requeue_at_the_time_limit_is_no_crash() -> None:
    assert looped(failing(1, 2, 3, state="REQUEUED", cause="time_limit")).loops.empty
    assert len(looped(failing(1, 2, 3, state="REQUEUED", cause="requeued")).loops) == 1


def test_failures_of_several_jobs_are_no_loop() -> None:
    assert looped(failing(1, 2, 3).assign(job_id=["7", "8", "9"])).loops.empty


def test_jobs_without_an_id_share_no_run() -> None:
    assert looped(failing(1, 2, 3, job_id=None)).loops.empty


def test_clusters_are_kept_apart() -> None:
    table = failing(1, 2, 3)
    table.loc[2, "cluster"] = "d"
    assert looped(table).loops.empty


def test_the_published_case_of_35_requeues_and_548_preemptions_is_found() -> None:
    hours = np.arange(35) * 0.75
    table = failing(*hours, n_gpus=1024)
    table["restarted_at"] = table["failed_at"] + pd.Timedelta(minutes=15)
    # 548 preemptions over 7,012 GPUs: 547 of 12 and 13 GPUs, spread over the requeues
    rng = np.random.default_rng(0)
    after = hours[rng.integers(0, 35, 548)] + 0.2
    gpus = np.full(548, 12)
    gpus[: 7012 - 548 * 12] += 1
    found = looped(table).loops.iloc[0]
    assert (found["n_failures"], found["n_requeues"]) == (35, 35)
    _, rows = requeue_preemptions(table, aside(*after, n_gpus=gpus))
    assert (len(rows), gpus[rows].sum()) == (548, 7012)


def test_a_preemption_belongs_to_the_last_failure_before_it_if_a_restart_explains_it() -> None:
    table = failing(1, 5)
    table["restarted_at"] = [START + pd.Timedelta(hours=3), pd.NaT]
    # while waiting; 9 and 11 minutes after the restart; an hour after an unrestarted failure; before
    by, rows = requeue_preemptions(table, aside(2, 3.15, 3.19, 5.99, 6.01, 0.5))
    assert list(zip(by.tolist(), rows.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 3)]


def test_where_no_restart_is_recorded_the_next_failed_attempt_tells_it() -> None:
    table = failing(1, 5, 6).assign(restarted_at=pd.NaT)
    by, rows = requeue_preemptions(table, aside(4.5, 4.9))
    assert list(zip(by.tolist(), rows.tolist(), strict=True)) == [(0, 0)]
    assert looped(table).loops["n_requeues"].tolist() == [2]


def test_preemptions_by_others_by_oneself_and_told_twice_do_not_count() -> None:
    table = failing(1)
    for given in ({"preempted_by": "8"}, {"job_id": "7"}, {"cluster": "d"}, {"preempted_by": None}):
        assert not len(requeue_preemptions(table, aside(1.1, **given))[0])
    assert len(requeue_preemptions(table, aside(1.1, 1.1, attempt_key="p"))[0]) == 1


def test_nothing_at_all_is_no_loop() -> None:
    assert looped(failing()).loops.empty


def test_limits_out_of_range_and_missing_columns_are_refused() -> None:
    with pytest.raises(OutOfRangeError, match="within_hours must be a finite number > 0"):
        crash_loops(failing(), min_failures=3, within_hours=0)
    with pytest.raises(OutOfRangeError, match="min_failures - 1 must be"):
        crash_loops(failing(), min_failures=1, within_hours=24)
    with pytest.raises(ShapeError, match="failures must have the columns"):
        looped(failing().drop(columns="state"))
    with pytest.raises(ShapeError, match="preempted must have the columns"):
        requeue_preemptions(failing(1), aside(1).drop(columns="preempted_by"))
