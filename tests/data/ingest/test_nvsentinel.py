"""Health events of NVSentinel: two published ones, MongoDB's form, and broken ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from data.errors import SourceError
from data.ingest.reader import Batch, Options, Source
from data.ingest.readers import known_readers
from data.ingest.readers.health import nvsentinel

REAL = Path(__file__).parents[4] / "shared" / "data" / "collect" / "kubernetes" / "nvsentinel"
needs_files = pytest.mark.skipif(not REAL.exists(), reason="no ../shared/data/collect here")
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
EVENT: dict[str, Any] = {
    "version": 1, "agent": "syslog-health-monitor", "componentClass": "GPU",
    "checkName": "SysLogsXIDError", "isFatal": True, "isHealthy": False, "message": "XID 79",
    "recommendedAction": 15, "errorCode": ["79"], "nodeName": "gpu7",
    "entitiesImpacted": [{"entityType": "PCI", "entityValue": "0000:3b:00"},
                         {"entityType": "GPU", "entityValue": "3"}],
    "generatedTimestamp": "2024-03-01T12:00:00.000000Z",
}  # fmt: skip


def read(path: Path, **options: Any) -> Batch:
    source = Source(path, path.name, datetime(2025, 3, 1, tzinfo=UTC))
    return nvsentinel.READER.read(source, Options(**options), duckdb.cursor())


def read_records(folder: Path, *records: object, **options: Any) -> Batch:
    path = folder / "events.json"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return read(path, **options)


def rows(batch: Batch) -> list[dict[str, Any]]:
    frame = batch.tables["health_events"].astype(object)
    return list(frame.where(frame.notna(), None).to_dict("records"))


@needs_files
@pytest.mark.parametrize("name", ["fatal-health-event.json", "xid-79-error.json"])
def test_the_published_events_are_xid_79_without_a_time(name: str) -> None:
    batch = read(REAL / name)
    (row,) = rows(batch)
    assert (row["check_name"], row["xid"], row["gpu"], row["node"], row["observed_at"]) == (
        "GpuXidError", 79, "0", "NODE_NAME", None,
    )  # fmt: skip
    assert (batch.rows_read, batch.rejected.total) == (1, 0)
    head = (REAL / name).read_text()
    assert [one for one, reader in known_readers().items() if reader.sniff(head)] == ["nvsentinel"]


def test_the_forms_of_sender_and_store_give_the_same_row(tmp_path: Path) -> None:
    stored = {name.lower(): value for name, value in EVENT.items()}
    stored["generatedtimestamp"] = {"seconds": 1709294400, "nanos": 0}
    forms: list[object] = [
        EVENT,
        {"version": 1, "events": [EVENT]},
        {"_id": {"$oid": "1"}, "createdAt": {"$date": "2024-03-01T12:00:00Z"},
         "healthevent": {k: v for k, v in stored.items() if k != "generatedtimestamp"}},
        {"createdAt": {"$date": {"$numberLong": "1709294400000"}},
         "healthevent": {k: v for k, v in stored.items() if k != "generatedtimestamp"}},
        {"createdAt": {"$date": 1709294400000},
         "healthevent": {k: v for k, v in stored.items() if k != "generatedtimestamp"}},
        {"healthevent": stored},
    ]  # fmt: skip
    found = [rows(read_records(tmp_path, form)) for form in forms]
    assert found == [found[0]] * len(forms)
    (row,) = found[0]
    assert (row["node"], row["gpu"], row["xid"], row["severity"], row["observed_at"]) == (
        "gpu7", "3", 79, "critical", NOON,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"isFatal": False}, {"severity": "warning"}),
        ({"errorCode": ["79", "48"]}, {"xid": None}),
        ({"errorCode": ["DCGM_FR_PCI"]}, {"xid": None}),
        ({"checkName": "GpuPcieWatch"}, {"xid": None, "check_name": "GpuPcieWatch"}),
        ({"entitiesImpacted": [{"entityType": "PCI", "entityValue": "0000:3b:00"}]},
         {"gpu": "0000:3b:00"}),
        ({"entitiesImpacted": None}, {"gpu": None}),
        ({"message": None}, {"message": None}),
        ({"generatedTimestamp": None}, {"observed_at": None}),
    ],
)  # fmt: skip
def test_what_an_event_does_not_say_stays_unknown(
    tmp_path: Path, change: dict[str, Any], wanted: dict[str, Any]
) -> None:
    (row,) = rows(read_records(tmp_path, EVENT | change))
    assert {name: row[name] for name in wanted} == wanted


def test_every_gpu_named_has_a_row_and_the_record_counts_once(tmp_path: Path) -> None:
    both = [{"entityType": "gpu", "entityValue": value} for value in ("0", "1", "0")]
    batch = read_records(tmp_path, EVENT | {"entitiesImpacted": both})
    assert [row["gpu"] for row in rows(batch)] == ["0", "1"]
    assert batch.rows_read == batch.rows_kept == 1


def test_what_is_well_is_skipped(tmp_path: Path) -> None:
    batch = read_records(tmp_path, EVENT, EVENT | {"isHealthy": True, "isFatal": False})
    assert (batch.rows_kept, batch.skipped_by_reason) == (1, {"healthy": 1})


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ([7], "not a JSON object"),
        (EVENT | {"nodeName": ""}, "no nodeName"),
        (EVENT | {"checkName": None}, "no checkName"),
        (EVENT | {"isFatal": "yes"}, "isHealthy and isFatal are not true or false"),
        (EVENT | {"generatedTimestamp": "noon"}, "impossible time"),
        (EVENT | {"generatedTimestamp": 7}, "impossible time"),
        (EVENT | {"generatedTimestamp": [1]}, "impossible time"),
    ],
)
def test_a_broken_event_is_rejected_beside_a_whole_one(
    tmp_path: Path, record: object, reason: str
) -> None:
    batch = read_records(tmp_path, EVENT, record)
    assert (batch.rows_kept, dict(batch.rejected.by_reason)) == (1, {reason: 1})


def test_the_order_of_events_does_not_matter(tmp_path: Path) -> None:
    events = [EVENT, EVENT | {"nodeName": "gpu8"}, EVENT, EVENT | {"message": "again"}]
    keys = [
        set(read_records(tmp_path, *some).tables["health_events"]["event_id"])
        for some in (events, events[::-1])
    ]
    assert keys[0] == keys[1]
    assert len(keys[0]) == len(events)


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no records"):
        read_records(tmp_path)
