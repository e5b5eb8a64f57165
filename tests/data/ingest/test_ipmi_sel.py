"""Event logs of service processors: forms of ipmitool's manual and sources, and a real one of -v."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from analytics.failures.precedence import weights
from data.errors import SourceError
from data.ingest.reader import Batch, Options, Source
from data.ingest.readers.health import ipmi_sel

REAL = Path(__file__).parents[4] / "shared" / "data" / "collect" / "ipmi"
needs_files = pytest.mark.skipif(not REAL.exists(), reason="no ../shared/data/collect here")
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def read(path: Path, **options: Any) -> Batch:
    source = Source(path, path.name, datetime(2025, 3, 1, tzinfo=UTC))
    return ipmi_sel.READER.read(source, Options(**{"node": "n1", **options}), duckdb.cursor())


def read_text(folder: Path, text: str, **options: Any) -> Batch:
    path = folder / "sel"
    path.write_bytes(text.encode())
    return read(path, **options)


def rows(batch: Batch) -> list[dict[str, Any]]:
    return list(batch.tables["health_events"].astype(object).to_dict("records"))


@needs_files
def test_the_real_blocks_are_two_events_without_words() -> None:
    path = REAL / "moxspec_selelist.in"
    batch = read(path)
    assert (batch.rows_read, batch.rows_kept, batch.rejected.total) == (2, 2, 0)
    frame = batch.tables["health_events"]
    assert frame["severity"].isna().all()
    assert frame["message"].tolist() == ["Other #0x10", "Other #0x10"]
    assert frame["observed_at"].tolist() == [datetime(2019, 8, 21, 13, 3, 9, tzinfo=UTC)] * 2
    assert frame["event_id"].nunique() == 2
    assert ipmi_sel.sniff(path.read_text())
    assert not ipmi_sel.sniff((REAL / "moxspec_README.md").read_text())


EVENTS = {
    "Memory #0x02 | Uncorrectable ECC | Asserted": ("sel_memory", "critical", "host_memory"),
    "Memory DIMM_A1 | Correctable ECC | Asserted": ("sel_memory", "info", "host_memory"),
    "Memory | Correctable ECC logging limit reached | Asserted": (
        "sel_memory", "warning", "host_memory"),
    "Processor CPU1 | IERR | Asserted": ("sel_processor", "critical", "cpu"),
    "Processor | Uncorrectable machine check exception | Asserted": (
        "sel_processor", "critical", "cpu"),
    "Power Supply PS1 Status | Failure detected | Asserted": (
        "sel_power_supply", "warning", "power"),
    "Power Supply PS1 Status | Failure detected | Deasserted": (
        "sel_power_supply", "info", "power"),
    "Power Unit #0x01 | Redundancy Lost | Asserted": ("sel_power_unit", "warning", "power"),
    "Temperature Inlet | Upper Critical going high | Asserted | Reading 95 > Threshold 90 degrees C":
        ("sel_temperature", "critical", "cooling"),
    "Temperature Inlet | Upper Non-critical going high | Asserted": (
        "sel_temperature", "warning", "cooling"),
    "Fan FAN1 | Lower Non-recoverable going low  | Asserted": ("sel_fan", "critical", "cooling"),
    "Drive Slot / Bay HDD3 | Drive Fault | Asserted": ("sel_drive_slot", "warning", "disk"),
    "Critical Interrupt PCIe | Bus Fatal Error | Asserted": (
        "sel_critical_interrupt", "critical", "pcie"),
    "System ACPI Power State | S0/G0: working | Asserted": (
        "sel_system_acpi_power_state", "info", None),
    "Unknown #0x71 |  | Asserted": ("sel", None, None),
}  # fmt: skip


@pytest.mark.parametrize("mark", [" | ", ","])
@pytest.mark.parametrize("event", EVENTS)
def test_an_event_has_severity_and_cause(tmp_path: Path, event: str, mark: str) -> None:
    line = f"   a | 03/01/2024 | 12:00:00 | {event}".replace(" | ", mark)
    (row,) = rows(read_text(tmp_path, line + "\r\n"))
    check, severity, cause = EVENTS[event]
    assert (row["check_name"], row["observed_at"], row["node"]) == (check, NOON, "n1")
    assert (None if row["severity"] is pd.NA else row["severity"]) == severity
    assert weights().cause_of(check, row["message"]) == cause


@pytest.mark.parametrize(
    ("stamp", "options", "at"),
    [
        ("03/01/2024 | 12:00:00 UTC", {}, NOON),
        ("03/01/2024 | 13:00:00 CET", {"timezone": "Europe/Berlin"}, NOON),
        ("03/01/2024 | 13:00:00", {"timezone": "Europe/Berlin"}, NOON),
        ("03/01/24 | 12:00:00 PM UTC", {}, NOON),
        ("2024-03-01 | 12:00:00", {}, NOON),
        ("01/01/1970 | 00:00:21", {}, None),
        ("Pre-Init Time-stamp  ", {}, None),
        ("Pre-Init  |0000000007", {}, None),
    ],
)
def test_times_with_and_without_zone(
    tmp_path: Path, stamp: str, options: dict[str, Any], at: datetime | None
) -> None:
    batch = read_text(
        tmp_path, f"1 | {stamp} | Fan #0x1 | Lower Critical going low | Asserted\n", **options
    )
    frame = batch.tables["health_events"]
    assert frame["check_name"].tolist() == ["sel_fan"]
    if at is None:
        assert frame["observed_at"].isna().all()
    else:
        assert frame["observed_at"].tolist() == [at]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 | 13/45/2024 | 12:00:00 | Fan #0x1 | x | Asserted", "impossible time"),
        ("1 | 03/01/2024 | 12:00:00 CST | Fan #0x1 | x | Asserted",
         "zone on the line is not the cluster's: pass --timezone"),
        ("1 | 03/01/2024 | 12:0", "no event of ipmitool"),
        ("Get SEL Info command failed", "no event of ipmitool"),
        ("SEL Record ID : 0001", "record without sensor and description"),
    ],
)  # fmt: skip
def test_what_is_no_event_is_rejected(tmp_path: Path, line: str, reason: str) -> None:
    batch = read_text(tmp_path, f"\ufeff{line}\n")
    assert (batch.rows_kept, dict(batch.rejected.by_reason)) == (0, {reason: 1})


def test_hosts_before_lines_and_lines_to_skip(tmp_path: Path) -> None:
    event = "1 | 03/01/2024 | 12:00:00 | Fan #0x1 | Lower Critical going low | Asserted"
    text = f"gpu7: {event}\ngpu8:   {event}\ngpu9: SEL has no entries\n2 | OEM record e0 | 0137 | 00\n{event}\n"
    batch = read_text(tmp_path, text, node=None)
    assert [row["node"] for row in rows(batch)] == ["gpu7", "gpu8"]
    assert batch.skipped_by_reason == {"no_entries": 1, "oem_record": 1}
    assert dict(batch.rejected.by_reason) == {"no host on the line: pass --node": 1}
    assert batch.rows_read == 5


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no records"):
        read_text(tmp_path, " \n")


@pytest.mark.parametrize(
    "head", ["1 | 2 | 3\n", "a,b,c\n1,03/01/2024,x\n", "JobID|State\n1|FAILED\n"]
)
def test_other_tables_are_not_taken(head: str) -> None:
    assert not ipmi_sel.sniff(head)
