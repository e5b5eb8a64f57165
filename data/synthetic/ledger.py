"""Where every GPU-second of the demo went, as planted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from data.synthetic import calibration as cal
from data.synthetic.fleet import INSPECTION, MAINTENANCE, REPAIR
from data.synthetic.spec import GPUS_PER_NODE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from data.synthetic.schedule import Schedule
    from data.synthetic.spec import DemoSpec

    Ints = NDArray[np.int64]

BUCKETS: Final = (
    "productive",
    "checkpoint",
    "startup",
    "lost_work",
    "lost_work_preempted",
    "queue_hold",
    "drained",
    "down_planned",
    "down_unplanned",
    "idle",
    "straggler",
    "other",
)
"""Buckets of the GPU-hour ledger (design/command-line.md)."""


def ledger(spec: DemoSpec, schedule: Schedule) -> dict[str, int]:
    """GPU-seconds of the period by bucket; whole numbers that sum to the capacity exactly.

    Running time: multi-node jobs start up for `STARTUP_S`, then work for `CHECKPOINT_INTERVAL_S`
    and write for `CHECKPOINT_WRITE_S` by turns; single-node jobs only work, and save as often.
    What was worked since the last complete checkpoint is lost when an attempt is interrupted: by
    hardware (`lost_work`), by preemption (`lost_work_preempted`), by its owner's requeue
    (`other`). What a user's own error loses counts as productive, after papers.md A6.

    Out of service: planned maintenance (`down_planned`), nodes lost (`down_unplanned`), nodes
    drained for repair or inspection (`drained`).

    The rest, in service and not allocated: at every second min(free GPUs, GPUs of jobs eligible
    and waiting) is `queue_hold`, what is free beyond that `idle`. What stragglers
    waste is counted as productive here.
    """
    buckets = dict.fromkeys(BUCKETS, 0)
    buckets.update({name: int(part.sum()) for name, part in running_gpu_s(schedule).items()})
    buckets.update(_out_of_service(schedule))
    free_while_waiting = _queue_hold(spec, schedule)
    buckets["queue_hold"] = free_while_waiting
    buckets["idle"] = spec.capacity_gpu_s - sum(buckets.values())
    return buckets


def running_gpu_s(schedule: Schedule) -> dict[str, Ints]:
    """GPU-seconds of running time of each attempt by bucket."""
    ran, gpus = schedule.ran_s, schedule.n_gpus
    gang = gpus > GPUS_PER_NODE
    startup = np.where(gang, np.minimum(ran, cal.STARTUP_S), 0)
    cycle = cal.CHECKPOINT_INTERVAL_S + np.where(gang, cal.CHECKPOINT_WRITE_S, 0)
    cycles, rest = np.divmod(ran - startup, cycle)
    unsaved = np.minimum(rest, cal.CHECKPOINT_INTERVAL_S)
    worked = cycles * cal.CHECKPOINT_INTERVAL_S + unsaved
    struck = schedule.strike >= 0
    preempted = schedule.in_state("PREEMPTED")
    requeued = schedule.in_state("REQUEUED")
    saved = worked - np.where(struck | preempted | requeued, unsaved, 0)
    return {
        "productive": saved * gpus,
        "checkpoint": (ran - startup - worked) * gpus,
        "startup": startup * gpus,
        "lost_work": unsaved * gpus * struck,
        "lost_work_preempted": unsaved * gpus * preempted,
        "other": unsaved * gpus * requeued,
    }


def _out_of_service(schedule: Schedule) -> dict[str, int]:
    outages = schedule.outages
    lost = np.array([fault.node_fail for _, _, fault in schedule.strikes] or [False], dtype=bool)
    kind = outages["kind"]
    down = (kind == REPAIR) & lost[np.where(kind == REPAIR, outages["reference"], 0)]
    gpu_s = _clipped_s(schedule) * GPUS_PER_NODE
    return {
        "down_planned": int(gpu_s[kind == MAINTENANCE].sum()),
        "down_unplanned": int(gpu_s[down].sum()),
        "drained": int(gpu_s[(kind == INSPECTION) | ((kind == REPAIR) & ~down)].sum()),
    }


def _clipped_s(schedule: Schedule) -> Ints:
    ends = np.minimum(schedule.outages["end_s"], schedule.period_s)
    return ends - schedule.outages["start_s"]


def _queue_hold(spec: DemoSpec, schedule: Schedule) -> int:
    """GPU-seconds that were free in service while eligible jobs waited for as many."""
    gpus, period = schedule.n_gpus, schedule.period_s
    began = schedule.start_s >= 0
    until = np.where(began, schedule.start_s, np.where(schedule.end_s < 0, period, schedule.end_s))
    out = np.full(len(schedule.outages["node"]), GPUS_PER_NODE)
    steps = (
        (schedule.start_s[began], -gpus[began], 0),
        (schedule.stop_s[began], gpus[began], 0),
        (schedule.outages["start_s"], -out, 0),
        (schedule.outages["end_s"], out, 0),
        (schedule.eligible_s, 0, gpus),
        (until, 0, -gpus),
    )
    at = np.concatenate([np.minimum(times, period) for times, _, _ in steps])
    order = np.argsort(at, kind="stable")
    free, wanted = (
        np.cumsum(np.concatenate([np.broadcast_to(s[i], s[0].shape) for s in steps])[order])
        for i in (1, 2)
    )
    free = np.minimum(free + spec.n_nodes * GPUS_PER_NODE, wanted)
    return int((free * np.diff(at[order], append=period)).sum())
