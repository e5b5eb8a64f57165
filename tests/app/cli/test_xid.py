"""faultline xid: the catalog, and kernel lines to events."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "kernel_logs"
LOG = """\
[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 31, pid=7, name=my prog, v2, Ch 00000008, intr 10000000
[Sun Feb 23 16:24:19 2025] NVRM: Xid (PCI:0000:9b:00): 43, pid=7, name=my prog, v2, Ch 00000008
2025-02-23T16:24:20+01:00 gpu-01 kernel: [1234.5] NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
2025-02-23T16:24:21+01:00 gpu-01 kernel: NVRM: GPU 0000:05:00.0: GPU has fallen off the bus.
2025-02-23T16:24:22+01:00 gpu-01 kernel: NVRM: Xid (PCI:0000:05:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)
2025-02-23T16:24:23+01:00 gpu-01 python3[99]: saw NVRM: Xid (PCI:0000:05:00): 48, pid=1, name=x
train.py printed NVRM: Xid (PCI:0000:05:00): 48, pid=1
<3>Feb 23 16:30:00 gpu-02 kernel: NVRM: Xid (PCI:0018:01:00): 149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00086226 0x00000001 0x00000000 0x00000000 0x00000000 0x00000000)
[ 111.5] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 61 egress non-posted PRIV error (First)
[ 111.6] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Severity 0 Engine instance 61 Sub-engine instance 00
"""
KEYS = {"line", "xid", "sxid", "pci_bus_id", "pid", "process", "severity", "observed_at"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "kern.log"
    path.write_text(LOG)
    return path


def test_a_code_is_shown_with_meaning_domain_severity_action_and_sources(
    faultline: Callable[..., Any],
) -> None:
    said = faultline("xid", 79)
    assert (said.code, said.err) == (0, "")
    found = said.json
    assert found["mnemonic"] == "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS"
    assert (found["domain"], found["severity"]) == ("hardware", "fatal")
    assert found["immediate_action"] == "RESTART_BM"
    assert found["immediate_meaning"] == "Restart the whole node."
    assert len(found["sources"]) == 2


def test_a_disputed_code_shows_the_disagreement(faultline: Callable[..., Any]) -> None:
    found = faultline("xid", 109).json
    assert "RESET_GPU" in found["disagreement"]
    assert "not critical" in found["disagreement"]
    table = faultline("xid", 109, "--format", "table").out
    assert "Disagreement" in table
    assert "facebookresearch/gcm" in table


def test_an_unlisted_code_is_unknown_and_no_error(faultline: Callable[..., Any]) -> None:
    said = faultline("xid", 9999)
    assert said.code == 0
    assert "not in the catalog" in said.err
    for key in ("mnemonic", "domain", "severity", "immediate_action"):
        assert said.json[key] is None
    assert said.json["sources"] == []
    assert set(said.json) == set(faultline("xid", 79).json)


def test_a_switch_error_is_looked_up_by_sxid(faultline: Callable[..., Any]) -> None:
    found = faultline("xid", 20034, "--sxid").json
    assert (found["severity"], found["domain"], found["mnemonic"]) == ("fatal", "hardware", None)
    assert faultline("xid", 79, "--sxid").json["listed"] is False


def test_the_driver_decides_how_subcodes_decode(faultline: Callable[..., Any]) -> None:
    both = faultline("xid", 145).json["subcodes"]
    old = faultline("xid", 145, "--driver", "570.124.06").json["subcodes"]
    new = faultline("xid", 145, "--driver", "575.51.03").json["subcodes"]
    assert both == old + new
    assert {row["layout"] for row in old} == {"V1"}
    assert faultline("xid", 79, "--driver", "575").json["subcodes"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("abc",), "'abc' is no code"),
        (("-5",), "xid"),
        (("7.9",), "'7.9' is no code"),
        ((), "give a CODE or --parse FILE"),
        ((79, "--parse", "x"), "give a CODE or --parse FILE"),
        (("--parse", "x", "--sxid"), "--sxid goes with a CODE"),
        ((145, "--driver", "new"), "driver must be a version"),
        (("--parse", "/no/such/file"), "no such file"),
        (("--parse", "x", "--timezone", "Mars"), "Mars"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(
    refused: Callable[..., str], arguments: tuple[object, ...], said: str
) -> None:
    assert said in refused("xid", *arguments)


def test_lines_become_events_and_quoted_lines_do_not(
    faultline: Callable[..., Any], log: Path
) -> None:
    said = faultline("xid", "--parse", log, "--year", 2025)
    assert said.code == 0
    events = said.json["events"]
    assert all(set(event) >= KEYS for event in events)
    assert [(event["line"], event["xid"], event["sxid"]) for event in events] == [
        (1, 31, None),
        (2, 43, None),
        (3, 79, None),
        (4, None, None),
        (5, 154, None),
        (8, 149, None),
        (9, None, 12028),
    ]
    assert [event["severity"] for event in events] == [
        "warning", "info", "fatal", "critical", "fatal", "info", "fatal",
    ]  # fmt: skip
    assert said.json["rejected"] == [
        {"line": 7, "reason": "unknown text before the kernel's message"}
    ]


def test_address_process_time_and_host_stand_on_the_event(
    faultline: Callable[..., Any], log: Path
) -> None:
    events = faultline("xid", "--parse", log, "--node", "login-1", "--year", 2025).json["events"]
    first, lost = events[0], events[2]
    assert (first["pid"], first["process"]) == (7, "my prog, v2")
    assert first["observed_at"] == "2025-02-23T16:24:18+00:00"
    assert (first["node"], first["pci_bus_id"]) == ("login-1", "0000:9b:00")
    assert (lost["pid"], lost["process"], lost["node"]) == (None, None, "gpu-01")
    assert lost["observed_at"] == "2025-02-23T15:24:20+00:00"
    assert events[-1]["observed_at"] is None
    assert events[-1]["stated_severity"] == "non-fatal"


def test_bursts_of_a_gpu_are_one_finding_each(faultline: Callable[..., Any], log: Path) -> None:
    bursts = faultline("xid", "--parse", log, "--year", 2025).json["bursts"]
    assert [(burst["leading"], burst["severity"], burst["action"]) for burst in bursts] == [
        (31, "warning", "RESTART_APP"),
        (79, "fatal", "RESTART_BM"),
        (149, "info", "IGNORE"),
    ]
    assert [note["role"] for note in bursts[0]["notes"]] == ["leading", "follows"]


def test_three_minutes_of_silence_end_a_burst(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_text(
        "".join(
            f"2025-02-23T{clock}+00:00 n1 kernel: NVRM: Xid (PCI:0000:05:00): {code}, x\n"
            for clock, code in (("16:00:00", 48), ("16:03:00", 63), ("16:06:01", 45))
        )
    )
    bursts = faultline("xid", "--parse", path).json["bursts"]
    assert [burst["lines"] for burst in bursts] == [[1, 2], [3]]


def test_the_driver_chooses_the_reading_of_an_event(
    faultline: Callable[..., Any], log: Path
) -> None:
    by_layout = {
        driver: faultline("xid", "--parse", log, "--driver", driver).json["events"][5]
        for driver in ("570.86", "575.51")
    }
    (old,), (new,) = by_layout["570.86"]["readings"], by_layout["575.51"]["readings"]
    assert (old["unit"], old["agrees_with_line"]) == ("NETIR_BER_EVENT", True)
    assert (new["unit"], new["agrees_with_line"]) == (None, False)
    assert by_layout["575.51"]["severity"] == "critical"  # of the code, as nothing is decoded


def test_standard_input_and_compressed_files_are_read(
    faultline: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kern.log.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    packed = faultline("xid", "--parse", path).json
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LOG.encode())))
    assert len(faultline("xid", "--parse", "-").json["events"]) == len(packed["events"]) == 7


def test_code_line_and_table_say_the_same_of_a_switch_error(
    faultline: Callable[..., Any], log: Path
) -> None:
    code = faultline("xid", "--sxid", 12028).json
    event = faultline("xid", "--parse", log, "--year", 2025).json["events"][-1]
    said = [source["says"] for source in code["sources"]]
    assert said == [event["stated_severity"], f"severity {event['severity']}"]
    assert code["severity"] == event["severity"] == "fatal"
    assert code["disagreement"] == "NVIDIA calls it non-fatal, leptonai/gpud rates it fatal"
    table = faultline("xid", "--sxid", 12028, "--format", "table").out
    assert code["disagreement"] in table


def test_csv_and_table_hold_a_row_an_event(faultline: Callable[..., Any], log: Path) -> None:
    rows = list(
        csv.DictReader(io.StringIO(faultline("xid", "--parse", log, "--format", "csv").out))
    )
    assert [row["line"] for row in rows] == ["1", "2", "3", "4", "5", "8", "9"]
    assert set(rows[0]) >= KEYS
    table = faultline("xid", "--parse", log, "--format", "table").out
    assert "XID 79" in table
    (row,) = (line for line in table.splitlines() if "SXid 12028" in line)
    assert "fatal     non-fatal" in row  # by the catalog, by the line
    assert "GPU lost" in table


def test_a_log_without_faults_has_no_events(faultline: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("[    1.0] usb 1-1: new device\n[    2.0] NVRM: loading module 570.86\n")
    assert faultline("xid", "--parse", path).json == {"events": [], "bursts": [], "rejected": []}


@pytest.mark.skipif(not SHARED.exists(), reason="no ../shared/data/kernel_logs here")
def test_real_logs_give_their_events(faultline: Callable[..., Any]) -> None:
    events = faultline("xid", "--parse", SHARED / "dmesg-with-xid-119.log").json["events"]
    assert [(event["line"], event["xid"]) for event in events] == [
        (line, 119) for line in (3, 38, 40, 42, 43)
    ]
    assert [event["process"] for event in events] == [
        "nvidia-smi", "nvidia-smi", "nvidia-smi", "cache_mgr_main", "gpud",
    ]  # fmt: skip
    assert events[3]["pid"] == 1263500
    assert faultline("xid", "--parse", SHARED / "kmsg.1.log").json["events"] == []
    (switch,) = faultline("xid", "--parse", SHARED / "fabricmanager.log").json["events"]
    assert (switch["sxid"], switch["pci_bus_id"]) == (12028, "0000:86:00")
    assert (switch["observed_at"], switch["stated_severity"]) == (
        "2025-02-27T15:10:02+00:00",
        "non-fatal",
    )
