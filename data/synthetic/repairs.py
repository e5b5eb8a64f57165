"""The tables `node_events` and `tickets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from data.synthetic.columns import cluster_column, times, words
from data.synthetic.faults import CAUSES
from data.synthetic.fleet import INSPECTION, MAINTENANCE, REPAIR

if TYPE_CHECKING:
    from data.synthetic.fleet import Fleet
    from data.synthetic.schedule import Schedule

_STATES: Final = ("MAINT", "DRAIN", "DOWN")
_INSPECTION_TICKETS: Final = 0.4
"""Share of inspections that end in a ticket."""


def node_events_table(schedule: Schedule, nodes: Fleet) -> pa.Table:
    """Every interval out of service; NULL ends where it lasts beyond the period."""
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
            "cluster": cluster_column(len(node)),
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


def tickets_table(schedule: Schedule, nodes: Fleet, rng: np.random.Generator) -> pa.Table:
    """A ticket for every repair and for some inspections, opened within ten minutes."""
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
            "cluster": cluster_column(len(rows)),
            "ticket_id": pa.array([f"T-{i + 1:06d}" for i in range(len(rows))], pa.string()),
            "node": words(node[rows], nodes.names),
            "opened_at": times(opened_s[rows]),
            "closed_at": times(end_s[rows], end_s[rows] < schedule.period_s),
            "component": pa.array(component, pa.string()),
            "action": pa.array(action, pa.string()),
            "text": pa.array(text, pa.string()),
        }
    )
