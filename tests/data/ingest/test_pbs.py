"""Accounting of PBS and TORQUE."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.data.ingest.job_reading import read_jobs, rejected, takers

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = {
    "user": "ada", "queue": "gpu", "jobname": "train", "ctime": "1709294400", "etime": "1709294400",
    "start": "1709294500", "end": "1709298100", "exec_host": "n1/0*4+n2/0-3",
    "Resource_List.walltime": "01:00:00", "resources_used.walltime": "00:59:00",
    "Exit_status": "1",
}  # fmt: skip


def record(job_id: str = "1.server", kind: str = "E", **changes: str | None) -> str:
    """A line; fields of None are left out, and __ stands for a point in a name."""
    fields = FIELDS | {name.replace("__", "."): value for name, value in changes.items()}
    text = " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)
    return f"03/01/2024 13:01:40;{kind};{job_id};{text}"


def only(line: str) -> dict[str, Any]:
    """The one job of a line."""
    _, (row,) = read_jobs("pbs", line + "\n")
    return row


def test_a_job_is_read() -> None:
    row = only(record())
    expected = {
        "job_id": "1", "user": "ada", "partition": "gpu", "name": "train", "state": "FAILED",
        "exit_code": 1, "exit_signal": 0, "n_nodes": 2, "n_cpus": 8, "node_list": "n1,n2",
        "timelimit_s": 3600, "elapsed_s": 3540, "n_gpus": None, "state_raw": "E Exit_status=1",
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("changes", "state", "exit_signal"),
    [
        ({"Exit_status": "0"}, "COMPLETED", 0),
        ({"Exit_status": "271"}, "CANCELLED", 15),
        ({"Exit_status": "271", "resources_used__walltime": "01:00:02"}, "TIMEOUT", 15),
        ({"Exit_status": "265"}, "FAILED", 9),
        ({"Exit_status": "-1"}, "FAILED", None),
        ({"kind": "R"}, "REQUEUED", 0),
        ({"kind": "R", "Exit_status": None}, "REQUEUED", None),
    ],
)
def test_how_a_job_ended(
    changes: dict[str, str | None], state: str, exit_signal: int | None
) -> None:
    row = only(record(**changes))  # type: ignore[arg-type]
    assert (row["state"], row["exit_signal"]) == (state, exit_signal)


@pytest.mark.parametrize(
    ("changes", "n_gpus"),
    [
        ({"Resource_List__nodes": "2:ppn=8:gpus=4+n7:gpus=1"}, 9),
        ({"Resource_List__select": "2:ncpus=8:ngpus=4"}, 8),
        ({"Resource_List__ngpus": "3", "Resource_List__nodes": "1:gpus=4"}, 3),
        ({"exec_vnode": "(n1:ngpus=2:ncpus=4)+(n2:ngpus=2)", "Resource_List__ngpus": "9"}, 4),
        ({"exec_vnode": "(n1:ncpus=4)"}, 0),
        ({"Resource_List__nodes": "1:ppn=4"}, 0),
    ],
)
def test_gpus_are_those_given_else_those_asked(changes: dict[str, str], n_gpus: int) -> None:
    assert only(record(**changes))["n_gpus"] == n_gpus


@pytest.mark.parametrize(
    ("written", "job_id"),
    [("7", "7"), ("7.a.b.c", "7"), ("7[3].s", "7_3"), ("7-3.s", "7_3"), ("7[].s", "7_[]")],
)
def test_the_server_is_no_part_of_an_id(written: str, job_id: str) -> None:
    assert only(record(written))["job_id"] == job_id


def test_what_is_no_end_is_skipped_and_what_is_no_record_told() -> None:
    lines = [
        record("1"), record("2", "S"), record("2", "Q"), record("3", "R", start=None), "", "prose",
        record("4", Exit_status=None), record("x"), record("5", end="soon"),
        record("6", exec_host="/0"), record("7", jobname='"a b"'),
    ]  # fmt: skip
    batch, rows = read_jobs("pbs", "\ufeff" + "\r\n".join(lines))
    assert [(row["job_id"], row["name"]) for row in rows] == [("1", "train"), ("7", "a b")]
    assert batch.skipped_by_reason == {"not an end of a job": 2, "requeued without its times": 1}
    assert rejected(batch) == [
        (6, "no record of PBS"), (7, "no Exit_status"), (8, "JobID is no job id"),
        (9, "end is no time"), (10, "exec_host is no list of hosts"),
    ]  # fmt: skip
    assert batch.rejected[3].raw == lines[8]


def test_the_published_lines_give_what_their_authors_expect(shared_data: Path) -> None:
    folder = shared_data / "collect/accounting/xdmod"
    path = folder / "pbs-accounting-logs.log"
    assert takers(path.read_text(encoding="utf-8")) == ["pbs"]
    batch, rows = read_jobs("pbs", path)
    expected = json.loads((folder / "pbs-accounting-logs.expected.json").read_text("utf-8"))
    assert (batch.rows_kept, batch.rejected.total) == (9, 0)
    for row, found in zip(rows, expected.values(), strict=True):
        assert row["job_id"] == found["job_id"]
        assert (row["user"], row["partition"]) == (found["user"], found["queue"])
        times = [int(row[name].timestamp()) for name in ("submit_at", "start_at", "end_at")]
        assert times == [int(found[name]) for name in ("ctime", "start", "end")]
        assert row["node_list"] == found.get("node_list")
        assert row["n_gpus"] == int(found["resources_used_gpus"])
        assert row["timelimit_s"] == found.get("resource_list_walltime")
        if row["elapsed_s"] is not None:  # the authors take end - start where it is not stated
            assert row["elapsed_s"] == found["resources_used_walltime"]
        if row["job_id"] != "3073070":  # 0*0 counts as 2 CPUs there; 48 were used
            assert row["n_cpus"] == found.get("resources_used_cpus")
