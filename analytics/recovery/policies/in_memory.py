"""The state in the memory of other nodes: little is lost, unless too many fail at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.recovery.groups import at_most, chances, from_memory
from analytics.recovery.mechanism import Kept
from analytics.recovery.policy import Parameter, Policy, sooner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.recovery.mechanism import Mechanism
    from analytics.recovery.policy import Site

RARE = Parameter(
    "persist_min", 180.0, "min", "GEMINI writes to persistent storage every three hours", "recalled"
)


def kept_in_memory(
    ground: Mechanism, survives: tuple[float, ...], values: Mapping[str, float]
) -> Mechanism:
    """A state that lives in memory, with rare checkpoints for what it does not outlive."""
    load = ground.restart.load * values.get("load_ratio", 1.0)
    fetched = sooner(ground.restart, load=min(load, values.get("load_min", load)))
    kept = Kept(survives, "at once", fetched, values.get("every_min", 0.0))
    return replace(
        ground,
        kept=kept,
        steady_ratio=values.get("steady_ratio", 0.0),
        interval_min=values.get("persist_min") or ground.interval_min,
    )


def _gemini(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """Copies on m machines, itself one of them; of one copy nothing outlives its node."""
    copies = int(values["copies"])
    if not 1 < copies <= site.hazards.nodes:
        return ground
    survives = from_memory(site.hazards.nodes, copies, site.most_lost)
    return kept_in_memory(ground, survives, {"every_min": site.step_min, **values})


def _reft(ground: Mechanism, site: Site, values: Mapping[str, float]) -> Mechanism:
    """A parity group of n nodes outlives the loss of one."""
    size, nodes = int(values["group_nodes"]), site.hazards.nodes
    if not 1 < size <= nodes:
        return ground
    groups = [(at_most(size, 1), nodes // size - 1), (at_most(size + nodes % size, 1), 1)]
    return kept_in_memory(ground, chances(groups, nodes, site.most_lost), values)


TABLE_8 = "Table 8: .01 to .04 s a step, below .9 % of throughput"
POLICIES = (
    Policy(
        "gemini", "GEMINI (SOSP 23)",
        "Every step goes to the memory of a peer; where all copies are lost, the last checkpoint.",
        "host memory for two copies of the state; idle network between steps", _gemini,
        (
            Parameter("copies", 2.0, "machines", "SOSP 23: m = 2", "reported"),
            Parameter("steady_ratio", 0.0, "ratio", "SOSP 23: in idle times of the network",
                      "recalled"),
            Parameter("load_min", 0.1, "min", "from a peer: seconds", "recalled"),
            RARE,
        ),
    ),
    Policy(
        "reft", "REFT, hybrid-parallel in memory (2310.12670)",
        "Snapshots are sharded over a data-parallel group, with parity: one node of it may go.",
        "host memory for a shard and its parity; erasure coding", _reft,
        (
            Parameter("group_nodes", 4.0, "nodes", "a data-parallel group", "assumed"),
            Parameter("every_min", 1.0, "min", "between two snapshots", "assumed"),
            Parameter("steady_ratio", 0.01, "ratio", "no figure is cited for it", "assumed"),
            RARE,
        ),
    ),
    Policy(
        "byterobust-memory", "ByteRobust, in memory",
        "Two buffers and a peer of another group: every step, whatever group fails.",
        "host memory for two buffers; peers outside the own parallel groups", _gemini,
        (
            Parameter("copies", 2.0, "machines", "the own and one of another group", "reported"),
            Parameter("steady_ratio", 0.007, "ratio", TABLE_8, "derived"),
            RARE,
        ),
        builds_on="warm-standby",
    ),
    Policy(
        "transom", "TRANSOM (2310.10046)",
        "An operator that restarts, anomaly detection, and checkpoints in memory.",
        "host memory for copies; the operator and its detector", _gemini,
        (
            Parameter("copies", 2.0, "machines", "the own and a peer", "assumed"),
            Parameter("every_min", 5.0, "min", "between two saves to memory", "assumed"),
            Parameter("load_ratio", 0.05, "ratio", "saves and loads 20 times faster", "recalled"),
            RARE,
        ),
    ),
    Policy(
        "dlrover", "DLRover-RM (2304.01468), flash checkpoint",
        "Checkpoints stay in shared memory with a copy on a peer; nodes are checked at a restart.",
        "host memory for copies; the elastic agent", _gemini,
        (
            Parameter("copies", 2.0, "machines", "the own and a backup", "assumed"),
            Parameter("every_min", 5.0, "min", "between two flash checkpoints", "assumed"),
            RARE,
        ),
    ),
)  # fmt: skip
