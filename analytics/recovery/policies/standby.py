"""Nodes that stand ready: a lost one is swapped, not queued for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.recovery.policy import Parameter, Policy, sooner
from analytics.recovery.spares import ENOUGH, quantile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.recovery.mechanism import Mechanism
    from analytics.recovery.policy import Site


def _stands_ready(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """So many nodes are swapped in, at most as slowly as the queue gives some."""
    nodes = int(values["standby"])
    if not nodes:
        return ground
    swap = min(values["swap_min"], ground.requeue_min) if site.cluster_gives else values["swap_min"]
    return replace(ground, standby=nodes, swap_min=swap)


def _byterobust(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """As many as are enough, and code that is changed without a new job."""
    nodes = site.hazards.nodes
    enough = quantile(nodes, values["p_failure"], ENOUGH) if values["p_failure"] > 0 else 0
    standby = _stands_ready(ground, site, {**values, "standby": enough})
    if not enough:
        return standby
    restart = sooner(standby.restart, detect=values["detect_min"], init=values["init_min"])
    return replace(standby, in_place=True, restart=restart)


def swap_seconds(gpus: float) -> float:
    """Seconds of a hot update on so many GPUs, between those of ByteRobust's Table 7."""
    sizes, seconds = (2048, 4096, 8192, 16384), (46.0, 51.0, 54.0, 65.0)
    at = math.log2(min(max(gpus, sizes[0]), sizes[-1]) / sizes[0])
    low = min(int(at), 2)
    return seconds[low] + (at - low) * (seconds[low + 1] - seconds[low])


POLICIES = (
    Policy(
        "vela", "IBM Vela (2407.05467)",
        "Nodes are checked periodically, and a buffer of spare ones is kept.",
        "spare nodes that other work does not use", _stands_ready,
        (
            Parameter("standby", 4.0, "nodes", "no figure is cited for it", "assumed"),
            Parameter("swap_min", 5.0, "min", "no figure is cited for it", "assumed"),
        ),
    ),
    Policy(
        "warm-standby", "ByteRobust, warm standby",
        "As many nodes stand ready, started up, as are enough for 99 % of the time.",
        "spare nodes with a running environment; a controller that evicts and swaps", _byterobust,
        (
            Parameter("p_failure", 1.2e-3, "ratio", "gives Table 7's 2, 2, 3, 4 machines",
                      "derived"),
            Parameter("swap_min", swap_seconds(16_384) / 60.0, "min",
                      "Table 7: 46 to 65 s on 2,048 to 16,384 GPUs", "reported"),
            Parameter("init_min", swap_seconds(16_384) / 60.0, "min", "the same", "reported"),
            Parameter("detect_min", 1.0, "min", "explicit failures: about 60 s", "reported"),
        ),
    ),
)  # fmt: skip
