"""Time of the fleet that no job held: against a sweep that ticks second by second."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.efficiency import fleet_time
from analytics.efficiency.fleet_time import (
    OUT_OF_SERVICE,
    Intervals,
    free_time,
    gpu_seconds_by_day,
    outage_bucket,
    without_overlap,
)

DAY = 86_400


def intervals(*rows: tuple[int, int, int]) -> Intervals:
    start, length, gpus = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Intervals(start, start + length, gpus)


def level(held: Intervals, second: int) -> int:
    there = (held.start_s <= second) & (second < held.end_s)
    return int(held.gpus[there].sum())


rows = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 200), st.integers(1, 9)), max_size=8)


@settings(deadline=None)
@given(rows, rows, st.integers(0, 100), st.integers(100, 300))
def test_every_second_is_held_by_the_queue_or_idle(
    free: list[tuple[int, int, int]], wanted: list[tuple[int, int, int]], begin: int, end: int
) -> None:
    jobs = intervals(*((start, length, -gpus) for start, length, gpus in free[::2]))
    there = intervals((0, 1000, 10)).without(Intervals(jobs.start_s, jobs.end_s, -jobs.gpus))
    queue = intervals(*wanted)
    found = free_time((begin, end), free=there, wanted=queue)
    held = idle = excess = 0
    for second in range(begin, end):
        at, waits = level(there, second), level(queue, second)
        held += min(max(at, 0), waits)
        idle += max(at, 0) - min(max(at, 0), waits)
        excess += max(-at, 0)
    assert found.sum().to_dict() == {"queue_hold": held, "idle": idle, "excess": excess}


def test_stretches_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    start = rng.integers(0, 9 * DAY, 200)
    length, gpus = rng.integers(1, DAY, 200), rng.integers(1, 5, 200)
    there = intervals((0, 20 * DAY, 100)).without(Intervals(start, start + length, gpus))
    queue = Intervals(start - 500, start, gpus)
    whole = free_time((1000, 9 * DAY + 77), free=there, wanted=queue)
    monkeypatch.setattr(fleet_time, "CHUNK_DAYS", 2)
    pd.testing.assert_frame_equal(whole, free_time((1000, 9 * DAY + 77), free=there, wanted=queue))
    assert whole.index.tolist() == list(range(10))


def test_a_window_of_no_length_has_no_time() -> None:
    nothing = intervals()
    assert free_time((100, 100), free=nothing, wanted=nothing).empty


def test_gpu_seconds_are_those_of_the_day_in_which_they_lie() -> None:
    found = gpu_seconds_by_day(intervals((DAY - 10, DAY + 30, 8), (5, 10, -2)))
    assert found.to_dict() == {0: 10 * 8 - 10 * 2, 1: DAY * 8, 2: 20 * 8}


outages = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(0, 60), st.integers(1, 40), st.sampled_from(OUT_OF_SERVICE)
    ),
    max_size=10,
)


def buckets(frame: pd.DataFrame) -> dict[tuple[int, int], list[str]]:
    """Buckets of each node at each second."""
    found: dict[tuple[int, int], list[str]] = {}
    for row in frame.itertuples(index=False):
        for second in range(row.start_s, row.end_s):
            found.setdefault((row.node, second), []).append(row.bucket)
    return found


@settings(deadline=None)
@given(outages)
def test_of_outages_that_overlap_the_strongest_counts(
    cases: list[tuple[int, int, int, str]],
) -> None:
    frame = pd.DataFrame(
        [(node, start, start + length, bucket) for node, start, length, bucket in cases],
        columns=["node", "start_s", "end_s", "bucket"],
    )
    strongest = {
        at: [next(bucket for bucket in OUT_OF_SERVICE if bucket in there)]
        for at, there in buckets(frame).items()
    }
    assert buckets(without_overlap(frame)) == strongest


@pytest.mark.parametrize(
    ("state", "planned", "bucket"),
    [
        ("DOWN", False, "down_unplanned"), ("DOWN*", None, "down_unplanned"),
        ("DOWN*+DRAIN", None, "down_unplanned"), ("FAIL", None, "down_unplanned"),
        ("DRAIN", None, "drained"), ("DRAINING", False, "drained"), ("MIXED+DRAIN", None, "drained"),
        ("MAINT", None, "down_planned"), ("DRAIN", True, "down_planned"),
        ("IDLE+MAINTENANCE", None, "down_planned"), ("POWERED_DOWN", None, "down_planned"),
        (None, None, "drained"), (None, True, "down_planned"),
    ],
)  # fmt: skip
def test_states_of_nodes_fall_into_buckets(
    state: str | None, planned: bool | None, bucket: str
) -> None:
    assert outage_bucket(state, planned=planned) == bucket
