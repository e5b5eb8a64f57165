"""The nodes of the demo: where they stand, how often and of what they fail, planned outages.

Lemons are nodes that keep failing, each in a way of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from data.synthetic import published
from data.synthetic.spec import UTILISATION

if TYPE_CHECKING:
    from analytics.arrays import Floats, Ints
    from data.synthetic.spec import DemoSpec

SIGNAL_DAYS: Final = 28
"""Days over which the signals of a node are counted (papers.md A8)."""


class LemonKind(NamedTuple):
    """A way to be a lemon; numbers are expected in `SIGNAL_DAYS` days of service, at the least.

    What of these days it spends in repair lowers them, by an eighth or so.
    """

    name: str
    cause: str
    """Of most of its failures."""
    strikes: float
    """Failures that end jobs and take it out for repair, with a ticket."""
    drains: float
    """Times a check of low severity takes it out once its jobs have ended."""
    ticketed: float
    """Share of these that end in a ticket."""
    storms: float
    """Bursts of harmless kernel lines of one GPU."""
    excluded: float
    """Jobs that exclude it."""
    warning: tuple[str, str]
    """Check and text for which it is drained."""
    repair: tuple[str, str]
    """Component and action of the tickets of these."""


INSPECTED: Final = ("check-dcgmi", "diag level 1: PCIe replays above threshold")
"""Check and text for which nodes that are no lemons are drained now and then."""
NO_FAULT: Final = ("gpu", "stress test passed")
"""Component and action of the tickets of these."""

LEMON_KINDS: Final = (
    LemonKind("row_remap", "gpu_memory", 4, 0.5, 0.4, 3, 0, INSPECTED, NO_FAULT),
    LemonKind(
        *("flapping", "ib_link", 1, 6.5, 0.1, 0, 0),
        ("check-ib", "port 1: symbol errors above threshold"),
        ("nic", "link test passed"),
    ),
    LemonKind("nic_flaps", "ib_link", 7.5, 0.5, 0.4, 0, 0, INSPECTED, NO_FAULT),
    LemonKind("xid_storm", "gpu_memory", 1, 0.5, 0.4, 6.5, 0, INSPECTED, NO_FAULT),
    LemonKind("hangs", "node_lost", 8, 0, 0, 0, 0, INSPECTED, NO_FAULT),
    LemonKind(
        *("thermal", "power", 2.5, 4.5, 0.2, 0, 0),
        ("check-sensors", "GPU temperature above 90 C, clocks lowered"),
        ("cooling", "cleaned the fans"),
    ),
    LemonKind(*("repaired", "pcie", 2.5, 4.5, 1, 0, 0), INSPECTED, ("pcie", "reseated the riser")),
    LemonKind("excluded", "nvlink", 4, 0, 0, 0, 3.5, INSPECTED, NO_FAULT),
)
"""Kinds, in the order in which lemons take them; each leaves at least 6 such events in 28 days.
A failure or a drain counts once, however many signals it leaves."""

_WORST: Final = 1.4
"""How much oftener than stated the worst of a kind strikes."""


class Lemon(NamedTuple):
    """One lemon, from the beginning of the period."""

    kind: LemonKind
    times: float
    """How much oftener than the least of its kind."""
    strikes: float
    """Failures expected in `SIGNAL_DAYS` days of service."""

    @property
    def hazard(self) -> float:
        """Hardware failures per second of running time."""
        return self.strikes / (SIGNAL_DAYS * published.DAY_S * UTILISATION)

    def expected(self, rate: float, period_s: int) -> float:
        """Events expected in the period, of a rate of its kind."""
        return self.times * rate * period_s / (SIGNAL_DAYS * published.DAY_S)


def planted_lemons(n_nodes: int, rng: np.random.Generator) -> dict[int, Lemon]:
    """Node -> lemon: 1.2 % of the nodes (papers.md A8), one where a fleet is smaller.

    Their failures are at most half of what the fleet has at RSC-1's rate: the lemon of a small
    fleet fails less often than its kind would.
    """
    if n_nodes < published.LEMON_LEAST_NODES:
        return {}
    n_lemons = max(1, round(published.LEMON_RATIO * n_nodes))
    nodes = sorted(rng.choice(n_nodes, n_lemons, replace=False).tolist())
    kinds = [LEMON_KINDS[i % len(LEMON_KINDS)] for i in range(n_lemons)]
    times = rng.uniform(1, _WORST, n_lemons).tolist()
    strikes = [kind.strikes * more for kind, more in zip(kinds, times, strict=True)]
    per_node_day = published.FAILURES_PER_1000_NODE_DAYS / 1000 * UTILISATION
    most = published.LEMON_MOST_FAILURES * per_node_day * SIGNAL_DAYS * n_nodes
    fits = min(1.0, most / sum(strikes))
    return {
        node: Lemon(kind, more, n * fits)
        for node, kind, more, n in zip(nodes, kinds, times, strikes, strict=True)
    }


NODES_PER_RACK: Final = 2
RACKS_PER_POD: Final = 10

MAINTENANCE: Final = 0
"""Outage planned long before: a rack is updated."""

INSPECTION: Final = 1
"""Outage after a check of low severity: the node is drained once its jobs have ended (A4)."""

REPAIR: Final = 2
"""Outage after a hardware failure."""

_MAINTENANCE_EVERY_S: Final = 30 * published.DAY_S
_MAINTENANCE_MEAN_S: Final = 2.5 * published.HOUR_S
_INSPECTIONS_PER_NODE_DAY: Final = 0.008
_INSPECTION_MEDIAN_S: Final = 3 * published.HOUR_S


@dataclass(frozen=True)
class Fleet:
    """The nodes, by number from 0."""

    names: list[str]
    hazard: Floats
    """Hardware failures per second of running time of a whole node's GPUs."""
    lemons: dict[int, Lemon]
    installed_days: Ints
    """Days between installation and the beginning of the period; one value per delivery."""

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class PlannedOutages:
    """Outages that are due at a time and begin when the node next stands empty."""

    due_s: Ints
    node: Ints
    kind: Ints
    length_s: Ints


def fleet(spec: DemoSpec, rng: np.random.Generator) -> Fleet:
    """Nodes of which a few are lemons; the mean failure rate is RSC-1's, lemons included."""
    n = spec.n_nodes
    lemons = planted_lemons(n, rng)
    of_lemons = [lemon.hazard for lemon in lemons.values()]
    of_all = n * published.FAILURES_PER_1000_NODE_DAYS / 1000 / published.DAY_S
    hazard = np.full(n, (of_all - sum(of_lemons)) / (n - len(lemons)))
    hazard[list(lemons)] = of_lemons
    width = max(4, len(str(n)))
    delivery = np.searchsorted([0.4, 0.7, 0.9], np.arange(n) / n, side="right")
    return Fleet(
        names=[f"gpu{i:0{width}d}" for i in range(1, n + 1)],
        hazard=hazard,
        lemons=lemons,
        installed_days=np.array([420, 240, 95, 20])[delivery],
    )


def planned_outages(spec: DemoSpec, nodes: Fleet, rng: np.random.Generator) -> PlannedOutages:
    """Monthly maintenance, rack by rack, and inspections, of some lemons far more often."""
    n, period = spec.n_nodes, spec.period_s
    racks = np.arange(n) // NODES_PER_RACK
    rounds = np.arange(period // _MAINTENANCE_EVERY_S + 1)
    offset = rng.integers(0, _MAINTENANCE_EVERY_S, racks[-1] + 1)[racks]
    due = (rounds[:, None] * _MAINTENANCE_EVERY_S + offset).ravel()
    node = np.tile(np.arange(n), len(rounds))
    length = rng.gamma(4, _MAINTENANCE_MEAN_S / 4, len(due))
    expected = np.full(n, _INSPECTIONS_PER_NODE_DAY * period / published.DAY_S)
    for one, lemon in nodes.lemons.items():
        expected[one] += lemon.expected(lemon.kind.drains, period)
    more_node = np.repeat(np.arange(n), rng.poisson(expected))
    n_inspections = len(more_node)
    more_due = rng.integers(0, period, n_inspections)
    more_length = _INSPECTION_MEDIAN_S * rng.lognormal(0, 0.8, n_inspections)
    due, node = np.concatenate([due, more_due]), np.concatenate([node, more_node])
    kind = np.repeat([MAINTENANCE, INSPECTION], [len(length), n_inspections])
    order = np.lexsort((node, due))
    order = order[due[order] < period]
    return PlannedOutages(
        due_s=due[order],
        node=node[order],
        kind=kind[order],
        length_s=np.concatenate([length, more_length])[order].astype(np.int64) + 600,
    )


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
    unseen: float
    """Share that ends jobs FAILED and that no check sees: log and drain by an operator tell."""
    median_repair_h: float
    component: str
    action: str
    signatures: tuple[tuple[float, tuple[Evidence, ...]], ...]
    """Alternatives with their probability; the first event of each is critical or fatal."""


def _xid(code: int, severity: str, text: str) -> Evidence:
    return Evidence("xid", severity, code, text)


def _check(name: str, text: str) -> Evidence:
    return Evidence(name, "critical", None, text)


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
_MOUNT = _check("check-storage", "mount /checkpoints missing or not answering")
_GSP_TIMEOUT = _xid(119, "critical", "timeout waiting for RPC response from GSP")
_GSP_ERROR = _xid(120, "critical", "GSP task exception")
_NVLINK = _xid(74, "critical", "NVLink: fatal error on link 3")
_NVLINK_DOWN = _check("check-dcgmi", "nvlink: link 3 down")
_DIMM = _check("check-syslogs", "EDAC MC0: uncorrectable memory error on DIMM B2")
_ETHERNET = _check("check-ethlink", "eth0 down")
_PSU = _check("check-ipmitool", "PSU 2 failure detected, power redundancy lost")

_SIGNATURES: Final = {
    "ib_link": ((0.97, (_LINK,)), (0.03, (_LINK, _BUS))),
    "gpu_memory": (
        (0.5, (_DOUBLE_BIT, _REMAP, _CONTAINED)),
        (0.3, (_UNCONTAINED,)),
        (0.2, (_REMAP_FAILED, _DCGM)),
    ),
    "filesystem_mount": ((1.0, (_MOUNT,)),),
    "pcie": ((0.57, (_PCI,)), (0.22, (_BUS, _PCI)), (0.21, (_BUS, _PCI, _IPMI))),
    "node_lost": ((1.0, ()),),
    "gpu_driver": ((0.8, (_GSP_TIMEOUT,)), (0.2, (_GSP_ERROR,))),
    "nvlink": ((1.0, (_NVLINK, _NVLINK_DOWN)),),
    "host_memory": ((1.0, (_DIMM,)),),
    "ethernet_link": ((1.0, (_ETHERNET,)),),
    "power": ((1.0, (_PSU,)),),
}
"""Cause -> the alternatives of what it leaves behind."""

_FACTS: Final = {
    "ib_link": ("hardware", 0.22, 0.2, 0, 5, "optics", "reseated and cleaned the transceiver"),
    "gpu_memory": ("hardware", 0.17, 0.1, 0, 8, "gpu", "replaced the GPU"),
    "filesystem_mount": ("system_software", 0.16, 0.4, 0.25, 1.5, "storage", "remounted, rebooted"),
    "pcie": ("hardware", 0.13, 0.4, 0, 12, "pcie", "reseated the riser, retrained the link"),
    "node_lost": ("unknown", 0.10, 1.0, 0, 2, "node", "rebooted, no fault found"),
    "gpu_driver": ("system_software", 0.07, 0.5, 0, 1, "driver", "reset GPUs, reloaded driver"),
    "nvlink": ("hardware", 0.06, 0.1, 0, 10, "gpu", "replaced the baseboard"),
    "host_memory": ("hardware", 0.05, 0.6, 0, 9, "dimm", "replaced a DIMM"),
    "ethernet_link": ("hardware", 0.02, 0.5, 0, 4, "nic", "replaced the cable"),
    "power": ("hardware", 0.02, 1.0, 0, 7, "psu", "replaced a power supply"),
}
"""Cause -> domain, share, shares NODE_FAIL and unseen, hours of repair, component, action."""

CAUSES: Final = tuple(Cause(name, *facts, _SIGNATURES[name]) for name, facts in _FACTS.items())
"""Causes in the order of their share. Faults of system software often end jobs FAILED, some without
a check that sees them, so that definitions of a failure differ on the demo."""

_LEMON_REPEATS: Final = 0.7
"""Share of a lemon's failures that have the cause of its own defect."""


@dataclass(frozen=True)
class Fault:
    """A hardware failure of one node."""

    cause: int
    """Index into `CAUSES`."""
    evidence: tuple[Evidence, ...]
    node_fail: bool
    """Whether Slurm loses the node (jobs end NODE_FAIL) or it is drained (FAILED)."""
    repair_s: int

    @property
    def unseen(self) -> bool:
        """Whether no check saw it and an operator drained the node."""
        return not self.evidence and not self.node_fail


class Faults:
    """Draws what is wrong with a node when it fails."""

    def __init__(self, nodes: Fleet, rng: np.random.Generator) -> None:
        self._rng = rng
        self._shares = np.array([cause.share for cause in CAUSES])
        self._shares /= self._shares.sum()
        names = [cause.name for cause in CAUSES]
        self._defect = {node: names.index(lemon.kind.cause) for node, lemon in nodes.lemons.items()}

    def strike(self, node: int) -> Fault:
        """The failure of a node: a lemon's is mostly its own defect again."""
        rng = self._rng
        own = self._defect.get(node)
        if own is None or rng.random() > _LEMON_REPEATS:
            own = int(rng.choice(len(CAUSES), p=self._shares))
        cause = CAUSES[own]
        weights = [probability for probability, _ in cause.signatures]
        hours = cause.median_repair_h * float(rng.lognormal(0, 0.7))
        evidence = cause.signatures[int(rng.choice(len(weights), p=weights))][1]
        how = float(rng.random())
        return Fault(
            cause=own,
            evidence=evidence if how < 1 - cause.unseen else (),
            node_fail=how < cause.node_fail,
            repair_s=max(900, int(hours * published.HOUR_S)),
        )
