"""Accounting of LSF."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.data.ingest.job_reading import read_jobs, rejected, takers

if TYPE_CHECKING:
    from pathlib import Path


def record(
    *,
    start: int = 1709294500,
    status: int = 32,
    exit_status: int = 256,
    exit_info: int = 0,
    index: int = 0,
    command: str = 'run ""me"" now',
) -> str:
    """A line of lsb.acct."""
    before = (
        f'"JOB_FINISH" "10.1" 1709298100 77 1000 33 8 1709294400 0 0 {start} "ada" "gpu" "" "" '
    )
    asked = '"" "h0" "/d" "" "o" "e" "f" 1 "n1" 3 "4*n1" "n2" "n2" '
    used = " ".join(["0"] * 19)
    behind = f'"train" "{command}" {used} "" "proj" {exit_status} 8 "" "" {index} 0 0 '
    return f'{before}{asked}{status} 60.0 {behind}"" "" "" "" 0 "" {exit_info} "" -1'


def test_a_job_is_read() -> None:
    assert takers(record()) == ["lsf"]
    _, (row,) = read_jobs("lsf", record(index=3))
    expected = {
        "job_id": "77_3", "array_job_id": "77", "array_task_id": 3, "user": "ada", "n_nodes": 2,
        "partition": "gpu", "account": "proj", "name": "train", "node_list": "n1,n2", "n_cpus": 8,
        "state": "FAILED", "exit_code": 1, "exit_signal": 0, "n_gpus": None, "eligible_at": None,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert (row["end_at"] - row["start_at"]).total_seconds() == 3600


@pytest.mark.parametrize(
    ("line", "state", "exit_signal"),
    [
        (record(status=64, exit_status=0), "COMPLETED", 0),
        (record(exit_status=9), "FAILED", 9),
        (record(exit_info=5), "TIMEOUT", 0),
        (record(exit_info=14), "CANCELLED", 0),
        (record(exit_info=16), "OUT_OF_MEMORY", 0),
        (record(exit_info=11), "REQUEUED", 0),
        (record(exit_info=99), "FAILED", 0),
        (record(start=0), "CANCELLED", None),
    ],
)
def test_how_a_job_ended(line: str, state: str, exit_signal: int | None) -> None:
    _, (row,) = read_jobs("lsf", line)
    assert (row["state"], row["exit_signal"]) == (state, exit_signal)
    assert (row["start_at"] is None) == (exit_signal is None)


def test_what_is_no_end_is_skipped_and_what_is_no_record_told() -> None:
    lines = [
        record(), '"EVENT_ADRSV_FINISH" "10.1" 1 2', "prose", record()[:200], record(status=1),
        record().replace(' 3 "4*n1"', ' -3 "4*n1"'), record().replace(" 77 ", " x "),
        record()[:60], "",
    ]  # fmt: skip
    batch, rows = read_jobs("lsf", "\r\n".join(lines))
    assert (len(rows), batch.skipped_by_reason) == (1, {"not an end of a job": 1})
    assert rejected(batch) == [
        (3, "no record of LSF"), (4, "fields are missing or no numbers"),
        (5, "status is neither done nor exited"), (6, "fields are missing or no numbers"),
        (7, "JobID is no job id"), (8, "fields are missing or no numbers"),
    ]  # fmt: skip


def test_the_published_lines_give_what_their_authors_expect(shared_data: Path) -> None:
    folder = shared_data / "collect/accounting/xdmod"
    expected = json.loads((folder / "lsf-accounting-logs.expected.json").read_text("utf-8"))
    path = folder / "lsf-accounting-logs.log"
    assert takers(path.read_text(encoding="utf-8")) == ["lsf"]
    batch, rows = read_jobs("lsf", path)
    assert (batch.rows_kept, batch.rejected.total) == (2, 0)
    for row, found in zip(rows, expected, strict=True):
        names = ("job_id", "user_name", "queue", "job_name", "project_name")
        columns = ("job_id", "user", "partition", "name", "account")
        assert [row[column] for column in columns] == [found[name] for name in names]
        assert row["node_list"] == ",".join(found["exec_hosts"])
        assert (row["n_nodes"], row["n_cpus"]) == (int(found["num_ex_hosts"]), 128)
        assert int(row["end_at"].timestamp()) == int(found["event_time"])
        assert (row["state"], row["exit_code"]) == ("COMPLETED", 0)
    _, (row,) = read_jobs("lsf", folder / "lsf-utf8-multibyte-chars.log")
    assert (row["job_id"], row["n_nodes"]) == ("404717", 8)
