"""Any mixture of sources, with anything unknown in any column, is published and accounted for."""

from __future__ import annotations

import random
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from data.publish import writer
from data.stages import Context
from data.store import Store
from data.tables import records, tables

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]
BEGIN = datetime(2024, 3, 1, tzinfo=UTC)
STATES = ("COMPLETED", "FAILED", "NODE_FAIL", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "REQUEUED")
XIDS = (13, 31, 43, 48, 63, 74, 79, 94, 95, 119, 999)
"""Of the program (31, 43), of the node, and one that no catalog lists."""
NEVER_NULL = {
    "jobs": {"cluster", "attempt_key", "job_id"},
    "health_events": {"cluster", "event_id"},
    "node_events": {"cluster", "node", "start_at", "state"},
    "nodes": {"cluster", "node", "first_seen_at", "source"},
    "node_failures": {"cluster", "failure_key", "node", "start_at"},
    "job_logs": {"cluster", "job_id", "file", "line_no"},
    "tickets": {"cluster", "ticket_id"},
    "training_metrics": {"cluster", "run_id", "job_id", "step", "rank", "logged_at"},
}
"""What readers always fill; everything else may be unknown."""


def _when(chance: random.Random) -> datetime:
    """Within two hours, so that most records lie near the end of some attempt."""
    return BEGIN + timedelta(seconds=chance.randrange(7_200))


def _job(n: int, chance: random.Random) -> Row:
    begin = _when(chance)
    end = begin + timedelta(seconds=chance.randrange(4_000))
    return {"cluster": "a", "attempt_key": f"k{n}", "job_id": str(n % 12), "user": "ann",
            "account": "physics", "partition": "gpu", "name": f"job {n % 3}",
            "state": chance.choice(STATES), "exit_code": chance.choice((0, 1)),
            "exit_signal": chance.choice((0, 9)), "submit_at": begin, "start_at": begin,
            "end_at": end, "elapsed_s": (end - begin).total_seconds(), "restarts": n % 2,
            "node_list": chance.choice(("n1", "n[1-2]", "n[1-4]")), "n_nodes": 2, "n_gpus": 16,
            "failed_node": "n1", "reason": "Prolog", "qos": "normal"}  # fmt: skip


def _event(n: int, chance: random.Random) -> Row:
    return {"cluster": "a", "event_id": f"e{n}", "node": f"n{n % 4 + 1}", "gpu": "0",
            "observed_at": _when(chance), "source": chance.choice(("kernel", "health_check")),
            "check_name": chance.choice(("xid", "check-ib", "gpu_lost")),
            "severity": chance.choice(("info", "warning", "critical", "fatal")),
            "xid": chance.choice(XIDS), "sxid": chance.choice((None, 12028)),
            "message": chance.choice(("pid=1, name=python", "pid='<unknown>'", "port down")),
            "job_id": chance.choice((None, str(n % 12), "other"))}  # fmt: skip


def _out(n: int, chance: random.Random) -> Row:
    begin = _when(chance)
    return {"cluster": "a", "node": f"n{n % 4 + 1}", "start_at": begin,
            "end_at": begin + timedelta(seconds=chance.randrange(3_000)), "reason": "xid 79",
            "state": chance.choice(("DOWN", "DRAIN", "MAINT")), "reason_user": "root",
            "planned": chance.choice((True, False))}  # fmt: skip


def _other(n: int, chance: random.Random) -> dict[str, Row]:
    """One row of each table that comes more rarely."""
    at = _when(chance)
    return {
        "nodes": {"cluster": "a", "node": f"n{n}", "first_seen_at": at, "gpus": 8,
                  "rack": "r1", "source": "inventory"},
        "node_failures": {"cluster": "a", "failure_key": f"f{n}", "node": "n1", "start_at": at,
                          "end_at": at, "cause": "gpu_memory"},
        "job_logs": {"cluster": "a", "job_id": str(n % 12), "file": f"{n}.out", "line_no": 1,
                     "logged_at": at, "text": chance.choice(("CUDA error: out of memory", "ok"))},
        "tickets": {"cluster": "a", "ticket_id": f"t{n}", "node": "n1", "opened_at": at},
        "training_metrics": {"cluster": "a", "run_id": str(n % 12), "job_id": str(n % 12),
                             "step": n, "rank": 0, "logged_at": at, "loss": 1.0,
                             "step_time_s": 2.0},
    }  # fmt: skip


def _records(seed: int) -> dict[str, pd.DataFrame]:
    """Some of the sources, some of their columns without any value, others without some."""
    chance = random.Random(seed)
    rows: dict[str, list[Row]] = {
        "jobs": [_job(n, chance) for n in range(40)],
        "health_events": [_event(n, chance) for n in range(40)],
        "node_events": [_out(n, chance) for n in range(8)],
    }
    for n in range(4):
        for table, row in _other(n, chance).items():
            rows.setdefault(table, []).append(row)
    kept = {table: found for table, found in rows.items() if chance.random() < 0.75}
    return {table: _with_unknowns(table, found, chance) for table, found in kept.items()}


def _with_unknowns(table: str, rows: list[Row], chance: random.Random) -> pd.DataFrame:
    """Rows of which columns lack all values, some, or none."""
    frame = pd.DataFrame(rows, dtype="object")
    declared = records()[table].columns
    for name in frame.columns:
        if declared[name].type == "TIMESTAMPTZ":
            frame[name] = pd.to_datetime(frame[name], utc=True)
        if name not in NEVER_NULL[table]:
            share = chance.choice((0.0, 0.0, 0.0, 0.3, 1.0))
            frame[name] = frame[name].mask([chance.random() < share for _ in range(len(frame))])
    return frame


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(120))
def test_any_mixture_is_published_and_every_failed_attempt_has_one_verdict(
    tmp_path: Path, seed: int
) -> None:
    with writer(tmp_path) as building:
        building.merge(_records(seed))
        building.publish(ledger=True)
    with closing(Store.open(tmp_path)) as store:
        ((n_failed, n_verdicts),) = store.rows(
            """SELECT count(*), (SELECT count(*) FROM failures) FROM jobs
               WHERE state IN ('FAILED', 'NODE_FAIL', 'TIMEOUT', 'OUT_OF_MEMORY')"""
        )
        assert n_verdicts >= n_failed
        assert (
            store.rows("SELECT 1 FROM failures WHERE cause IS NULL OR NOT (confidence <= 1)") == []
        )
        assert (
            store.rows("SELECT 1 FROM failures GROUP BY cluster, attempt_key HAVING count(*) > 1")
            == []
        )


def _pieces(seed: int) -> list[dict[str, pd.DataFrame]]:
    """The records of a seed in some files: in any order, some twice, jobs as they ran before."""
    chance = random.Random(seed)
    whole = _records(seed)
    if "jobs" in whole:
        running = whole["jobs"].sample(8, random_state=seed)
        unknown = pd.to_datetime(pd.Series(pd.NaT, running.index), utc=True)
        running = running.assign(state="RUNNING", end_at=unknown, failed_node=None)
        whole["jobs"] = pd.concat([whole["jobs"], running], ignore_index=True)
    found: list[dict[str, pd.DataFrame]] = [{} for _ in range(4)]
    for table, rows in whole.items():
        place = [chance.choice((0, 0, 1, 2, 3)) for _ in range(len(rows))]
        for n, piece in enumerate(found):
            again = [at == n or (at < n and chance.random() < 0.1) for at in place]
            if any(again):
                piece[table] = rows[again].sample(frac=1, random_state=seed)
    return found


def _published(root: Path, parts: list[dict[str, pd.DataFrame]]) -> None:
    for part in parts:
        with writer(root) as building:
            for table, rows in part.items():
                building.merge({table: rows})
            building.publish()


def _content(root: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows that count, sorted; of incidents those that live, whose ids tell their history."""
    apart = {"ingests", "rejected_rows", "store_meta", "stage_runs"}
    read = {name: f"SELECT * FROM {name}" for name in tables().keys() - apart}
    read["incidents"] = "SELECT * EXCLUDE (incident_id) FROM incidents WHERE NOT retired"
    read["incident_members"] = "SELECT * EXCLUDE (incident_id) FROM incident_members"
    with closing(Store.open(root)) as store:
        return {name: store.rows(f"{sql} ORDER BY ALL") for name, sql in read.items()}


@pytest.mark.parametrize("seed", [
    pytest.param(n, marks=pytest.mark.slow) for n in (2, *range(5, 60))
])  # fmt: skip
def test_files_in_any_order_and_split_give_the_store_that_is_derived_from_nothing(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = _pieces(seed)
    by_row = []

    def asked(context: Context, *known: str, **more: Any) -> bool:
        by_row.append(of_rows(context, *known, **more))
        return by_row[-1]

    of_rows = Context.by_row
    monkeypatch.setattr(Context, "by_row", asked)
    _published(tmp_path / "pieces", pieces)
    assert any(by_row) or not any("jobs" in piece for piece in pieces[1:])
    monkeypatch.setattr(Context, "by_row", lambda *_, **__: False)
    partly = _content(tmp_path / "pieces")
    with writer(tmp_path / "pieces") as building:
        building.connection.execute("UPDATE stage_runs SET fingerprint = 'older'")
        building.publish()
    assert partly == _content(tmp_path / "pieces")
    order = random.Random(seed)
    order.shuffle(pieces)
    whole = {
        table: pd.concat([piece[table] for piece in pieces if table in piece])
        for table in {name for piece in pieces for name in piece}
    }
    _published(tmp_path / "whole", [whole])
    assert partly == _content(tmp_path / "whole")


def test_a_line_about_a_process_beside_a_check_that_names_a_job(tmp_path: Path) -> None:
    end = BEGIN + timedelta(hours=1)
    job = {"cluster": "a", "attempt_key": "k", "job_id": "1", "state": "FAILED", "start_at": BEGIN,
           "end_at": end, "node_list": "n1", "n_nodes": 1, "n_gpus": 8}  # fmt: skip
    line = {"cluster": "a", "event_id": "line", "node": "n1", "observed_at": end, "xid": 31,
            "source": "kernel", "check_name": "xid", "message": "pid=7, name=python"}  # fmt: skip
    check = {"cluster": "a", "event_id": "check", "node": "n1", "observed_at": end, "job_id": "1",
             "source": "health_check", "check_name": "check-ib", "severity": "warning"}  # fmt: skip
    with writer(tmp_path) as building:
        building.merge({"jobs": pd.DataFrame([job]), "health_events": pd.DataFrame([line, check])})
        building.publish()
    with closing(Store.open(tmp_path)) as store:
        assert store.rows("SELECT cause FROM failures") == [("illegal_memory_access",)]
        assert store.rows("SELECT count(*) FROM health_events") == [(2,)]
