"""Accounting of Grid Engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.data.ingest.job_reading import read_jobs, rejected, takers

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = (
    "gpu.q:n1:g:ada:train:77:sge:0:1709294400:1709294500:1709298100:0:0:3600.5:" + "0:" * 17
    + "proj:dept:NONE:4:0:1.0:0:0:-l h_rt=3600,gpu=1 -pe x 4:0:NONE:1:0:0"
).split(":")  # fmt: skip
"""A line, as fields."""


def record(**changes: str) -> str:
    """A line with other values in the fields f5, f11, ..."""
    fields = list(FIELDS)
    for name, value in changes.items():
        fields[int(name[1:])] = value
    return ":".join(fields)


def test_a_job_is_read() -> None:
    assert takers("# Version: 8.1\n" + record()) == ["sge"]
    _, (row,) = read_jobs("sge", record(f35="3"))
    expected = {
        "job_id": "77_3", "user": "ada", "partition": "gpu.q", "account": "proj", "name": "train",
        "node_list": "n1", "n_nodes": 1, "n_cpus": 4, "state": "COMPLETED", "exit_code": 0,
        "n_gpus": None, "elapsed_s": 3600, "timelimit_s": 3600,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("changes", "state", "exit_signal"),
    [
        ({"f12": "1"}, "FAILED", 0),
        ({"f11": "100", "f12": "137"}, "FAILED", 9),
        ({"f11": "37", "f12": "137"}, "TIMEOUT", 0),
        ({"f11": "25"}, "REQUEUED", 0),
        ({"f11": "26", "f9": "0", "f10": "0"}, "FAILED", None),
    ],
)
def test_how_a_job_ended(changes: dict[str, str], state: str, exit_signal: int | None) -> None:
    _, (row,) = read_jobs("sge", record(**changes))
    assert (row["state"], row["exit_signal"]) == (state, exit_signal)


@pytest.mark.parametrize(("slots", "node_list", "n_nodes"), [("1", "n1", 1), ("16", None, None)])
def test_hosts_of_parallel_jobs_are_unknown(
    slots: str, node_list: str | None, n_nodes: int | None
) -> None:
    _, (row,) = read_jobs("sge", record(f33="mpi", f34=slots))
    assert (row["node_list"], row["n_nodes"]) == (node_list, n_nodes)


def test_univa_writes_the_same_in_milliseconds() -> None:
    changes = {f"f{at}": FIELDS[at] + "288" for at in (8, 9, 10)}
    _, (row,) = read_jobs("sge", record(**changes))
    _, (plain,) = read_jobs("sge", record())
    assert row == plain


def test_what_is_no_job_is_skipped_and_what_is_no_record_told() -> None:
    lines = [
        "# remark", record(), record(f41="2.n7"), "a:b", record(f5="x"), record(f12="bad"),
        record(f10="soon"), "",
    ]  # fmt: skip
    batch, rows = read_jobs("sge", "\r\n".join(lines))
    assert (len(rows), batch.skipped_by_reason) == (1, {"remark": 1, "task of a job": 1})
    assert rejected(batch) == [
        (4, "too few fields"), (5, "JobID is no job id"),
        (6, "failed or exit_status is no number"), (7, "end is no time"),
    ]  # fmt: skip


def test_the_published_lines_are_read(shared_data: Path) -> None:
    found = {}
    for name in ("sge", "uge"):
        path = shared_data / f"collect/accounting/xdmod/{name}-accounting-logs.log"
        assert takers(path.read_text(encoding="utf-8")) == ["sge"]
        batch, found[name] = read_jobs("sge", path)
        assert (batch.rows_kept, batch.rejected.total) == (2, 0)
    row = found["sge"][0]
    assert (row["job_id"], row["node_list"], row["timelimit_s"]) == ("22947", "testhost", 36000)
    assert found["uge"][0] == row  # the same job in milliseconds
    row = found["uge"][1]
    times = [int(row[name].timestamp()) for name in ("submit_at", "start_at", "end_at")]
    assert (row["job_id"], times) == ("4437956", [1652111621, 1652111622, 1652124460])
