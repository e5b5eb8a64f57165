"""Health checks of facebookresearch/gcm."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from data.errors import SourceError
from data.ingest import rows as rows_of_readers
from data.ingest.reader import Batch, Options, Source
from data.ingest.readers.health import gcm_health

if TYPE_CHECKING:
    from pathlib import Path

FEB_23 = datetime(2025, 2, 23, 16, 24, 18, tzinfo=UTC)
CHECK: dict[str, Any] = {
    "node": "n1",
    "gpu_node_id": None,
    "cluster": "rsc",
    "derived_cluster": "rsc-gpu",
    "health_check": "xid errors",
    "type": "prolog",
    "result": 2,
    "_msg": "XID 79 on GPU 3",
    "job_id": 4711,
    "start_time": 1740327850.5,
    "end_time": 1740327858.0,
}


def read(folder: Path, text: str, **options: Any) -> Batch:
    path = folder / "checks.jsonl"
    path.write_text(text, encoding="utf-8")
    source = Source(path, path.name, datetime(2025, 3, 1, tzinfo=UTC))
    return gcm_health.READER.read(source, Options(**options), duckdb.cursor())


def read_checks(folder: Path, *changes: dict[str, Any], **options: Any) -> Batch:
    return read(folder, "\n".join(json.dumps(CHECK | change) for change in changes), **options)


def rows(batch: Batch) -> list[dict[str, Any]]:
    frame = batch.tables["health_events"]
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def test_a_failed_check_becomes_a_health_event(tmp_path: Path) -> None:
    batch = read_checks(tmp_path, {})
    (row,) = rows(batch)
    assert row.pop("event_id")
    assert row == {
        "cluster": "rsc",
        "node": "n1",
        "gpu": None,
        "observed_at": FEB_23,
        "source": "health_check",
        "check_name": "xid errors",
        "severity": "critical",
        "xid": None,
        "sxid": None,
        "message": "XID 79 on GPU 3",
        "job_id": "4711",
    }
    assert (batch.rows_read, batch.rows_kept, batch.clusters) == (1, 1, ("rsc",))
    assert (batch.first_at, batch.last_at, batch.notices) == (FEB_23, FEB_23, [])


@pytest.mark.parametrize(
    ("result", "severity"),
    [
        (1, "warning"),
        (2, "critical"),
        (3, None),
        ("WARN", "warning"),
        ("Warning", "warning"),
        ("critical", "critical"),
        ("UNKNOWN", None),
        ("2", "critical"),
        (2.0, "critical"),
        (" warn ", "warning"),
    ],
)
def test_results_are_read_as_number_or_name(
    tmp_path: Path, result: object, severity: str | None
) -> None:
    (row,) = rows(read_checks(tmp_path, {"result": result}))
    assert row["severity"] == severity


@pytest.mark.parametrize("result", [0, "OK", "ok", "0"])
def test_a_passed_check_is_skipped(tmp_path: Path, result: object) -> None:
    batch = read_checks(tmp_path, {"result": result}, {"result": 1})
    assert (batch.rows_read, batch.rows_kept) == (2, 1)
    assert batch.skipped_by_reason == {"passed": 1}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"node": None}, "no node"),
        ({"node": "  "}, "no node"),
        ({"node": ["n1"]}, "no node"),
        ({"health_check": ""}, "no health_check"),
        ({"result": None}, "no result"),
        ({"result": 4}, "unknown result"),
        ({"result": -1}, "unknown result"),
        ({"result": True}, "unknown result"),
        ({"result": 1.5}, "unknown result"),
        ({"result": "broken"}, "unknown result"),
        ({"result": [1]}, "unknown result"),
        ({"end_time": "yesterday"}, "impossible time"),
        ({"end_time": "2025-02-30T00:00:00"}, "impossible time"),
        ({"end_time": 1740327858000}, "impossible time"),
        ({"end_time": float("nan")}, "impossible time"),
        ({"end_time": float("inf")}, "impossible time"),
        ({"end_time": True}, "impossible time"),
        ({"end_time": {}}, "impossible time"),
        ({"end_time": None, "start_time": 0.0}, "no end_time or start_time"),
        ({"result": 0, "end_time": "yesterday"}, "impossible time"),
    ],
)
def test_a_record_that_cannot_be_read_is_rejected_with_its_reason(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    batch = read_checks(tmp_path, {}, change)
    (rejected,) = batch.rejected
    assert (rejected.line_no, rejected.reason) == (2, reason)
    assert json.loads(rejected.raw).keys() == CHECK.keys()
    assert (batch.rows_read, batch.rows_kept) == (2, 1)


def test_lines_that_are_no_json_objects_are_rejected_and_blank_ones_ignored(
    tmp_path: Path,
) -> None:
    lines = [json.dumps(CHECK), "", "hello", '{"node": "n1"', "7", '"text"', "null", "[" * 9999]
    batch = read(tmp_path, "\n".join(lines))
    assert batch.rows_kept == 1
    assert [record.line_no for record in batch.rejected] == [3, 4, 5, 6, 7, 8]
    assert {record.reason for record in batch.rejected[:-1]} == {"not a JSON object"}
    assert batch.rejected[-1].reason == "JSON deeper than the limit of 64"


@pytest.mark.parametrize(
    ("change", "time"),
    [
        ({"end_time": None}, FEB_23.replace(second=10, microsecond=500_000)),
        ({"end_time": 0.0}, FEB_23.replace(second=10, microsecond=500_000)),
        ({"end_time": 1740327858}, FEB_23),
        ({"end_time": "1740327858.0"}, FEB_23),
        ({"end_time": "2025-02-23T16:24:18Z"}, FEB_23),
        ({"end_time": "2025-02-23T17:24:18+01:00"}, FEB_23),
        ({"end_time": "2025-02-23 17:24:18"}, FEB_23),  # local, in Berlin below
    ],
)
def test_the_time_is_the_end_of_the_check_else_its_start(
    tmp_path: Path, change: dict[str, Any], time: datetime
) -> None:
    (row,) = rows(read_checks(tmp_path, change, timezone="Europe/Berlin"))
    assert row["observed_at"] == time


@pytest.mark.parametrize("job_id", [0, -1, None, "", "0", "-1", 0.0])
def test_stand_ins_for_no_job_are_no_job(tmp_path: Path, job_id: object) -> None:
    (row,) = rows(read_checks(tmp_path, {"job_id": job_id}))
    assert row["job_id"] is None


def test_cluster_comes_from_the_option_else_the_record_else_the_default(tmp_path: Path) -> None:
    change = {"cluster": None}
    assert read_checks(tmp_path, {}, cluster="hal").clusters == ("hal",)
    assert read_checks(tmp_path, {}, default_cluster="hal").clusters == ("rsc",)
    assert read_checks(tmp_path, change, default_cluster="hal").clusters == ("hal",)


def test_arrays_on_a_line_and_files_of_one_array_are_read(tmp_path: Path) -> None:
    stdout_sink = json.dumps([{k: v for k, v in CHECK.items() if v is not None}])
    batch = read(tmp_path, f"{stdout_sink}\n{stdout_sink}\n")
    assert (batch.rows_read, batch.rows_kept) == (2, 2)
    bad = CHECK | {"result": 9}
    pretty = json.dumps([CHECK, bad, CHECK], indent=2)
    batch = read(tmp_path, pretty)
    assert (batch.rows_read, batch.rows_kept) == (3, 2)
    assert [record.line_no for record in batch.rejected] == [2 + len(CHECK) + 2]
    batch = read(tmp_path, pretty[:-40])
    assert (batch.rows_read, batch.rows_kept, len(batch.rejected)) == (3, 1, 2)


def test_records_of_the_file_sink_sorted_by_type_are_read(tmp_path: Path) -> None:
    text_fields = ("node", "cluster", "derived_cluster", "health_check", "type", "_msg")
    record = {
        "int": {"result": 2, "job_id": 4711},
        "double": {"start_time": 1740327850.5, "end_time": 1740327858.0},
        "normal": {name: CHECK[name] for name in text_fields},
        "tags": {},
    }
    flat, sorted_by_type = read_checks(tmp_path, {}), read(tmp_path, json.dumps(record))
    assert rows(sorted_by_type) == rows(flat)


def test_true_duplicates_stay_and_reading_again_gives_the_same_ids(tmp_path: Path) -> None:
    first = [row["event_id"] for row in rows(read_checks(tmp_path, {}, {}, {"result": 1}))]
    assert len(set(first)) == 3
    again = [row["event_id"] for row in rows(read_checks(tmp_path, {"result": 1}, {}, {}))]
    assert sorted(again) == sorted(first)


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_a_file_without_records_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError, match="holds no records"):
        read(tmp_path, text)


def test_progress_is_told_of_a_long_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_of_readers, "PROGRESS_RECORDS", 2)
    told: list[str] = []
    read_checks(tmp_path, {}, {}, {}, progress=told.append)
    assert told == ["checks.jsonl: 2 records"]


@pytest.mark.parametrize(
    ("head", "is_gcm"),
    [
        (json.dumps(CHECK), True),
        (f"\n[{json.dumps(CHECK)}]\n", True),
        ('{"MESSAGE": "NVRM: Xid"}', False),
        ("node,health_check,result", False),
        ("", False),
    ],
)
def test_only_health_checks_are_recognised(head: str, is_gcm: bool) -> None:
    assert gcm_health.sniff(head) is is_gcm
