"""What the kernel reports besides the GPU driver's codes: kinds of lines, how severe each is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from data.ingest.readers.logs.kernel_line import pci_address, without_frame

_ADDRESS = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_DEVICE = rf"\b[a-z][\w-]{{0,40}} {_ADDRESS}:? "
"""Driver and address, with which messages about a PCI device begin."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of report, told on one line of the log."""

    check_name: str | None
    """None for a line that repeats or details a report which another line counts."""
    severity: str
    """info, warning, critical or fatal; for a detail the reason to skip it."""
    markers: tuple[str, ...]
    """Texts of which every such line holds one: a cheap test before the expression."""
    pattern: re.Pattern[str]
    """From the first character of the kernel's message on."""


@dataclass(frozen=True, slots=True)
class Report:
    """What one line reports, and what stands before it."""

    kind: Kind
    before: str
    message: str
    gpu: str | None
    """PCI address where the line names a device of the NVIDIA driver."""


def _kind(check: str | None, severity: str, markers: str, pattern: str) -> Kind:
    """A kind; `markers` are divided by bars."""
    return Kind(check, severity, tuple(markers.split("|")), re.compile(pattern))


_BUS = rf"(?:{_DEVICE})?(?:AER: )?PCIe Bus Error: severity="
_LINK = rf"(?:{_DEVICE}(?:\S{{1,40}} ){{0,3}}?(?:NIC )?Link (?:is )?"
_BOND = r"|\b\w[\w.-]{0,30}: \(slave [^)]{1,40}\): link status definitely "

KINDS = (
    # What programs run into. The kernel killed one process, at a limit of its job or of the host:
    # the program asked for too much. Old kernels announce the kill and then report it once more.
    _kind("oom_kill", "warning", "of memory: Kill",
          r"(?:Memory cgroup out|Out) of memory: Kill(?:ed)? process \d+"),
    _kind(None, "oom_detail", "oom",
          r"\S{1,64} invoked oom-killer:|oom-kill:constraint=|oom_reaper: "),
    _kind("segfault", "info", "segfault at",
          r"(?:^|(?<=[\s;]))[^\s;,:]{1,15}\[\d+\]: segfault at "),
    _kind("file_max", "warning", "file-max", r"VFS: file-max limit \d+ reached"),
    _kind("peermem_invalid_context", "info", "peermem",
          r"nvidia-peermem \S{1,80} ERROR detected invalid context"),
    # The operating system. A task that waits for two minutes mostly waits for a file system or a
    # driver; a processor stays in the kernel for long under overload, too. A hard lockup answers no
    # interrupt any more.
    _kind("hung_task", "warning", "blocked ",
          r"INFO: task .{1,64}:\d+ blocked (?:in I/O wait )?for more than \d+ seconds"),
    _kind("soft_lockup", "warning", "soft lockup",
          r"(?:(?:NMI )?watchdog: )?BUG: soft lockup - CPU#\d+"),
    _kind("hard_lockup", "critical", "LOCKUP",
          r"(?:(?:NMI )?watchdog: )?Watchdog (?:CPU:?\s?\d+ )?(?:detected )?[Hh]ard LOCKUP"),
    _kind("rcu_stall", "warning", "stall",
          r"(?:rcu: )?INFO: rcu_\w+ (?:self-)?detected (?:expedited )?stalls?"),
    _kind("kernel_panic", "fatal", "Kernel panic", r"Kernel panic - not syncing"),
    _kind("kernel_oops", "critical", "[#",
          r"(?:Internal error: )?(?:Oops|general protection fault|invalid opcode|divide error|"
          r"stack segment)[:,][^\[]{0,120}\[#\d+\]"),
    # Processor and memory. In a machine check's status bit 61 says that the error stands
    # uncorrected (Intel SDM vol. 3B, section 17.3.2.2): the first digit has its 2.
    _kind("mce_uncorrected", "critical", "[Hardware Error]",
          r"(?:mce: )?(?:\{\d+\})?\[Hardware Error\]: (?:"
          r"CPU \d+: Machine Check Exception: |"
          r"CPU \d+: Machine Check: .{0,40}Bank \d+: [2367abef][0-9a-f]{15}|"
          r"Uncorrected, |event severity: (?:fatal|recoverable))"),
    _kind("mce_corrected", "info", "[Hardware Error]",
          r"(?:mce: )?(?:\{\d+\})?\[Hardware Error\]: (?:CPU \d+: Machine Check: |Corrected error|"
          r"Deferred error|Machine check events logged|event severity: corrected)"),
    _kind("mce_uncorrected", "critical", "EDAC ",
          r"EDAC \S{1,20} MC\d+: CPU \d+: Machine Check (?:Event|Exception): \S+ Bank \d+: "
          r"(?:0x)?[2367abef][0-9a-f]{15}"),
    _kind("mce_corrected", "info", "EDAC ",
          r"EDAC \S{1,20} MC\d+: CPU \d+: Machine Check (?:Event|Exception): "),
    _kind("edac_uncorrected", "critical", "EDAC MC", r"EDAC MC\d+: (?:\d+ )?UE "),
    _kind("edac_corrected", "info", "EDAC MC", r"EDAC MC\d+: (?:\d+ )?CE "),
    # PCI Express. Each error is announced by the port and then told with its device.
    _kind("pcie_fatal", "critical", "PCIe Bus Error", _BUS + r"Uncorrect(?:ed|able) \(Fatal\)"),
    _kind("pcie_uncorrected", "warning", "PCIe Bus Error", _BUS + r"Uncorrect(?:ed|able)"),
    _kind("pcie_corrected", "info", "PCIe Bus Error", _BUS + r"Correct(?:ed|able)"),
    _kind(None, "aer_detail", "AER: ",
          rf"{_DEVICE}AER: (?:Multiple )?(?:Unc|C)orrect(?:ed|able) .{{0,60}}received"),
    # Network. A link goes down at every reboot of a switch and every change of a cable as well.
    _kind("pcie_link_down", "warning", "pciehp",
          rf"(?:{_DEVICE})?pciehp: Slot\([^)]{{1,20}}\): Link Down"),
    _kind("nic_link_down", "warning",
          "ink down|ink is Down|definitely down|Link DOWN|: Link Down",
          r"mlx4_en: \S{1,20}: Link Down|infiniband \w{1,30}: Port: \d+ Link DOWN|"
          + _LINK + r"[Dd]own\b" + _BOND + "down)"),
    _kind("nic_link_up", "info", "ink up|ink is Up|definitely up",
          _LINK + r"[Uu]p\b" + _BOND + "up)"),
    _kind("nic_fault", "critical", "health",
          rf"{_DEVICE}.{{0,200}}(?:device's health compromised|health recovery failed)"),
    # Disks. A time-out or one unreadable block is retried; a controller that went away is lost.
    _kind("nvme_down", "critical", "nvme nvme",
          r"nvme nvme\d+: (?:controller is down|Removing after probe failure|"
          r"Device not ready; abort|Disabling device after reset failure)"),
    _kind("nvme_timeout", "warning", "nvme nvme", r"nvme nvme\d+: I/O (?:tag )?\d+ .{0,80}timeout"),
    _kind("disk_error", "warning", "error, dev |Buffer I/O error on dev|md/raid",
          r"(?:(?:blk_update_request|print_req_error): )?"
          r"(?:I/O|critical (?:medium|target)) error, dev |Buffer I/O error on dev"
          r"|md/raid\S{1,20}: Disk failure on"),
    # File systems. A local one that shut itself down serves nobody any more; a server that does not
    # answer is at fault itself, or the network.
    _kind("filesystem_stopped", "critical", "read-only|readonly|hutting down|has been shut down",
          r"(?:EXT4-fs|XFS|BTRFS)\b.{0,200}?(?:Remounting filesystem read-only|forced readonly|"
          r"[Ss]hutting down filesystem|Filesystem has been shut down)"),
    _kind("filesystem_error", "warning", "EXT4-fs error|XFS (",
          r"EXT4-fs error \(device|"
          r"XFS \([^)]{1,80}\): (?:Metadata corruption|metadata I/O error|Corruption)"),
    _kind("filesystem_hang", "warning", "not responding|was lost; in progress|ceph: mds",
          r"nfs: server \S+ not responding|ceph: mds\d+ hung|"
          r"Lustre(?:Error)?: .{0,200}: Connection to .{0,200} was lost; in progress operations"),
)  # fmt: skip
"""The table, the more particular kind first.

Severities. `fatal`: the machine stands still. `critical`: the fault is the machine's own, and
it should leave service for it. `warning`: something is amiss, which a program, an overload or a
service elsewhere can bring about just as well. `info`: corrected, or the program's own.
"""
MARKERS = tuple(dict.fromkeys(marker for kind in KINDS for marker in kind.markers))
"""Texts of which every line that matters holds one."""
_HOST_SAID = re.compile(r"\bkernel\b|^\s*[\w.-]*\w(?::|\s\|)\s")
_OF_GPU = re.compile(rf"nvidia ({_ADDRESS})")


def report_of(text: str) -> Report | None:
    """What a line reports, and what stands before the kernel's message; None for nothing.

    Examples
    --------
    >>> found = report_of("[  7.0] EDAC MC0: 1 UE memory read error on CPU_SrcID#0")
    >>> found.kind.check_name, found.kind.severity, found.before
    ('edac_uncorrected', 'critical', '[  7.0] ')
    >>> report_of("[  7.0] EDAC MC0: Giving out device to module skx_edac") is None
    True
    """
    for kind in KINDS:
        if any(marker in text for marker in kind.markers):
            found = kind.pattern.search(text)
            if found is not None:
                before = text[: found.start()]
                message = without_frame(before, text[found.start() :].strip())
                device = _OF_GPU.match(message)
                return Report(kind, before, message, pci_address(device[1]) if device else None)
    return None


def names_its_host(before: str) -> bool:
    """Whether a word before a message can be a host: where `kernel:` or a gatherer's mark says so.

    Examples
    --------
    >>> names_its_host("Mar  4 04:10:52 n1 kernel: "), names_its_host("[Sat Mar  4 ...] Comm ")
    (True, False)
    """
    return bool(_HOST_SAID.search(before))
