"""The tables about nodes: what they are, what failed, when they were out of service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from data.synthetic import published
from data.synthetic.columns import constant, event_ids, ints, times, words
from data.synthetic.fleet import (
    CAUSES,
    INSPECTED,
    INSPECTION,
    LEMON_KINDS,
    MAINTENANCE,
    NO_FAULT,
    NODES_PER_RACK,
    RACKS_PER_POD,
    REPAIR,
    Evidence,
)
from data.synthetic.schedule import ILLEGAL_ACCESS
from data.synthetic.spec import GPUS_PER_NODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.arrays import Ints
    from data.synthetic.cluster import Played
    from data.synthetic.fleet import Fleet
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
            "first_seen_at": times(-nodes.installed_days * published.DAY_S),
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
    installed_s = -nodes.installed_days * published.DAY_S
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
_WARNINGS: Final = tuple(
    Evidence(check, "warning", None, text)
    for check, text in dict.fromkeys([INSPECTED, *(kind.warning for kind in LEMON_KINDS)])
)
"""For what nodes are inspected; the first is that of nodes that are no lemons."""


def _warnings(nodes: Fleet) -> Ints:
    """Of each node the number in `_WARNINGS` of that for which it is inspected."""
    found = np.zeros(len(nodes), dtype=np.int64)
    for node, lemon in nodes.lemons.items():
        found[node] = [(one.check, one.text) for one in _WARNINGS].index(lemon.kind.warning)
    return found


def node_events_table(demo: Played) -> pa.Table:
    """Every interval out of service; NULL ends where it lasts beyond the period."""
    schedule, nodes = demo.schedule, demo.nodes
    node, start_s, end_s, kind, reference = schedule.outages.values()
    faults = [fault for _, _, fault in schedule.strikes]
    reasons = [
        "planned: firmware and driver update",
        *(f"{one.check}: warning, drained for inspection" for one in _WARNINGS),
        "Not responding",
    ]
    of_fault = np.full(len(faults) + 1, reasons.index("Not responding"))
    for number, fault in enumerate(faults):
        if fault.node_fail:
            continue
        by_check = [f"{one.check}: {one.text}" for one in fault.evidence]
        text = (*by_check, f"operator: {CAUSES[fault.cause].action}")[0]
        if text not in reasons:
            reasons.append(text)
        of_fault[number] = reasons.index(text)
    fault_of = np.where(kind == REPAIR, reference, -1)
    lost = np.array([*(fault.node_fail for fault in faults), False])[fault_of]
    by_hand = (kind == MAINTENANCE) | np.array([*(fault.unseen for fault in faults), False])[
        fault_of
    ]
    return pa.table(
        {
            "node": words(node, nodes.names),
            "start_at": times(start_s),
            "end_at": times(end_s, end_s < schedule.period_s),
            "state": words(np.where(lost, 2, np.where(kind == MAINTENANCE, 0, 1)), _STATES),
            "reason": words(
                np.select(
                    [kind == REPAIR, kind == INSPECTION],
                    [of_fault[fault_of], 1 + _warnings(nodes)[node]],
                ),
                reasons,
            ),
            "reason_user": words(
                np.where(lost, 0, np.where(by_hand, 1, 2)),
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
    ticketed = np.full(len(nodes), _INSPECTION_TICKETS)
    ticketed[list(nodes.lemons)] = [one.kind.ticketed for one in nodes.lemons.values()]
    inspected = (kind == INSPECTION) & (rng.random(len(node)) < ticketed[node])
    chosen = ((kind == REPAIR) | inspected) & (opened_s < schedule.period_s)
    rows = np.flatnonzero(chosen)[np.argsort(opened_s[chosen], kind="stable")]
    warnings = _warnings(nodes)[node]
    component, action, text = [], [], []
    for row in rows.tolist():
        name = nodes.names[int(node[row])]
        if kind[row] == REPAIR:
            fault = schedule.strikes[int(reference[row])][2]
            cause = CAUSES[fault.cause]
            silent = "no check failed" if fault.unseen else "stopped responding"
            seen = fault.evidence[0].text if fault.evidence else silent
            component.append(cause.component)
            action.append(cause.action)
            text.append(f"{name}: {seen}")
        else:
            lemon = nodes.lemons.get(int(node[row]))
            what, how = NO_FAULT if lemon is None else lemon.kind.repair
            component.append(what)
            action.append(how)
            text.append(f"{name}: {_WARNINGS[warnings[row]].text}")
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


PCI_ADDRESSES: Final = tuple(
    f"0000:{bus}:00" for bus in ("07", "0f", "47", "4e", "87", "90", "b7", "bd")
)
"""PCI addresses of the GPUs of a node, as the kernel names them."""

_BACKGROUND: Final = (
    (0.38, Evidence("check-sensors", "warning", None, "GPU temperature above 83 C")),
    (0.20, Evidence("check-processor", "warning", None, "load above twice the number of cores")),
    (0.15, Evidence("check-storage", "warning", None, "/scratch is 91 % full")),
    (0.12, Evidence("check-syslogs", "warning", None, "EDAC MC0: corrected memory errors")),
    (0.08, Evidence("check-ethlink", "warning", None, "eth0: receive errors are rising")),
    (0.05, Evidence("check-ib", None, None, "check timed out")),
    (0.02, Evidence("xid", "info", 63, "row remapper: new row marked for remapping")),
)
"""What nodes report all the time, with shares; none of it is critical (A4)."""

_USER: Final = (
    Evidence("xid", "warning", 31, "MMU fault: access to an unmapped address by a compute engine"),
    Evidence("xid", "warning", 13, "graphics exception: illegal address in a kernel"),
)
_USER_AFTER: Final = Evidence("xid", "info", 43, "channel stopped after the error of its process")

_STORM: Final = (
    Evidence("xid", "info", 92, "high single-bit ECC error rate"),
    Evidence("xid", "info", 63, "row remapper: new row marked for remapping"),
)
_STORM_S: Final = 600
"""Length of a storm of kernel lines."""
_FALSE_ALARM: Final = Evidence("check-ipmitool", "critical", None, "sensor reading out of range")

KINDS: Final = tuple(
    dict.fromkeys(
        [
            *(one for cause in CAUSES for _, signature in cause.signatures for one in signature),
            *(one for _, one in _BACKGROUND),
            *_USER,
            _USER_AFTER,
            *_STORM,
            *_WARNINGS,
            _FALSE_ALARM,
        ]
    )
)
"""Every kind of event in the demo."""

_EVENT: Final = ("at_s", "node", "kind", "gpu")
"""Columns of events: second of the period, node, index into `KINDS`, GPU."""
_PER_NODE_DAY: Final = 0.5
_FALSE_ALARMS_PER_NODE_DAY: Final = 0.0005
_SEVERITIES: Final = ("info", "warning", "critical", "fatal")
_CHECK_EVERY_S: Final = 300


def health_events_table(demo: Played) -> pa.Table:
    """Observations of the kernel and of health checks, in order of time.

    A hardware failure shows within a minute before (kernel) to 200 seconds after (checks, which
    run every five minutes) the end of the jobs it ends, well inside the window of attribution.
    """
    nodes, rng = demo.nodes, demo.chance["health"]
    events = pd.concat(
        [
            part(demo, rng)
            for part in (_of_strikes, _of_users, _of_inspections, _background, _storms)
        ]
    ).sort_values("at_s", kind="stable")
    events = events[(events["at_s"] >= 0) & (events["at_s"] < demo.schedule.period_s)]
    at_s, node, kind, gpu = (events[name].to_numpy() for name in _EVENT)
    n = len(events)
    xid = np.array([one.xid or 0 for one in KINDS], dtype=np.int32)[kind]
    checks = sorted({one.check for one in KINDS})
    check = np.array([checks.index(one.check) for one in KINDS])
    severity = np.array([_SEVERITIES.index(k.severity) if k.severity else -1 for k in KINDS])
    messages = [_message(one, gpu) for one in KINDS for gpu in range(GPUS_PER_NODE)]
    return pa.table(
        {
            "event_id": event_ids(n, rng),
            "node": words(node, nodes.names),
            "gpu": words(np.where(xid > 0, gpu, -1), PCI_ADDRESSES),
            "observed_at": times(at_s),
            "source": words((xid == 0).astype(np.int8), ["kernel", "health_check"]),
            "check_name": words(check[kind], checks),
            "severity": words(severity[kind], _SEVERITIES),
            "xid": ints(xid, xid > 0),
            "message": words(kind * GPUS_PER_NODE + gpu, messages),
        }
    )


def _message(one: Evidence, gpu: int) -> str:
    if one.xid is None:
        return one.text
    process = "pid='<unknown>', name=<unknown>"
    if one in (*_USER, _USER_AFTER):
        process = "pid=31415, name=python3"
    return f"NVRM: Xid (PCI:{PCI_ADDRESSES[gpu]}): {one.xid}, {process}, {one.text}"


def _events(rows: Iterator[tuple[float, int, int, int]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=list(_EVENT), dtype=np.float64)
    return frame.astype(dict.fromkeys(_EVENT[1:], np.int64))


def _of_strikes(demo: Played, rng: np.random.Generator) -> pd.DataFrame:
    """Kernel lines, often repeated, just before; checks just after, and again during repair."""

    schedule = demo.schedule

    def rows() -> Iterator[tuple[float, int, int, int]]:
        for at_s, node, fault in schedule.strikes:
            gpu = int(rng.integers(GPUS_PER_NODE))
            line_s = max(at_s - rng.uniform(5, 55), 0)
            check_s = min(at_s + rng.uniform(10, 200), schedule.period_s - 1)
            for one in fault.evidence:
                kind = KINDS.index(one)
                if one.xid:
                    for _ in range(int(rng.integers(1, 4))):
                        yield line_s, node, kind, gpu
                        line_s += rng.uniform(0.01, 1.5)
                    continue
                repeats = min(3, (fault.repair_s - 900) // _CHECK_EVERY_S)
                for again in range(1 + max(0, repeats)):
                    yield check_s + again * _CHECK_EVERY_S, node, kind, gpu

    return _events(rows())


def _of_users(demo: Played, rng: np.random.Generator) -> pd.DataFrame:
    """A page fault or exception, then the stopped channel, as a user's program crashes."""
    schedule, rows = demo.schedule, demo.verdicts.of(ILLEGAL_ACCESS)
    node = schedule.nodes[schedule.begins[rows]]
    end_s = schedule.end_s[rows] - rng.uniform(1, 4, len(rows))
    kind = np.array([KINDS.index(one) for one in _USER])[rng.choice(2, len(rows), p=[0.7, 0.3])]
    after = np.full(len(rows), KINDS.index(_USER_AFTER))
    gpu = rng.integers(0, GPUS_PER_NODE, len(rows))
    return pd.DataFrame(
        {
            "at_s": np.concatenate([end_s, end_s + 0.2]),
            "node": np.tile(node, 2),
            "kind": np.concatenate([kind, after]),
            "gpu": np.tile(gpu, 2),
        }
    )


def _of_inspections(demo: Played, rng: np.random.Generator) -> pd.DataFrame:
    """The warning for which a node is drained once its jobs have ended."""
    outages = demo.schedule.outages
    chosen = outages["kind"] == INSPECTION
    node = outages["node"][chosen]
    due_s = demo.planned.due_s[outages["reference"][chosen]]
    at_s = due_s + rng.uniform(0, 1, len(node))
    kind = np.array([KINDS.index(one) for one in _WARNINGS])[_warnings(demo.nodes)[node]]
    return pd.DataFrame({"at_s": at_s, "node": node, "kind": kind, "gpu": 0})


def _storms(demo: Played, rng: np.random.Generator) -> pd.DataFrame:
    """Now and then dozens of harmless lines of one GPU of a lemon, always the same GPU."""

    def rows() -> Iterator[tuple[float, int, int, int]]:
        for node, lemon in demo.nodes.lemons.items():
            gpu = int(rng.integers(GPUS_PER_NODE))
            n_storms = rng.poisson(lemon.expected(lemon.kind.storms, demo.schedule.period_s))
            for begin_s in rng.uniform(0, demo.schedule.period_s, n_storms).tolist():
                for after_s in rng.uniform(0, _STORM_S, int(rng.integers(10, 60))).tolist():
                    kind = _STORM[int(rng.integers(len(_STORM)))]
                    yield begin_s + after_s, node, KINDS.index(kind), gpu

    return _events(rows())


def _background(demo: Played, rng: np.random.Generator) -> pd.DataFrame:
    """Warnings at all times, and very few false alarms.

    False alarms are so rare that far less than 1 % of completed jobs see one (A4).
    """
    nodes, period_s = demo.nodes, demo.schedule.period_s
    node_days = len(nodes) * period_s / published.DAY_S
    n, n_false = rng.poisson([_PER_NODE_DAY * node_days, _FALSE_ALARMS_PER_NODE_DAY * node_days])
    shares = [share for share, _ in _BACKGROUND]
    kinds = np.array([KINDS.index(one) for _, one in _BACKGROUND])
    false = np.full(n_false, KINDS.index(_FALSE_ALARM))
    return pd.DataFrame(
        {
            "at_s": rng.uniform(0, period_s, n + n_false),
            "node": rng.integers(0, len(nodes), n + n_false),
            "kind": np.concatenate([kinds[rng.choice(len(kinds), n, p=shares)], false]),
            "gpu": rng.integers(0, GPUS_PER_NODE, n + n_false),
        }
    )
