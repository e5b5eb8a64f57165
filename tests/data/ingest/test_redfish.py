"""Log entries and events of Redfish: published ones of four makers, and broken ones."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from analytics.failures.precedence import weights
from data.errors import SourceError
from data.ingest.reader import Batch, Options, Source
from data.ingest.readers import known_readers
from data.ingest.readers.health import redfish

REAL = Path(__file__).parents[4] / "shared" / "data" / "collect" / "redfish"
needs_files = pytest.mark.skipif(not REAL.exists(), reason="no ../shared/data/collect here")
EVENT = {
    "EventId": "1", "EventTimestamp": "2024-03-01T14:00:00+0200", "MessageId": "MEM0001",
    "Message": "Multi-bit memory errors detected on a memory device at DIMM A1.",
    "Severity": "Critical",
}  # fmt: skip
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def read(path: Path, **options: Any) -> Batch:
    source = Source(path, path.name, datetime(2025, 3, 1, tzinfo=UTC))
    return redfish.READER.read(source, Options(**{"node": "n1", **options}), duckdb.cursor())


def read_text(folder: Path, text: str, **options: Any) -> Batch:
    path = folder / "redfish.json"
    path.write_bytes(text.encode())
    return read(path, **options)


def payload(*events: object) -> str:
    return json.dumps({"@odata.type": "#Event.v1_3_0.Event", "Events": events}, indent=1)


@needs_files
def test_the_published_events_hold_four_critical_ones() -> None:
    batches = [read(path) for path in sorted(REAL.glob("hw-event-proxy/*.json"))]
    assert (len(batches), sum(batch.rows_read for batch in batches)) == (13, 14)
    assert sum(batch.rows_kept for batch in batches) == 14
    severities = Counter(
        severity for batch in batches for severity in batch.tables["health_events"]["severity"]
    )
    assert severities["critical"] == 4


@needs_files
@pytest.mark.parametrize(
    ("name", "kept", "skipped", "severities"),
    [
        ("dmtf/Entries_index.json", 2, {}, {"critical"}),
        ("bmclib/dell_entries.json", 2, {}, {"info"}),
        ("bmclib/lenovo_ls.sel.entries.json", 0, {"link_only": 1}, set()),
        ("bmclib/lenovo_ls.sel.entry.1.json", 1, {}, {"info"}),
    ],
)
def test_the_published_logs(
    name: str, kept: int, skipped: dict[str, int], severities: set[str]
) -> None:
    batch = read(REAL / name)
    assert (batch.rows_kept, batch.skipped_by_reason, batch.rejected.total) == (kept, skipped, 0)
    assert set(batch.tables["health_events"]["severity"]) == severities
    assert any("nextLink" in notice for notice in batch.notices) is name.startswith("dmtf")


@needs_files
def test_published_files_are_recognised_by_this_reader_alone() -> None:
    for path in REAL.glob("*/*.json"):
        head = path.read_text()[:60_000]
        assert [name for name, reader in known_readers().items() if reader.sniff(head)] == [
            "redfish"
        ]


def test_an_event_has_its_instant_check_and_cause(tmp_path: Path) -> None:
    (row,) = read_text(tmp_path, payload(EVENT)).tables["health_events"].to_dict("records")
    assert (row["observed_at"], row["check_name"], row["severity"], row["source"]) == (
        NOON, "redfish_mem", "critical", "bmc",
    )  # fmt: skip
    assert weights().cause_of(row["check_name"], row["message"]) == "host_memory"


@pytest.mark.parametrize(
    ("message_id", "sensor", "check", "cause"),
    [
        ("IDRAC.2.8.TMP0110", None, "redfish_tmp", "cooling"),
        ("FAN0001", None, "redfish_fan", "cooling"),
        ("PSU0003", None, "redfish_psu", "power"),
        ("STOR1", None, "redfish_stor", "disk"),
        ("0x592A28", "Temperature", "redfish_temperature", "cooling"),
        ("CPU0000", None, "redfish_cpu", "cpu"),
        (None, "Memory", "redfish_memory", "host_memory"),
        ("0x592A28", None, "redfish", None),
    ],
)
def test_the_check_says_the_component(
    tmp_path: Path, message_id: str | None, sensor: str | None, check: str, cause: str | None
) -> None:
    event = EVENT | {"MessageId": message_id, "SensorType": sensor, "Message": "told so"}
    (row,) = read_text(tmp_path, payload(event)).tables["health_events"].to_dict("records")
    assert row["check_name"] == check
    assert weights().cause_of(check, "told so") == cause


@pytest.mark.parametrize(
    ("change", "severity"),
    [
        ({"Severity": "OK"}, "info"),
        ({"Severity": "Informational"}, "info"),
        ({"Severity": "OK", "MessageSeverity": "Warning"}, "warning"),
        ({"EntryCode": "Deassert"}, "info"),
        ({"Resolved": True}, "info"),
        ({"Severity": None}, None),
        ({"Severity": ["Critical"]}, None),
    ],
)
def test_severity_is_what_the_service_processor_says(
    tmp_path: Path, change: dict[str, Any], severity: str | None
) -> None:
    frame = read_text(tmp_path, payload(EVENT | change)).tables["health_events"]
    assert frame["severity"].dropna().tolist() == ([] if severity is None else [severity])


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"EventId": "1"}, "no Message and no MessageId"),
        (7, "not a JSON object"),
        (EVENT | {"EventTimestamp": "noon"}, "impossible time"),
        (EVENT | {"EventTimestamp": 7}, "impossible time"),
    ],
)
def test_a_broken_record_is_rejected_beside_a_whole_one(
    tmp_path: Path, record: object, reason: str
) -> None:
    batch = read_text(tmp_path, payload(EVENT, record))
    assert (batch.rows_kept, dict(batch.rejected.by_reason)) == (1, {reason: 1})


@pytest.mark.parametrize(
    "text",
    [
        payload(EVENT) + "\n" + payload(EVENT | {"EventId": "2"}),
        "\ufeff" + payload(EVENT, EVENT).replace("\n", "\r\n"),
        json.dumps(EVENT) + "\n" + json.dumps(EVENT) + "\n",
        json.dumps([EVENT, EVENT]),
    ],
)
def test_every_arrangement_gives_the_same_rows(tmp_path: Path, text: str) -> None:
    batch = read_text(tmp_path, text)
    assert (batch.rows_read, batch.rows_kept) == (2, 2)
    wanted = read_text(tmp_path, payload(EVENT, EVENT)).tables["health_events"]["event_id"]
    assert set(batch.tables["health_events"]["event_id"]) == set(wanted)


def test_a_cut_file_keeps_what_precedes_the_cut(tmp_path: Path) -> None:
    text = payload(EVENT, EVENT | {"EventId": "2"})
    batch = read_text(tmp_path, text[:-60])
    assert (batch.rows_kept, batch.rejected.total) == (1, 1)
    assert any("ends early" in notice for notice in batch.notices)


def test_a_time_before_the_clock_was_set_is_unknown(tmp_path: Path) -> None:
    event = EVENT | {"EventTimestamp": "1970-01-01T00:00:07Z"}
    assert read_text(tmp_path, payload(event)).tables["health_events"]["observed_at"].isna().all()


def test_without_a_host_nothing_is_invented(tmp_path: Path) -> None:
    batch = read_text(tmp_path, payload(EVENT), node=None)
    assert dict(batch.rejected.by_reason) == {"no host in the record: pass --node": 1}


@pytest.mark.parametrize("text", ["", '{"@odata.type": "#Event.v1_3_0.Event", "Events": []}'])
def test_a_file_without_records_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError, match="holds no records"):
        read_text(tmp_path, text)
