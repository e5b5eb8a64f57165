"""What the shifts of all metrics say together of each machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.nodes.machines.shifts import shifts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.nodes.machines.samples import Array
    from analytics.nodes.machines.shifts import Regimes, Shifts

ERRORS: Final = "errors"
KINDS: Final = (
    (ERRORS, r"ecc|replay|retr|pfc|pause|cnp|error|sequence|drop|discard|correct"),
    ("waiting for input", r"io_?wait|procs_blocked|io_time|pressure_io"),
    ("fan", r"(?<![a-z])fans?(?![a-z])|rpm"),
    ("inlet", r"(?:inlet|ambient)(?!.*press)"),
    ("voltage", r"volt"),
    ("temperature", r"temp"),
    ("power", r"power|watt"),
    ("clock", r"clock|mhz"),
    ("host link", r"pcie"),
    ("engines", r"gpu_?util|duty|busy_ratio|tensor|dram|graphics|gr_engine|sm_?active|nvlink"),
    ("disk", r"disk|read_bytes|storage"),
    ("network", r"infiniband|network|rdma|transmit|receive|net_|port_data|xmit|rcv"),
    ("processor", r"cpu|load"),
)
"""Kinds of metrics by what their names have in common, the first that fits: those of one kind tell
one story and count once, but errors, which are counted apart."""
FOLLOWED_BY: Final = {
    "fan": ("temperature", "clock", "power"),
    "voltage": ("power", "clock", "engines"),
    "temperature": ("power", "clock"),
    "power": ("clock", "temperature"),
    "disk": ("waiting for input", "engines"),
}
"""A kind of which a metric that moved tells of its sensor, where none of these moved."""
OF_INLET: Final = ("temperature", "fan")
"""Kinds that follow warm air: of a machine whose inlet moved counts what they moved beyond it."""
DIRECTION: Final = {
    ERRORS: 1,
    "waiting for input": 1,
    **dict.fromkeys(("clock", "power", "engines", "host link", "network", "disk"), -1),
}
"""Kinds of which only a rise, or only a fall, is a fault."""
MOVED: Final = 2.0
"""Score from which on a metric moved with others."""
BY_CHANCE: Final = 1.0
"""Score of a metric that adds nothing."""


def kind_of(metric: str) -> str:
    """What a metric tells of.

    >>> kind_of("DCGM_FI_DEV_PCIE_REPLAY_COUNTER"), kind_of("node_cpu_iowait"), kind_of("gpu_temp")
    ('errors', 'waiting for input', 'temperature')
    """
    return next((kind for kind, names in KINDS if re.search(names, metric, re.I)), metric)


@dataclass(frozen=True)
class Evidence:
    """Shifts of all machines in all metrics."""

    of: Mapping[str, Shifts]
    joint: Array
    r"""(machines) :math:`\sqrt{\sum_g \max(z_g - 1, 0)^2}`, z the largest score of a kind."""

    @classmethod
    def gathered(
        cls, blocks: Mapping[str, Array], regimes: Regimes, least: int, most_faulty: int
    ) -> Evidence:
        """Of (blocks, machines) of each metric."""
        of = {
            metric: shifts(
                values,
                regimes,
                least,
                direction=DIRECTION.get(kind_of(metric), 0),
                most_faulty=most_faulty,
            )
            for metric, values in blocks.items()
        }
        return cls(of, _joint(of))

    def metrics(self, machine: int, least: float = MOVED) -> list[str]:
        """Metrics in which a machine moved, the surest first."""
        score = {metric: float(found.score[machine]) for metric, found in self.of.items()}
        return sorted((m for m, value in score.items() if value >= least), key=lambda m: -score[m])

    def is_sensor(self, machine: int, needed: float) -> bool:
        """Whether sensors moved alone of those that move together.

        Without them the machine's score is below `needed`.
        """
        moved = [metric for metric in self.metrics(machine) if kind_of(metric) != "inlet"]
        if not moved:
            return True
        kinds, seen = {kind_of(metric) for metric in moved}, {kind_of(metric) for metric in self.of}
        alone = {
            kind
            for kind in kinds & FOLLOWED_BY.keys()
            if seen & {*FOLLOWED_BY[kind]} and not kinds & {*FOLLOWED_BY[kind]}
        }
        if kind_of(moved[0]) not in alone:
            return False
        rest = {metric: found for metric, found in self.of.items() if kind_of(metric) not in alone}
        return not rest or float(_joint(rest)[machine]) < needed


def _joint(of: Mapping[str, Shifts]) -> Array:
    """(machines) scores of all kinds together; see `Evidence.joint`."""
    kinds: dict[str, Array] = {}
    for metric, found in of.items():
        kind = kind_of(metric)
        story = metric if kind == ERRORS else kind
        kinds[story] = np.maximum(kinds.get(story, 0.0), found.score)
    inlet = kinds.pop("inlet", None)
    if inlet is not None:
        for kind in OF_INLET:
            if kind in kinds:
                beyond = np.maximum(kinds[kind] - inlet, 0.0)
                kinds[kind] = np.where(inlet >= MOVED, beyond, kinds[kind])
    scores = np.stack(list(kinds.values())) if kinds else np.zeros((1, 1))
    joint: Array = np.sqrt(np.square(np.maximum(scores - BY_CHANCE, 0.0)).sum(axis=0))
    return joint
