"""The tables `clusters`, `nodes` and `node_facts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from data.synthetic.calibration import DAY_S
from data.synthetic.columns import CLUSTER, cluster_column, constant, ints, times, words
from data.synthetic.fleet import MAINTENANCE, NODES_PER_RACK, RACKS_PER_POD
from data.synthetic.spec import GPUS_PER_NODE

if TYPE_CHECKING:
    from data.synthetic.fleet import Fleet
    from data.synthetic.schedule import Schedule

GPU_MODEL: Final = "A100-SXM4-80GB"

_DRIVERS: Final = ("535.161.08", "550.127.05")
_FIRMWARES: Final = ("92.00.45.00.03", "92.00.81.00.06")
_DRIVER_CHANGE: Final = 0.4
"""Part of the period after which maintenance installs the newer driver."""


def clusters_table() -> pa.Table:
    """The one row of the demo; its GPU-hours have no price until site.toml gives one."""
    return pa.table(
        {
            "cluster": [CLUSTER],
            "gpus_per_node": pa.array([GPUS_PER_NODE], pa.int32()),
            "gpu_model": [GPU_MODEL],
            "timezone": ["UTC"],
            "scheduler": ["slurm"],
            "synthetic": [True],
        }
    )


def nodes_table(nodes: Fleet, period_s: int) -> pa.Table:
    """Every node, two to a rack and ten racks to a pod (papers.md A1)."""
    n = len(nodes)
    rack = np.arange(n) // NODES_PER_RACK
    pod = rack // RACKS_PER_POD
    return pa.table(
        {
            "cluster": cluster_column(n),
            "node": nodes.names,
            "first_seen_at": times(-nodes.installed_days * DAY_S),
            "last_seen_at": times(np.full(n, period_s)),
            "gpus": ints(np.full(n, GPUS_PER_NODE, dtype=np.int32)),
            "rack": words(rack, [f"r{i + 1:03d}" for i in range(rack[-1] + 1)]),
            "pod": words(pod, [f"pod{i + 1:02d}" for i in range(pod[-1] + 1)]),
            "serial": [f"DEMO{i + 1:06d}" for i in range(n)],
            "role": constant("compute", n),
            "source": constant("inventory", n),
        }
    )


def node_facts_table(nodes: Fleet, schedule: Schedule) -> pa.Table:
    """Driver, firmware and delivery of every node; the driver changes at a maintenance."""
    n = len(nodes)
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
            "cluster": cluster_column(len(node)),
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
