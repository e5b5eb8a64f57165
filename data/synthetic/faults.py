"""Hardware failures: causes, the evidence each leaves behind, and how long repairs take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from data.synthetic import calibration as cal

if TYPE_CHECKING:
    from data.synthetic.fleet import Fleet


@dataclass(frozen=True)
class Evidence:
    """One health event that a failure leaves."""

    check: str
    """Name of the health check; `xid` for a kernel line."""
    severity: str | None
    """None where the check came to no result."""
    xid: int | None
    text: str


@dataclass(frozen=True)
class Cause:
    """A cause of node failures."""

    name: str
    domain: str
    share: float
    """Share of failures (A4: links, mounts, GPU memory and PCIe lead)."""
    node_fail: float
    """Share that takes the node from Slurm (NODE_FAIL); the rest ends jobs FAILED."""
    median_repair_h: float
    component: str
    action: str
    signatures: tuple[tuple[float, tuple[Evidence, ...]], ...]
    """Alternatives with their probability; the first event of each is critical or fatal."""


def _xid(code: int, severity: str, text: str) -> Evidence:
    return Evidence("xid", severity, code, text)


def _check(name: str, text: str, severity: str = "critical") -> Evidence:
    return Evidence(name, severity, None, text)


_BUS = _xid(79, "fatal", "GPU has fallen off the bus")
_PCI = _check("check-pci", "GPU device missing from the PCI tree")
_IPMI = _check("check-ipmitool", "SEL: Critical Interrupt, PCIe fatal error asserted")
_LINK = _check("check-ib", "port 1 state DOWN, physical state Polling")
_DOUBLE_BIT = _xid(48, "critical", "double bit ECC error reported by the framebuffer")
_REMAP = _xid(63, "info", "row remapper: new row marked for remapping, reset gpu to activate")
_REMAP_FAILED = _xid(64, "critical", "row remapper: remapping of a row failed")
_CONTAINED = _xid(94, "warning", "contained ECC error in an SM, channel torn down")
_UNCONTAINED = _xid(95, "critical", "uncontained ECC error, GPU reset required")
_DCGM = _check("check-dcgmi", "diag level 1: memory test failed")

CAUSES: Final = (
    Cause(
        "ib_link",
        "hardware",
        0.22,
        0.2,
        5,
        "optics",
        "reseated and cleaned the transceiver",
        ((0.97, (_LINK,)), (0.03, (_LINK, _BUS))),
    ),
    Cause(
        "gpu_memory",
        "hardware",
        0.17,
        0.1,
        8,
        "gpu",
        "replaced the GPU",
        (
            (0.5, (_DOUBLE_BIT, _REMAP, _CONTAINED)),
            (0.3, (_UNCONTAINED,)),
            (0.2, (_REMAP_FAILED, _DCGM)),
        ),
    ),
    Cause(
        "filesystem_mount",
        "system_software",
        0.16,
        1.0,
        1.5,
        "storage",
        "remounted, rebooted",
        ((1.0, (_check("check-storage", "mount /checkpoints missing or not answering"),)),),
    ),
    Cause(
        "pcie",
        "hardware",
        0.13,
        0.4,
        12,
        "pcie",
        "reseated the riser, retrained the link",
        ((0.57, (_PCI,)), (0.22, (_BUS, _PCI)), (0.21, (_BUS, _PCI, _IPMI))),
    ),
    Cause(
        "node_lost",
        "unknown",
        0.10,
        1.0,
        2,
        "node",
        "rebooted, no fault found",
        ((1.0, ()),),
    ),
    Cause(
        "gpu_driver",
        "system_software",
        0.07,
        1.0,
        1,
        "driver",
        "reset GPUs, reloaded the driver",
        (
            (0.8, (_xid(119, "critical", "timeout waiting for RPC response from GSP"),)),
            (0.2, (_xid(120, "critical", "GSP task exception"),)),
        ),
    ),
    Cause(
        "nvlink",
        "hardware",
        0.06,
        0.1,
        10,
        "gpu",
        "replaced the baseboard",
        (
            (
                1.0,
                (
                    _xid(74, "critical", "NVLink: fatal error on link 3"),
                    _check("check-dcgmi", "nvlink: link 3 down"),
                ),
            ),
        ),
    ),
    Cause(
        "host_memory",
        "hardware",
        0.05,
        0.6,
        9,
        "dimm",
        "replaced a DIMM",
        ((1.0, (_check("check-syslogs", "EDAC MC0: uncorrectable memory error on DIMM B2"),)),),
    ),
    Cause(
        "ethernet_link",
        "hardware",
        0.02,
        0.5,
        4,
        "nic",
        "replaced the cable",
        ((1.0, (_check("check-ethlink", "eth0 down"),)),),
    ),
    Cause(
        "power",
        "hardware",
        0.02,
        1.0,
        7,
        "psu",
        "replaced a power supply",
        ((1.0, (_check("check-ipmitool", "PSU 2 failure detected, power redundancy lost"),)),),
    ),
)
"""Causes in the order of their share. Those of system software always end as NODE_FAIL, so that
counting by state and counting by domain find the same failures."""

_LEMON_DEFECTS: Final = ("gpu_memory", "host_memory", "pcie", "nvlink", "power")
_LEMON_WEIGHTS: Final = (0.40, 0.21, 0.21, 0.12, 0.06)
_LEMON_REPEATS: Final = 0.7
"""Share of a lemon's failures that have the cause of its own defect."""


@dataclass(frozen=True)
class Fault:
    """A hardware failure of one node."""

    cause: int
    """Index into `CAUSES`."""
    evidence: tuple[Evidence, ...]
    node_fail: bool
    """Whether Slurm loses the node (jobs end NODE_FAIL) or a health check drains it (FAILED)."""
    repair_s: int


class Faults:
    """Draws what is wrong with a node when it fails."""

    def __init__(self, nodes: Fleet, rng: np.random.Generator) -> None:
        self._rng = rng
        self._shares = np.array([cause.share for cause in CAUSES])
        self._shares /= self._shares.sum()
        names = [cause.name for cause in CAUSES]
        defects = rng.choice(len(_LEMON_DEFECTS), len(nodes.lemons), p=_LEMON_WEIGHTS)
        self._defect = {
            node: names.index(_LEMON_DEFECTS[defect])
            for node, defect in zip(nodes.lemons, defects.tolist(), strict=True)
        }

    def strike(self, node: int) -> Fault:
        """The failure of a node: a lemon's is mostly its own defect again."""
        rng = self._rng
        own = self._defect.get(node)
        if own is None or rng.random() > _LEMON_REPEATS:
            own = int(rng.choice(len(CAUSES), p=self._shares))
        cause = CAUSES[own]
        weights = [probability for probability, _ in cause.signatures]
        hours = cause.median_repair_h * float(rng.lognormal(0, 0.7))
        return Fault(
            cause=own,
            evidence=cause.signatures[int(rng.choice(len(weights), p=weights))][1],
            node_fail=bool(rng.random() < cause.node_fail),
            repair_s=max(900, int(hours * cal.HOUR_S)),
        )
