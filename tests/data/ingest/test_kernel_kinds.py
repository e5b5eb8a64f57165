"""What kernel-log reads besides the codes of the GPU's driver; sources of lines are named."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from analytics.failures.evidence import of_events
from analytics.failures.precedence import weights
from data.ingest.reader import Batch, Options, Source
from data.ingest.readers.logs import kernel_log
from data.ingest.readers.logs.kernel_kinds import KINDS, report_of

SHARED = Path(__file__).parents[4] / "shared" / "data"
needs_files = pytest.mark.skipif(not SHARED.exists(), reason="no ../shared/data here")


def read(path: Path, **options: Any) -> Batch:
    source = Source(path, path.name, modified_at=datetime(2025, 3, 1, tzinfo=UTC))
    return kernel_log.read(source, Options(**{"node": "n1", **options}), duckdb.cursor())


def read_text(folder: Path, text: str, **options: Any) -> Batch:
    path = folder / "log"
    path.write_text(text, encoding="utf-8")
    return read(path, **options)


def kinds(batch: Batch) -> Counter[str]:
    return Counter(batch.tables["health_events"]["check_name"])


# Forms as the kernel's sources print them: those of its memory, tasks and
# watchdogs, of machine checks, EDAC and AER, of network and NVMe drivers, NFS and Lustre.
LINES = {
    "Out of memory: Killed process 77 (python3) total-vm:9kB": ("oom_kill", "warning", "host_oom"),
    "Memory cgroup out of memory: Killed process 77 (nvme disk) total-vm:9kB, anon-rss:1kB": (
        "oom_kill", "warning", "host_oom"),
    "INFO: task kworker/u8:3:41 blocked for more than 122 seconds.": (
        "hung_task", "warning", "operating_system"),
    "INFO: task python:41 blocked in I/O wait for more than 122 seconds.": (
        "hung_task", "warning", "operating_system"),
    "python3[7]: segfault at 0 ip 0000000000000000 sp 00007ffe error 14 in x[5+d]": (
        "segfault", "info", None),
    "watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [python3:77]": (
        "soft_lockup", "warning", "operating_system"),
    "NMI watchdog: Watchdog detected hard LOCKUP on cpu 3": (
        "hard_lockup", "critical", "operating_system"),
    "rcu: INFO: rcu_sched self-detected stall on CPU": ("rcu_stall", "warning", "operating_system"),
    "Kernel panic - not syncing: Fatal exception": ("kernel_panic", "fatal", "operating_system"),
    "Kernel panic - not syncing: Fatal machine check": ("kernel_panic", "fatal", "cpu"),
    "Oops: 0002 [#1] SMP": ("kernel_oops", "critical", "operating_system"),
    "general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP": (
        "kernel_oops", "critical", "operating_system"),
    "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: be00000000800400": (
        "mce_uncorrected", "critical", "cpu"),
    "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 4: bc00000000800400": (
        "mce_uncorrected", "critical", "cpu"),
    "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 4: 9c00000000800400": (
        "mce_corrected", "info", "cpu"),
    "{1}[Hardware Error]: event severity: recoverable": ("mce_uncorrected", "critical", "cpu"),
    "[Hardware Error]: Corrected error, no action required.": ("mce_corrected", "info", "cpu"),
    "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0": (
        "edac_uncorrected", "critical", "host_memory"),
    "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0": (
        "edac_corrected", "info", "host_memory"),
    "nvidia 0000:81:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer": (
        "pcie_fatal", "critical", "pcie"),
    "nvidia 0000:81:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=X": (
        "pcie_uncorrected", "warning", "pcie"),
    "pcieport 0000:80:01.1: PCIe Bus Error: severity=Corrected, type=Physical Layer": (
        "pcie_corrected", "info", "pcie"),
    "pcieport 0000:40:01.1: pciehp: Slot(18): Link Down": ("pcie_link_down", "warning", "pcie"),
    "mlx5_core 0000:5e:00.0 ens1f0np0: Link down": ("nic_link_down", "warning", "ethernet_link"),
    "hfi1 0000:45:00.0: hfi1_0: 8051: Link down": ("nic_link_down", "warning", "ib_link"),
    "bond0: (slave eth1): link status definitely down, disabling slave": (
        "nic_link_down", "warning", "ethernet_link"),
    "igb 0000:b0:00.0 eth0: igb: eth0 NIC Link is Up 1000 Mbps Full Duplex": (
        "nic_link_up", "info", None),
    "mlx5_core 0000:5e:00.0: poll_health:825:(pid 0): device's health compromised - reached miss": (
        "nic_fault", "critical", "nic"),
    "nvme nvme0: controller is down; will reset: CSTS=0xffffffff": (
        "nvme_down", "critical", "disk"),
    "nvme nvme0: I/O 12 QID 3 timeout, aborting": ("nvme_timeout", "warning", "disk"),
    "blk_update_request: critical medium error, dev sda, sector 7": (
        "disk_error", "warning", "disk"),
    "EXT4-fs (sda1): Remounting filesystem read-only": ("filesystem_stopped", "critical", "disk"),
    "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2": (
        "filesystem_error", "warning", "filesystem_mount"),
    "nfs: server nas1 not responding, still trying": (
        "filesystem_hang", "warning", "filesystem_mount"),
    "LustreError: 7:0:(x.c:1) lfs-OST1: Connection to lfs-OST1 (at 10.0.0.1@tcp) was lost; in "
    "progress operations using this service will wait": (
        "filesystem_hang", "warning", "filesystem_mount"),
    "VFS: file-max limit 1000000 reached": ("file_max", "warning", None),
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_every_kind_has_its_severity_and_its_cause(tmp_path: Path, line: str) -> None:
    text = f"2024-03-01T12:00:00+00:00 n7 kernel: {line}\n"
    row = read_text(tmp_path, text).tables["health_events"].iloc[0]
    check, severity, cause = LINES[line]
    assert (row["node"], row["check_name"], row["severity"], row["message"]) == (
        "n7", check, severity, line,
    )  # fmt: skip
    if cause is not None:
        assert weights().cause_of(check, line) == cause


FORMS = {
    "dmesg -T": "[Fri Mar  1 12:00:00 2024] {}",
    "dmesg": "[    7.000000] {}",
    "dmesg -x, ISO": "kern  :err   : 2024-03-01T12:00:00,000000+00:00 {}",
    "kmsg": "3,1,7000000,-;{}",
    "pstore": "<3>[    7.000000] {}",
    "syslog": "Mar  1 12:00:00 n1 kernel: [    7.000000] {}",
    "short-iso": "2024-03-01T12:00:00+00:00 n1 kernel: {}",
    "repeated": "Mar  1 12:00:00 n1 kernel: message repeated 3 times: [ {}]",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_log_gives_the_same_reports(tmp_path: Path, form: str) -> None:
    batch = read_text(tmp_path, "".join(FORMS[form].format(line) + "\n" for line in LINES))
    frame = batch.tables["health_events"]
    assert (list(frame["message"]), set(frame["node"])) == (list(LINES), {"n1"})
    assert batch.rows_read == batch.rows_kept == len(LINES)


def test_the_journal_s_json_names_host_and_writer(tmp_path: Path) -> None:
    line = "Out of memory: Killed process 77 (python3)"
    record = {"MESSAGE": line, "_TRANSPORT": "kernel", "_HOSTNAME": "n9",
              "__REALTIME_TIMESTAMP": "1709294400000000"}  # fmt: skip
    text = json.dumps(record) + "\n" + json.dumps({**record, "_TRANSPORT": "stdout"}) + "\n"
    batch = read_text(tmp_path, text)
    assert batch.tables["health_events"]["node"].tolist() == ["n9"]
    assert batch.skipped_by_reason == {"not_from_kernel": 1}


@pytest.mark.parametrize("line", [
    "Mar  1 12:00:00 n1 python[7]: Out of memory: Killed process 77 (python3)",
    "[Fri Mar  1 12:00:00 2024] somebody Out of memory: Killed process 77 (python3)",
    "Mar  1 12:00:00 n1 audit[3]: seen: INFO: task x:3 blocked for more than 120 seconds.",
])  # fmt: skip
def test_words_of_others_are_no_report(tmp_path: Path, line: str) -> None:
    batch = read_text(tmp_path, line + "\n")
    assert (batch.rows_kept, batch.skipped_by_reason) == (0, {"not_from_kernel": 1})


@pytest.mark.parametrize("line", [
    "EDAC MC0: Giving out device to module skx_edac", "MCE: In-kernel MCE decoding enabled.",
    "acpi PNP0A08:00: _OSC: platform does not support [SHPCHotplug AER LTR DPC]",
    "EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode.", "nvme nvme0: 8/0/0 queues",
    "pcieport 0000:00:1c.0: AER: enabled with IRQ 24", "nfs: server nas1 OK",
])  # fmt: skip
def test_what_a_boot_says_is_no_report(line: str) -> None:
    assert report_of(f"[  1.0] {line}") is None


def test_a_detail_of_a_report_is_counted_as_one(tmp_path: Path) -> None:
    text = (
        "[    1.0] python3 invoked oom-killer: gfp_mask=0x0, order=0\n"
        "[    1.0] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)\n"
        "[    1.0] Memory cgroup out of memory: Killed process 7 (python3)\n"
        "[    1.1] oom_reaper: reaped process 7 (python3), now anon-rss:0kB\n"
        "[    2.0] pcieport 0000:80:01.1: AER: Corrected error received: 0000:81:00.0\n"
        "[    2.0] nvidia 0000:81:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer\n"
    )
    batch = read_text(tmp_path, text)
    assert batch.skipped_by_reason == {"oom_detail": 3, "aer_detail": 1}
    frame = batch.tables["health_events"]
    assert frame["check_name"].tolist() == ["oom_kill", "pcie_corrected"]
    assert frame["gpu"].tolist()[1:] == ["0000:81:00"]


def test_a_line_without_a_host_is_rejected_not_lost(tmp_path: Path) -> None:
    batch = read_text(tmp_path, "[    1.0] Oops: 0002 [#1] SMP\n[   2.0] fine\n", node=None)
    assert batch.rejected.by_reason == {"no host on the line: pass --node": 1}


def test_every_kind_has_lines_here() -> None:
    tried = {check for check, _, _ in LINES.values()} | {None, "peermem_invalid_context"}
    assert {kind.check_name for kind in KINDS} == tried


KNOWN = {
    "collect/kernel/m4/dmesg.txt": (7218, {"hung_task": 10, "segfault": 5, "nic_link_up": 12}),
    "collect/kernel/gpud/memory_dmesg.decode.iso.log": (24, {"xid": 17, "oom_kill": 3}),
    "collect/kernel/gpud/nccl_dmesg.decode.iso.log": (2, {"segfault": 2}),
    "collect/kernel/gpud/os_dmesg.decode.iso.log": (2, {"file_max": 2}),
    "collect/kernel/gpud/kmsg.2.peermem.log": (8, {"peermem_invalid_context": 7}),
    "collect/kernel/gpud/pstore_dmesg-erst.txt": (39, {"kernel_oops": 1}),
    "collect/kernel/gpud/pstore_dmesg_joined.txt": (415, {"kernel_panic": 1, "nic_link_up": 1}),
    "kernel_logs/fabricmanager.log": (77, {"sxid": 1}),
}


@needs_files
@pytest.mark.parametrize("name", KNOWN)
def test_real_logs_give_what_is_known_of_them(name: str) -> None:
    path = SHARED / name
    batch = read(path)
    n_records, found = KNOWN[name]
    assert (batch.rows_read, kinds(batch), batch.rejected.total) == (n_records, Counter(found), 0)
    assert kernel_log.sniff(path.read_text(errors="replace")[:60_000])


@needs_files
def test_the_hang_of_a_real_node_is_read_to_the_second() -> None:
    batch = read(SHARED / "collect/kernel/m4/dmesg.txt", timezone="Europe/Paris")
    frame = batch.tables["health_events"].query("check_name == 'hung_task'")
    of_job = frame[frame["message"].str.contains("python:280058")]
    assert len(of_job) == 9
    assert of_job["observed_at"].min() == datetime(2023, 3, 4, 3, 10, 52, tzinfo=UTC)
    assert of_job["observed_at"].max() == datetime(2023, 3, 4, 3, 27, 15, tzinfo=UTC)
    assert of_job["observed_at"].sort_values().diff().max().total_seconds() <= 180  # one burst


def test_what_a_process_met_speaks_for_its_attempt_and_a_link_does_not() -> None:
    events = pd.DataFrame(
        [
            ("oom_kill", "warning", "Out of memory: Killed process 7 (python3)"),
            ("hung_task", "warning", "INFO: task python:7 blocked for more than 120 seconds."),
            ("nic_link_down", "warning", "mlx5_core 0000:5e:00.0 eth0: Link down"),
            ("segfault", "info", "python3[7]: segfault at 0"),
            (
                "mce_uncorrected",
                "critical",
                "mce: [Hardware Error]: CPU 3: Machine Check Exception",
            ),
        ],
        columns=["check_name", "severity", "message"],
    ).assign(xid=None, sxid=None, source="kernel")
    found = of_events(events, weights())
    odds = weights().odds
    assert found["cause"].tolist() == [
        "host_oom", "operating_system", "ethernet_link", None, "cpu",
    ]  # fmt: skip
    assert found["odds"].tolist() == [odds["process"], odds["process"], 0, 0, odds["critical"]]
    assert found["scope"].tolist() == ["process", "process", "node", "node", "node"]
