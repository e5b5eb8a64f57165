"""Lemons of the demo: nodes that keep failing, each in a way of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from data.synthetic import calibration as cal
from data.synthetic.spec import UTILISATION

if TYPE_CHECKING:
    import numpy as np

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
        return self.strikes / (SIGNAL_DAYS * cal.DAY_S * UTILISATION)

    def expected(self, rate: float, period_s: int) -> float:
        """Events expected in the period, of a rate of its kind."""
        return self.times * rate * period_s / (SIGNAL_DAYS * cal.DAY_S)


def planted_lemons(n_nodes: int, rng: np.random.Generator) -> dict[int, Lemon]:
    """Node -> lemon: 1.2 % of the nodes (papers.md A8), one where a fleet is smaller.

    Their failures are at most half of what the fleet has at RSC-1's rate: the lemon of a small
    fleet fails less often than its kind would.
    """
    if n_nodes < cal.LEMON_LEAST_NODES:
        return {}
    n_lemons = max(1, round(cal.LEMON_RATIO * n_nodes))
    nodes = sorted(rng.choice(n_nodes, n_lemons, replace=False).tolist())
    kinds = [LEMON_KINDS[i % len(LEMON_KINDS)] for i in range(n_lemons)]
    times = rng.uniform(1, _WORST, n_lemons).tolist()
    strikes = [kind.strikes * more for kind, more in zip(kinds, times, strict=True)]
    per_node_day = cal.FAILURES_PER_1000_NODE_DAYS / 1000 * UTILISATION
    most = cal.LEMON_MOST_FAILURES * per_node_day * SIGNAL_DAYS * n_nodes
    fits = min(1.0, most / sum(strikes))
    return {
        node: Lemon(kind, more, n * fits)
        for node, kind, more, n in zip(nodes, kinds, times, strikes, strict=True)
    }
