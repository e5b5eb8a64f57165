"""When attempts without a record may have run, by hand: one node of 8 GPUs and a day."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from app.answers.efficiency import ledger
from data.filters import Selection
from data.publish import writer
from data.store import Store
from data.tables import tables

if TYPE_CHECKING:
    from pathlib import Path

    from analytics.efficiency.goodput import GoodputLedger

DAY = datetime(2025, 3, 3, tzinfo=UTC)
HOUR = timedelta(hours=1)
Row = dict[str, Any]


def job(job_id: int, submit: float, begin: float, end: float, **more: Any) -> Row:
    """An attempt on all of the node, in hours of the day."""
    times = {"submit_at": submit, "eligible_at": submit, "start_at": begin, "end_at": end}
    row = {"cluster": "c", "attempt_key": f"{job_id}-{submit}", "job_id": str(job_id),
           "state": "COMPLETED", "restarts": 0, "node_list": "n1", "n_nodes": 1, "n_gpus": 8}  # fmt: skip
    return row | {name: DAY + at * HOUR for name, at in times.items()} | more


def ledger_of(root: Path, *jobs: Row) -> GoodputLedger:
    node = {"cluster": "c", "node": "n1", "first_seen_at": DAY - HOUR, "role": "compute",
            "last_seen_at": DAY + 24 * HOUR, "gpus": 8, "source": "inventory"}  # fmt: skip
    before = {"cluster": "c", "node": "n1", "start_at": DAY - 3 * HOUR, "state": "DOWN",
              "end_at": DAY - 2 * HOUR}  # fmt: skip
    records = {"nodes": [node], "jobs": list(jobs), "node_events": [before]}
    with writer(root) as building:
        for table, rows in records.items():
            frame = pd.DataFrame(rows, dtype="object")
            for name in frame.columns:
                if tables()[table].columns[name].type == "TIMESTAMPTZ":
                    frame[name] = pd.to_datetime(frame[name], utc=True)
            building.merge({table: frame})
        building.publish(ledger=True)
    with closing(Store.open(root)) as store:
        return ledger.measured(store, Selection())


def bounds(found: GoodputLedger, name: str) -> tuple[float | None, float | None]:
    bucket = found.bucket(name)
    assert bucket is not None
    return bucket.gpu_hours.lower, bucket.gpu_hours.upper


AROUND = (job(10, 0, 0, 1), job(12, 2, 2, 4), job(13, 23, 23, 24))
"""Jobs that were never requeued: the node is free from hour 1 to 2 and from 4 on."""
REQUEUED = job(11, 12, 12, 13, restarts=1)
"""Submitted first between jobs 10 and 12, so within the hours 0 to 2; requeued at 12."""


@pytest.mark.parametrize(
    ("more", "held", "lost"),
    [
        pytest.param({}, 8 * 8, 4 * 8, id="one_stretch"),
        pytest.param(
            {"timelimit_s": 3 * 3600}, 3 * 8, 3 * 8, id="time_limit", marks=pytest.mark.slow
        ),
        pytest.param({"restarts": 2}, 9 * 8, 8 * 8, id="two_attempts", marks=pytest.mark.slow),
    ],
)
def test_what_is_missing_held_no_more_than_was_free_in_its_life(
    tmp_path: Path, more: Row, held: float, lost: float
) -> None:
    found = ledger_of(tmp_path, *AROUND, REQUEUED | more)
    assert bounds(found, "idle") == (19 * 8 - 9 * 8, 19 * 8)
    assert bounds(found, "queue_hold") == (0, 9 * 8)
    assert bounds(found, "lost_work") == (0, lost)
    assert bounds(found, "productive") == (5 * 8, 5 * 8 + held)
    assert {each.bucket for each in found.buckets if not each.bounded} == {
        "straggler", "startup", "checkpoint", "drained", "down_planned", "down_unplanned"
    }  # fmt: skip


@pytest.mark.slow
def test_an_attempt_before_the_records_changes_nothing_where_attempts_were_kept(
    tmp_path: Path,
) -> None:
    kept = (job(20, 5, 5, 6, state="REQUEUED"), job(20, 7, 7, 8, restarts=1))
    assert not ledger_of(tmp_path / "kept", *AROUND, REQUEUED, *kept).bounded
    later = job(14, 23.5, 23.5, 23.6, n_gpus=0, restarts=1)
    assert not ledger_of(tmp_path / "cpu", *AROUND, later).bounded


@pytest.mark.slow
def test_ids_that_do_not_count_up_make_a_life_longer_not_wrong(tmp_path: Path) -> None:
    # Job 9 came last although its id is the lowest: job 11 may be as old as any job after it.
    found = ledger_of(tmp_path, *AROUND[1:], REQUEUED, job(9, 22, 22, 23), job(14, 0, 0, 1))
    assert bounds(found, "productive") == (6 * 8, 6 * 8 + 8 * 8)
