"""The tables about nodes: `clusters`, `nodes`, `node_facts`, `node_events`, `tickets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from data.synthetic.calibration import DAY_S
from data.synthetic.columns import constant, ints, times, words
from data.synthetic.fleet import (
    CAUSES,
    INSPECTION,
    MAINTENANCE,
    NODES_PER_RACK,
    RACKS_PER_POD,
    REPAIR,
)
from data.synthetic.spec import GPUS_PER_NODE

if TYPE_CHECKING:
    from data.synthetic.cluster import Played
    from data.synthetic.schedule import Schedule


GPU_MODEL: Final = "A100-SXM4-80GB"

_DRIVERS: Final = ("535.161.08", "550.127.05")
_FIRMWARES: Final = ("92.00.45.00.03", "92.00.81.00.06")
_DRIVER_CHANGE: Final = 0.4
"""Part of the period after which maintenance installs the newer driver."""


def clusters_table(_: Played) -> pa.Table:
    """The one row of the demo; its GPU-hours have no price until site.toml gives one."""
    return pa.table(
        {
            "gpus_per_node": pa.array([GPUS_PER_NODE], pa.int32()),
            "gpu_model": [GPU_MODEL],
            "timezone": ["UTC"],
            "scheduler": ["slurm"],
            "synthetic": [True],
        }
    )


def nodes_table(demo: Played) -> pa.Table:
    """Every node, two to a rack and ten racks to a pod (papers.md A1)."""
    nodes, n = demo.nodes, len(demo.nodes)
    rack = np.arange(n) // NODES_PER_RACK
    pod = rack // RACKS_PER_POD
    return pa.table(
        {
            "node": nodes.names,
            "first_seen_at": times(-nodes.installed_days * DAY_S),
            "last_seen_at": times(np.full(n, demo.spec.period_s)),
            "gpus": ints(np.full(n, GPUS_PER_NODE, dtype=np.int32)),
            "rack": words(rack, [f"r{i + 1:03d}" for i in range(rack[-1] + 1)]),
            "pod": words(pod, [f"pod{i + 1:02d}" for i in range(pod[-1] + 1)]),
            "serial": [f"DEMO{i + 1:06d}" for i in range(n)],
            "role": constant("compute", n),
            "source": constant("inventory", n),
        }
    )


def node_facts_table(demo: Played) -> pa.Table:
    """Driver, firmware and delivery of every node; the driver changes at a maintenance."""
    schedule, nodes, n = demo.schedule, demo.nodes, len(demo.nodes)
    changed_s = _driver_changes(schedule, n)
    installed_s = -nodes.installed_days * DAY_S
    updated = np.flatnonzero(changed_s >= 0)
    _, delivery = np.unique(-nodes.installed_days, return_inverse=True)
    node = np.concatenate([np.arange(n), updated, np.arange(n), np.arange(n)])
    parts = (n, len(updated), n, n)
    from_s = np.concatenate([installed_s, changed_s[updated], installed_s, installed_s])
    to_s = np.concatenate([changed_s, np.full(parts[1] + 2 * n, -1)])
    values = (*_DRIVERS, *_FIRMWARES, *(f"delivery-{i + 1}" for i in range(4)))
    value = np.concatenate(
        [np.zeros(n), np.ones(parts[1]), 2 + (delivery >= 2), 4 + delivery]
    ).astype(np.int64)
    return pa.table(
        {
            "node": words(node, nodes.names),
            "gpu": pa.nulls(len(node), pa.string()),
            "key": words(np.repeat([0, 0, 1, 2], parts), ["driver", "firmware", "batch"]),
            "from_at": times(from_s),
            "to_at": times(to_s, to_s >= 0),
            "value": words(value, values),
        }
    )


def _driver_changes(schedule: Schedule, n_nodes: int) -> np.ndarray:
    """When each node got the newer driver, seconds; -1 where it still has the older one."""
    outages = schedule.outages
    changed_s = np.full(n_nodes, -1)
    late = (outages["kind"] == MAINTENANCE) & (
        outages["start_s"] >= _DRIVER_CHANGE * schedule.period_s
    )
    chosen = np.flatnonzero(late & (outages["end_s"] < schedule.period_s))[::-1]
    changed_s[outages["node"][chosen]] = outages["end_s"][chosen]
    return changed_s


_STATES: Final = ("MAINT", "DRAIN", "DOWN")
_INSPECTION_TICKETS: Final = 0.4
"""Share of inspections that end in a ticket."""


def node_events_table(demo: Played) -> pa.Table:
    """Every interval out of service; NULL ends where it lasts beyond the period."""
    schedule, nodes = demo.schedule, demo.nodes
    node, start_s, end_s, kind, reference = schedule.outages.values()
    faults = [fault for _, _, fault in schedule.strikes]
    reasons = [
        "planned: firmware and driver update",
        "check-dcgmi: warning, drained for inspection",
        "Not responding",
    ]
    of_fault = np.full(len(faults) + 1, reasons.index("Not responding"))
    for number, fault in enumerate(faults):
        if fault.evidence and not fault.node_fail:
            first = fault.evidence[0]
            text = f"{first.check}: {first.text}"
            if text not in reasons:
                reasons.append(text)
            of_fault[number] = reasons.index(text)
    fault_of = np.where(kind == REPAIR, reference, -1)
    lost = np.array([*(fault.node_fail for fault in faults), False])[fault_of]
    return pa.table(
        {
            "node": words(node, nodes.names),
            "start_at": times(start_s),
            "end_at": times(end_s, end_s < schedule.period_s),
            "state": words(np.where(lost, 2, np.where(kind == MAINTENANCE, 0, 1)), _STATES),
            "reason": words(np.where(kind == REPAIR, of_fault[fault_of], kind), reasons),
            "reason_user": words(
                np.where(lost, 0, np.where(kind == MAINTENANCE, 1, 2)),
                ["slurm", "operator", "healthcheck"],
            ),
            "planned": pa.array(kind == MAINTENANCE),
        }
    )


def tickets_table(demo: Played) -> pa.Table:
    """A ticket for every repair and for some inspections, opened within ten minutes."""
    schedule, nodes, rng = demo.schedule, demo.nodes, demo.chance["tickets"]
    node, start_s, end_s, kind, reference = schedule.outages.values()
    opened_s = start_s + rng.integers(60, 600, len(node))
    inspected = (kind == INSPECTION) & (rng.random(len(node)) < _INSPECTION_TICKETS)
    chosen = ((kind == REPAIR) | inspected) & (opened_s < schedule.period_s)
    rows = np.flatnonzero(chosen)[np.argsort(opened_s[chosen], kind="stable")]
    component, action, text = [], [], []
    for row in rows.tolist():
        name = nodes.names[int(node[row])]
        if kind[row] == REPAIR:
            fault = schedule.strikes[int(reference[row])][2]
            cause = CAUSES[fault.cause]
            seen = fault.evidence[0].text if fault.evidence else "stopped responding"
            component.append(cause.component)
            action.append(cause.action)
            text.append(f"{name}: {seen}")
        else:
            component.append("gpu")
            action.append("stress test passed")
            text.append(f"{name}: PCIe replays above threshold")
    return pa.table(
        {
            "ticket_id": pa.array([f"T-{i + 1:06d}" for i in range(len(rows))], pa.string()),
            "node": words(node[rows], nodes.names),
            "opened_at": times(opened_s[rows]),
            "closed_at": times(end_s[rows], end_s[rows] < schedule.period_s),
            "component": pa.array(component, pa.string()),
            "action": pa.array(action, pa.string()),
            "text": pa.array(text, pa.string()),
        }
    )
