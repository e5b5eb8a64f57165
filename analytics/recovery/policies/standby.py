"""Nodes that stand ready: a lost one is swapped, not queued for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

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
    swap = values.get("swap_min", 0.0)
    if site.cluster_gives:
        swap = min(swap, ground.requeue_min)
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


TABLE_7: Final = ((2048, 454, 46), (4096, 545, 51), (8192, 635, 54), (16_384, 768, 65))
"""GPUs, and seconds until a job trains again by requeue and by hot update: ByteRobust, Table 7."""
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
            Parameter("init_min", TABLE_7[-1][2] / 60.0, "min",
                      "Table 7: 46 to 65 s on 2,048 to 16,384 GPUs, the swap among them",
                      "reported"),
            Parameter("detect_min", 1.0, "min", "explicit failures: about 60 s", "reported"),
        ),
    ),
)  # fmt: skip
