"""Kernel logs in all the forms they come in."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import SourceError
from data.ingest.reader import Batch, Options, RecordError, Source
from data.ingest.readers.logs import kernel_log
from data.ingest.readers.logs.kernel_line import Fault, fault_of, pci_address, split_line
from data.ingest.readers.logs.kernel_prefix import prefix_of
from data.ingest.readers.logs.prefix import Prefix

LOGS = Path(__file__).parents[4] / "shared" / "data" / "kernel_logs"
needs_logs = pytest.mark.skipif(not LOGS.exists(), reason="no ../shared/data/kernel_logs here")

XID = "NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s"
SWITCH = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 46 sourcetrack timeout"
NOISE = "[Sun Feb 23 16:24:18 2025] IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready"
WRITTEN = datetime(2025, 3, 1, 12, tzinfo=UTC)
FEB_23 = datetime(2025, 2, 23, 16, 24, 18, tzinfo=UTC)


def read(folder: Path, text: str, **options: Any) -> Batch:
    path = folder / "log"
    path.write_text(text, encoding="utf-8", newline="")
    return read_file(path, **options)


def read_file(path: Path, **options: Any) -> Batch:
    source_options = {
        key: options.pop(key) for key in ("modified_at", "truncated") if key in options
    }
    source = Source(path, path.name, **({"modified_at": WRITTEN} | source_options))
    return kernel_log.read(source, Options(**options), duckdb.cursor())


def rows(batch: Batch) -> list[dict[str, Any]]:
    frame = batch.tables["health_events"]
    return [
        {key: None if value is None or value != value else value for key, value in row.items()}
        for row in frame.astype(object).where(frame.notna(), None).to_dict("records")
    ]


def only(batch: Batch) -> dict[str, Any]:
    assert batch.rejected == []
    (row,) = rows(batch)
    return row


def adds_up(batch: Batch) -> bool:
    skipped = sum(batch.skipped_by_reason.values())
    return batch.rows_read == batch.rows_kept + skipped + len(batch.rejected)


@pytest.mark.parametrize(
    ("prefix", "host", "time"),
    [
        ("[Sun Feb 23 16:24:18 2025] ", None, FEB_23),
        ("[Mon Feb  3 16:24:18 2025] ", None, FEB_23.replace(day=3)),
        ("kern  :warn  : [Sun Feb 23 16:24:18 2025] ", None, FEB_23),
        ("<4>[Sun Feb 23 16:24:18 2025] ", None, FEB_23),
        ("[Feb23 16:24] ", None, FEB_23.replace(second=0)),
        (
            "kern  :err   : 2025-02-23T17:24:18,859532+01:00 ",
            None,
            FEB_23.replace(microsecond=859532),
        ),
        ("Feb 23 16:24:18 gpu-17 kernel: ", "gpu-17", FEB_23),
        ("Feb 23 16:24:18 gpu-17 kernel: [206764.307641] ", "gpu-17", FEB_23),
        ("Feb 23 16:24:18.250 gpu-17 kernel: ", "gpu-17", FEB_23.replace(microsecond=250_000)),
        ("<4>Feb 23 16:24:18 gpu-17 kernel: ", "gpu-17", FEB_23),
        ("Feb 23 16:24:18 gpu-17 user.warn kernel: ", "gpu-17", FEB_23),
        ("Feb 23 16:24:18 gpu-17 ", "gpu-17", FEB_23),
        ("Feb 23 16:24:18 kernel: ", None, FEB_23),
        ("2025-02-23T17:24:18+0100 gpu-17 kernel: ", "gpu-17", FEB_23),
        ("2025-02-23T17:24:18+01:00 gpu-17.hal.org kernel: ", "gpu-17.hal.org", FEB_23),
        ("2025-02-23T16:24:18.000250Z gpu-17 kernel: ", "gpu-17", FEB_23.replace(microsecond=250)),
        ("Sun 2025-02-23 16:24:18 UTC gpu-17 kernel: ", "gpu-17", FEB_23),
        ("2025-02-23 16:24:18 UTC gpu-17 kernel: ", "gpu-17", FEB_23),
        ("messages-20250301:Feb 23 16:24:18 gpu-17 kernel: ", "gpu-17", FEB_23),
        ("/var/log/kern.log:4711:Feb 23 16:24:18 gpu-17 kernel: ", "gpu-17", FEB_23),
        ("gpu-17 | [Sun Feb 23 16:24:18 2025] ", "gpu-17", FEB_23),
        ("gpu-exporter-1  | [Sun Feb 23 16:24:18 2025] ", None, FEB_23),
        ("node_logger_1 | [Sun Feb 23 16:24:18 2025] ", None, FEB_23),
        ("node_logger_1    | Feb 23 16:24:18 gpu-17 kernel: ", "gpu-17", FEB_23),
        ("2025-02-23T16:24:18.000000000Z stderr F ", None, FEB_23),
        ("2025-02-23T16:25:00.1Z stdout F [Sun Feb 23 16:24:18 2025] ", None, FEB_23),
        ("2025-02-23T16:25:00.1Z stdout P Feb 23 16:24:18 gpu-17 kernel: ", "gpu-17", FEB_23),
        ("\ufeffFeb 23 16:24:18 gpu-17 kernel: ", "gpu-17", FEB_23),
        ("[1,0]<stdout>:[Sun Feb 23 16:24:18 2025] ", None, FEB_23),
        ("10.1.2.3: kern: warning: [2025-02-23T16:24:18.000000000Z]: ", "10.1.2.3", FEB_23),
        ("\x1b[32m[Sun Feb 23 16:24:18 2025] \x1b[0m\x1b[33m", None, FEB_23),
        (
            "Feb 23 16:24:18 gpu-17 kernel: message repeated 2 times: [ [206764.307641] ",
            "gpu-17",
            FEB_23,
        ),
        ("1740327858.000000 gpu-17 kernel: ", "gpu-17", FEB_23),
        ("<4>1 2025-02-23T16:24:18Z gpu-17 kernel - - - ", "gpu-17", FEB_23),
        ('<4>1 2025-02-23T16:24:18Z gpu-17 kernel - ID4 [x@1 a="b"] ', "gpu-17", FEB_23),
        ("<4>1 2025-02-23T16:24:18Z - kernel - - - ", None, FEB_23),
        ("gpu-17: [Sun Feb 23 16:24:18 2025] ", "gpu-17", FEB_23),
        ("", None, None),
        ("[  +0.000003] ", None, None),
    ],
)
def test_host_and_time_are_found_before_the_message(
    tmp_path: Path, prefix: str, host: str | None, time: datetime | None
) -> None:
    row = only(read(tmp_path, f"{prefix}{XID}\n", node="from-option"))
    assert row["node"] == (host or "from-option")
    assert row["observed_at"] == time
    assert row["message"] == XID
    assert (row["check_name"], row["xid"], row["sxid"]) == ("xid", 119, None)
    assert (row["gpu"], row["severity"], row["source"]) == ("0000:9b:00", None, "kernel")


@pytest.mark.parametrize(
    ("prefix", "seconds"),
    [
        ("[ 206764.307641] ", 206764.307641),
        ("<6>[    1.000001] ", 1.000001),
        ("kern  :warn  : [ 206764.307641] ", 206764.307641),
        ("[ 206764.307641 <    0.000003>] ", 206764.307641),
        ("[ 206764.307641][ T1234] ", 206764.307641),
        ("6,3964,206764307641,-;", 206764.307641),
        ("[206764.307641] gpu-17 kernel: ", 206764.307641),
    ],
)
def test_time_since_boot_needs_the_time_of_the_boot(
    tmp_path: Path, prefix: str, seconds: float
) -> None:
    unknown = read(tmp_path, f"{prefix}{XID}\n", node="n1")
    assert only(unknown)["observed_at"] is None
    assert any("--boot-at" in notice and notice.endswith(": 1") for notice in unknown.notices)
    known = read(tmp_path, f"{prefix}{XID}\n", node="n1", boot_at=FEB_23)
    assert only(known)["observed_at"] == FEB_23 + timedelta(seconds=seconds)
    assert known.notices == []


def test_journal_records_in_json_carry_host_time_and_message(tmp_path: Path) -> None:
    record = {
        "_HOSTNAME": "gpu-17",
        "__REALTIME_TIMESTAMP": "1740327858000000",
        "_TRANSPORT": "kernel",
        "MESSAGE": XID,
    }
    as_bytes = record | {"MESSAGE": list(SWITCH.encode() + b"\xff")}
    lines = [
        json.dumps(record),
        json.dumps(as_bytes, separators=(",", ":")),
        json.dumps(record | {"_TRANSPORT": "syslog", "SYSLOG_IDENTIFIER": "gpud"}),
        json.dumps(record | {"MESSAGE": "usb 1-1: new device"}),
        json.dumps(record)[:-20],
        '{"MESSAGE": NVRM: Xid',
    ]
    batch = read(tmp_path, "\n".join(lines))
    first, second, cut = rows(batch)
    assert (cut["node"], cut["observed_at"], cut["xid"]) == ("gpu-17", FEB_23, 119)
    assert (first["node"], first["observed_at"], first["xid"]) == ("gpu-17", FEB_23, 119)
    assert (second["sxid"], second["message"]) == (24007, SWITCH + "\ufffd")
    assert batch.skipped_by_reason == {"not_from_kernel": 1, "no_fault": 1}
    assert [record.reason for record in batch.rejected] == ["broken JSON line of the journal"]
    assert adds_up(batch)


@pytest.mark.parametrize(
    ("message", "code", "address"),
    [
        ("NVRM: Xid (PCI:0000:3b:00): 63, Row Remapper: New row marked", 63, "0000:3b:00"),
        ("NVRM: Xid (0000:03:00): 13, 0001 00000000 00005097", 13, "0000:03:00"),
        ("NVRM: Xid (PCI:0000:05:00 GPU-I:05): 31, pid=7, MMU Fault", 31, "0000:05:00"),
        ("NVRM: Xid (PCI:0000:05:00 GPU-I:05): 31, x", 31, "0000:05:00"),
        ("NVRM: Xid (PCI:0000:CB:00): 13, pid='<unknown>', name=<unknown>, Grap", 13, "0000:cb:00"),
        (
            "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0",
            154,
            "0009:01:00",
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 144, SAW_MVB Nonfatal XC0 i0 Link 0 (0x1)",
            144,
            "0000:01:00",
        ),
    ],
)
def test_every_spelling_of_an_xid_is_read(
    tmp_path: Path, message: str, code: int, address: str
) -> None:
    row = only(read(tmp_path, f"Feb 23 16:24:18 n1 kernel: {message}\n"))
    assert (row["xid"], row["gpu"], row["message"]) == (code, address, message)


def test_a_switch_error_is_one_event_and_its_detail_lines_are_skipped(tmp_path: Path) -> None:
    start = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 22013,"
    text = "".join(
        f"[   38.17424{n}] {start} {rest}\n"
        for n, rest in enumerate(
            [
                "Data {0x0000002b, 0x0000002b}",
                "Non-fatal, Link 44 Minion Link DLREQ interrupt",
                "Severity 0 Engine instance 44 Sub-engine instance 00",
            ]
        )
    )
    batch = read(tmp_path, text, node="n1", boot_at=FEB_23)
    row = only(batch)
    assert (row["check_name"], row["sxid"], row["xid"]) == ("sxid", 22013, None)
    assert (row["gpu"], row["severity"]) == ("0000:c1:00", None)
    assert batch.skipped_by_reason == {"sxid_detail": 2}


@pytest.mark.parametrize(
    ("message", "address"),
    [
        ("NVRM: GPU at PCI:0000:9B:00: GPU has fallen off the bus.", "0000:9b:00"),
        ("NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.", "0000:9b:00"),
        ("GPU 0000:9b:00.0: GPU has fallen off the bus.", "0000:9b:00"),
        ("NVRM: GPU has fallen off the bus.", None),
        (
            "NVRM: The NVIDIA GPU 0000:0e:00.0 (PCI ID: 10de:1b06) has fallen off the bus",
            "0000:0e:00",
        ),
    ],
)
def test_a_lost_gpu_without_a_code_is_critical(
    tmp_path: Path, message: str, address: str | None
) -> None:
    row = only(read(tmp_path, f"Feb 23 16:24:18 n1 kernel: {message}\n"))
    assert (row["check_name"], row["severity"]) == ("gpu_lost", "critical")
    assert (row["xid"], row["gpu"], row["message"]) == (None, address, message)


def test_a_lost_gpu_reported_over_three_lines_gets_address_time_and_host_of_the_first(
    tmp_path: Path,
) -> None:
    text = (
        "Feb 23 16:24:18 n1 kernel: [14387.20] NVRM: The NVIDIA GPU 0000:5d:00.0\n"
        "               NVRM: (PCI ID: 10de:2330) installed in this system has\n"
        "               NVRM: fallen off the bus and is not responding to commands.\n"
        "Feb 23 16:25:18 n2 kernel: NVRM: fallen off the bus and is not responding\n"
    )
    batch = read(tmp_path, text)
    first, other_host = rows(batch)
    assert (first["node"], first["gpu"], first["observed_at"]) == ("n1", "0000:5d:00", FEB_23)
    assert (other_host["node"], other_host["gpu"]) == ("n2", None)
    assert batch.skipped_by_reason == {"no_fault": 2}


def test_a_line_that_syslog_folded_is_one_event(tmp_path: Path) -> None:
    folded = f"Feb 23 16:24:18 n1 kernel: message repeated 3 times: [ {XID}]"
    assert only(read(tmp_path, folded))["message"] == XID


def test_an_xid_79_stays_an_xid_though_its_text_speaks_of_the_bus(tmp_path: Path) -> None:
    line = "NVRM: Xid (PCI:0000:9b:00): 79, pid=1, name=x, GPU has fallen off the bus."
    row = only(read(tmp_path, line, node="n1"))
    assert (row["check_name"], row["xid"], row["severity"]) == ("xid", 79, None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b", "mutilated XID line"),
        ("[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): , pid=1", "mutilated XID line"),
        ("[1.0] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): garbled", "mutilated SXid line"),
        (f"Sun Feb 23 16:24:18 2025] {XID}", "unknown text before the kernel's message"),
        (f"ripgrep {XID}", "unknown text before the kernel's message"),
        (
            f"Feb 23 16:24:18 n1 kernel: nvidia 0000:9b:00.0: {XID}",
            "unknown text before the kernel's message",
        ),
    ],
)
def test_a_mutilated_line_is_rejected_with_its_reason(
    tmp_path: Path, line: str, reason: str
) -> None:
    batch = read(tmp_path, f"{NOISE}\n\n{line}\n", node="n1")
    (rejected,) = batch.rejected
    assert (rejected.line_no, rejected.reason, rejected.raw) == (3, reason, line)
    assert (batch.rows_read, batch.rows_kept) == (2, 0)


def test_a_line_without_host_is_rejected_unless_the_node_is_given(tmp_path: Path) -> None:
    line = f"[Sun Feb 23 16:24:18 2025] {XID}"
    (rejected,) = read(tmp_path, line).rejected
    assert rejected.reason == "no host on the line: pass --node"
    assert only(read(tmp_path, line, node="n1"))["node"] == "n1"
    with_host = f"Feb 23 16:24:18 n2 kernel: {XID}"
    assert only(read(tmp_path, with_host, node="n1"))["node"] == "n2"


@pytest.mark.parametrize(
    "line",
    [
        f"Feb 23 16:24:18 n1 gpud[12]: found {XID}",
        f"Feb 23 16:24:18 n1 sudo: admin : COMMAND=/bin/grep {XID}",
        f"<14>1 2025-02-23T16:24:18Z n1 gpud 12 - - saw {XID}",
    ],
)
def test_another_program_quoting_the_kernel_is_no_event(tmp_path: Path, line: str) -> None:
    batch = read(tmp_path, line)
    assert (batch.rows_kept, batch.skipped_by_reason) == (0, {"not_from_kernel": 1})


def test_a_time_without_year_takes_the_last_one_before_the_file_was_written(
    tmp_path: Path,
) -> None:
    text = f"Dec 31 23:59:59 n1 kernel: {XID}\nJan  1 00:00:01 n1 kernel: {XID}\n"
    batch = read(tmp_path, text, timezone="UTC")
    assert [row["observed_at"].year for row in rows(batch)] == [2024, 2025]
    (notice,) = batch.notices
    assert "2024 and 2025" in notice
    assert "2025-03-01" in notice
    assert "--year" in notice
    given_year = read(tmp_path, text, timezone="UTC", year=2019)
    assert {row["observed_at"].year for row in rows(given_year)} == {2019}
    assert given_year.notices == ["times without a year, read as 2019 as --year says: 2"]


def test_a_leap_day_without_year_is_put_into_a_leap_year(tmp_path: Path) -> None:
    line = f"Feb 29 01:00:00 n1 kernel: {XID}"
    assert only(read(tmp_path, line))["observed_at"].year == 2024
    batch = read(tmp_path, line, year=2025)
    assert rows(batch)[0]["observed_at"] is None
    assert batch.notices == ["events without any time, or at one that does not exist: 1"]


@pytest.mark.parametrize(
    "line",
    [
        f"[Sun Feb 30 16:24:18 2025] {XID}",
        f"[Sat Feb 29 16:24:18 2025] {XID}",
        f"[Sun Feb 23 25:24:18 2025] {XID}",
        f"Feb 31 16:24:18 n1 kernel: {XID}",
        f"2025-13-01T00:00:00Z n1 kernel: {XID}",
    ],
)
def test_an_event_at_a_time_that_does_not_exist_has_none(tmp_path: Path, line: str) -> None:
    batch = read(tmp_path, line, node="n1")
    assert rows(batch)[0]["observed_at"] is None
    assert batch.notices == ["events without any time, or at one that does not exist: 1"]


def test_local_times_are_read_in_the_zone_of_the_cluster(tmp_path: Path) -> None:
    line = f"[Sun Feb 23 16:24:18 2025] {XID}"
    assumed = read(tmp_path, line, node="n1")
    assert assumed.notices == ["times without a zone, read as UTC (pass --timezone): 1"]
    for options in (
        {"timezone": "Europe/Berlin"},
        {"cluster": "hal", "timezones": {"hal": "Europe/Berlin"}},
    ):
        batch = read(tmp_path, line, node="n1", **options)
        assert only(batch)["observed_at"] == FEB_23 - timedelta(hours=1)
        assert batch.notices == []


def test_an_hour_that_comes_twice_is_read_as_its_first_and_said(tmp_path: Path) -> None:
    line = f"[Sun Oct 26 02:30:00 2025] {XID}"
    batch = read(tmp_path, line, node="n1", timezone="Europe/Berlin")
    assert only(batch)["observed_at"] == datetime(2025, 10, 26, 0, 30, tzinfo=UTC)
    assert batch.notices == ["times in an hour that the clocks repeat, read as its first: 1"]
    named = f"Sun 2025-10-26 02:30:00 CET n1 kernel: {XID}"
    batch = read(tmp_path, named, timezone="Europe/Berlin")
    assert only(batch)["observed_at"] == datetime(2025, 10, 26, 1, 30, tzinfo=UTC)


def test_a_named_zone_that_is_not_the_clusters_is_rejected(tmp_path: Path) -> None:
    line = f"Sun 2025-02-23 16:24:18 CET n1 kernel: {XID}"
    (rejected,) = read(tmp_path, line, timezone="Asia/Tokyo").rejected
    assert rejected.reason == "zone on the line is not the cluster's: pass --timezone"


def test_a_named_zone_counts_where_it_means_one_offset_everywhere(tmp_path: Path) -> None:
    line = f"Sun 2025-02-23 16:24:18 CET n1 kernel: {XID}"
    assert only(read(tmp_path, line))["observed_at"] == FEB_23 - timedelta(hours=1)
    (rejected,) = read(tmp_path, line.replace("CET", "CST")).rejected  # Chicago, Shanghai, Havana
    assert rejected.reason == "zone on the line is not the cluster's: pass --timezone"


def test_an_unknown_time_zone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="'Mars/Olympus' is unknown"):
        read(tmp_path, f"[Sun Feb 23 16:24:18 2025] {XID}", node="n1", timezone="Mars/Olympus")


def test_true_duplicates_stay_and_reading_again_gives_the_same_ids(tmp_path: Path) -> None:
    text = f"Feb 23 16:24:18 n1 kernel: {XID}\n" * 2
    first = [row["event_id"] for row in rows(read(tmp_path, text))]
    assert len(set(first)) == 2
    assert [row["event_id"] for row in rows(read(tmp_path, text))] == first
    assert rows(read(tmp_path, text, cluster="other"))[0]["event_id"] not in first


def test_a_log_without_faults_is_no_mistake(tmp_path: Path) -> None:
    batch = read(tmp_path, f"{NOISE}\n\n{NOISE}\n")
    assert (batch.rows_read, batch.rows_kept, batch.rejected) == (2, 0, [])
    assert batch.skipped_by_reason == {"no_fault": 2}
    assert (batch.clusters, batch.first_at) == ((), None)


@pytest.mark.parametrize(
    "line",
    [
        "[    0.000000] Linux version 6.8.0 (buildd@host)", "Linux version 6.8.0 (buildd@host)",
        "[Sun Feb 23 16:24:18 2025] usb 1-1: new device", "[Feb23 16:24] usb 1-1: new device",
        "[  +0.000003] usb 1-1: new device", "[<    0.000003>] usb 1-1: new device",
        "[  206.307641 <    0.000003>] usb 1-1: new device", "<6>usb 1-1: new device",
        "kern  :info  : usb 1-1: new device", "kern  :info  : [    1.000000] usb 1-1: new device",
        "2025-02-23T16:24:18,859532+00:00 usb 1-1: new device",
        "6,3964,206764307,-;nvidia-nvswitch2: open (major=510)", "n7: [    1.000000] usb 1-1: new",
        "Feb 23 16:24:18 gpu-17 sshd[7]: session opened", "Feb 23 16:24:18 gpu-17 usb 1-1: new",
        "Feb 23 16:24:18 gpu-17 kernel: usb 1-1: new", "gpu-17 kernel: usb 1-1: new device",
        "2025-02-23T17:24:18.1+01:00 gpu-17 systemd[1]: Started a thing.",
        "Sun 2025-02-23 16:24:18 UTC gpu-17 systemd[1]: Started a thing.",
        "1740327858.000000 gpu-17 kernel: usb 1-1: new",
        "<30>1 2025-02-23T16:24:18Z gpu-17 systemd 1 - - Started a thing.",
        '{"MESSAGE":"usb 1-1: new","_HOSTNAME":"n1"}',
        '{"_HOSTNAME" : "n1", "__REALTIME_TIMESTAMP" : "1"}', "-- No entries --",
        "nvidia 0000:3b:00.0: enabling device", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module",
        "[Feb 25 2025 13:59:45] [INFO] [tid 1803] Received an inband message",
    ],
)  # fmt: skip
def test_one_line_of_a_log_of_any_form_is_enough(tmp_path: Path, line: str) -> None:
    batch = read(tmp_path, f"Call Trace:\n{line}\n")
    assert (batch.rows_read, batch.skipped_by_reason) == (2, {"no_fault": 2})


@pytest.mark.parametrize(
    "text",
    [
        "JobID|State|Start\n1|FAILED|2025-02-23T16:24:18\n",
        "Cluster|NodeName|TimeStart\na|n1|2025-02-23T16:24:18\n",
        '{"node": "n1", "message": "check passed", "observed_at": "2025-02-23T16:24:18Z"}\n',
        "time,node,what\n2025-02-23 16:24:18,n1,DIMM\n1,2,3;4\n",
        "2025-02-23 16:24:18,250 INFO trainer: step 7 loss 2.1\n",
        "2025-02-23T16:24:18.250Z INFO trainer: step 7 loss 2.1\n",
        "[2025-02-23 16:24:18,250][__main__][INFO] - step 7\n",
        "[2025-02-23T16:24:18.250] error: Nodes n1 not responding\n",
        "2025/02/23 16:24:18 main.go:7: listening\n",
        "I0223 16:24:18.250000 77 server.cc:12] listening\n",
        "- 1117838570 2005.06.03 R02-M1 2005-06-03-15.42.50 R02-M1 RAS KERNEL INFO parity error\n",
        "<html>\n<p>Xid errors</p>\n</html>\n",
        "# Minutes\n\n- 12 people came\n- the Xid list was read\n",
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError, match=r"log: is no kernel log: none of its \d+ lines has a"):
        read(tmp_path, text)


def test_a_cut_fault_is_no_file_of_another_kind(tmp_path: Path) -> None:
    assert len(read(tmp_path, "NVRM: Xid (PCI:\nand more\n").rejected) == 1


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_log_without_lines_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError, match="holds no lines"):
        read(tmp_path, text)


def test_the_cut_last_line_of_a_broken_archive_is_rejected(tmp_path: Path) -> None:
    text = f"Feb 23 16:24:18 n1 kernel: {XID}\nFeb 23 16:24:19 n1 kernel: {XID[:33]}"
    batch = read(tmp_path, text, truncated="gzip data ends early")
    assert batch.rows_kept == 1
    assert [record.reason for record in batch.rejected] == ["line cut off at the end of the file"]


def test_line_ends_of_windows_and_padding_with_nul_do_no_harm(tmp_path: Path) -> None:
    text = f"\ufeff{NOISE}\r\n" + "\0" * 40 + f"Feb 23 16:24:18 n1 kernel: {XID}\r\n"
    assert only(read(tmp_path, text))["message"] == XID


def test_the_batch_says_what_it_holds(tmp_path: Path) -> None:
    text = (
        f"Feb 23 16:24:18 n1 kernel: {XID}\n{NOISE}\n"
        f"Feb 24 16:24:18 n1 kernel: {SWITCH}\nNVRM: Xid\n"
    )
    batch = read(tmp_path, text, default_cluster="hal")
    assert adds_up(batch)
    assert batch.clusters == ("hal",)
    assert (batch.first_at, batch.last_at) == (FEB_23, FEB_23 + timedelta(days=1))
    assert read(tmp_path, text, cluster="rsc").clusters == ("rsc",)


def test_progress_is_told_of_a_long_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_log, "_PROGRESS_LINES", 2)
    told: list[str] = []
    read(tmp_path, f"{NOISE}\n" * 5, progress=told.append)
    assert told == ["log: 2 lines", "log: 4 lines"]


@pytest.mark.parametrize(
    ("head", "is_kernel_log"),
    [
        (f"{NOISE}\n{NOISE}\n", True),
        (f"n1: hello\n[Sun Feb 23 16:24:18 2025] {XID}\n", True),
        ("6,3964,206764307,-;nvidia-nvswitch2: open (major=510)\n", True),
        ("Feb 23 16:24:18 n1 kernel: usb 1-1: new device\n", True),
        ('{"__REALTIME_TIMESTAMP":"1","MESSAGE":"x"}\n', True),
        ('{"node":"n1","health_check":"xid errors","_msg":"' + XID + '"}\n', False),
        ("JobID|State|Comment\n1|FAILED|" + XID + "\n", False),
        ("Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n", False),
        ("[Feb 25 2025 13:59:45] [INFO] [tid 1803] Received an inband message\n", True),
        ("", False),
    ],
)
def test_only_kernel_logs_are_recognised(head: str, is_kernel_log: bool) -> None:
    assert kernel_log.sniff(head) is is_kernel_log


@given(st.text(max_size=200))
def test_no_text_breaks_the_reading_of_a_line(text: str) -> None:
    for line in (text, f"{text}{XID}", f"{XID[:20]}{text}"):
        parts = split_line(line)
        assert parts is None or line.startswith(parts[0])
        if parts is not None:
            with suppress(RecordError):  # the one way in which a line may be unreadable
                assert isinstance(prefix_of(parts[0]), Prefix | None)
            with suppress(RecordError):
                assert isinstance(fault_of(parts[1]), Fault | str)


@given(st.text(st.characters(blacklist_characters="NGn"), max_size=200))
def test_a_fault_is_found_behind_any_text(text: str) -> None:
    parts = split_line(f"{text}{XID}")
    assert parts is not None
    assert (parts[0], fault_of(parts[1])) == (text, Fault("xid", XID, "0000:9b:00", 119))


def test_pci_addresses_have_one_spelling() -> None:
    assert {
        pci_address(a) for a in ("0000:9B:00.0", "00000000:9b:00.0", "9b:00", "0000:9b:00")
    } == {"0000:9b:00"}


@needs_logs
def test_the_real_dmesg_holds_five_xid_119() -> None:
    batch = read_file(LOGS / "dmesg-with-xid-119.log", node="n1", timezone="UTC")
    assert (batch.rows_read, batch.rows_kept, batch.rejected) == (43, 5, [])
    assert {(row["xid"], row["gpu"], row["node"]) for row in rows(batch)} == {
        (119, "0000:9b:00", "n1")
    }
    assert batch.first_at == FEB_23
    assert batch.last_at == datetime(2025, 2, 23, 16, 30, 13, tzinfo=UTC)
    assert len(read_file(LOGS / "dmesg-with-xid-119.log").rejected) == 5


@needs_logs
@pytest.mark.parametrize(("name", "n_lines"), [("kmsg.1.log", 47)])
def test_the_real_kmsg_holds_none(name: str, n_lines: int) -> None:
    batch = read_file(LOGS / name)
    assert (batch.rows_read, batch.rows_kept, batch.rejected) == (n_lines, 0, [])
