"""The planted truth: the failure rate, the lemons, why each attempt failed, where GPU-time went."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from data.synthetic import published
from data.synthetic.columns import words
from data.synthetic.fleet import INSPECTION, MAINTENANCE, REPAIR, SIGNAL_DAYS
from data.synthetic.jobs import job_ids
from data.synthetic.logs import logged_jobs
from data.synthetic.schedule import CAUSE_DOMAINS, CAUSE_NAMES
from data.synthetic.spec import GPUS_PER_NODE, START_AT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from analytics.arrays import Bools, Floats, Ints
    from data.synthetic.cluster import Played
    from data.synthetic.fleet import Fleet
    from data.synthetic.schedule import Schedule
    from data.synthetic.spec import DemoSpec
    from data.synthetic.traces import PlantedTrace


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
    held = {name: int(part.sum()) for name, part in running_gpu_s(schedule).items()}
    other = held.pop("other")
    held |= {"queue_hold": _queue_hold(spec, schedule), **_out_of_service(schedule)}
    idle = spec.capacity_gpu_s - sum(held.values()) - other
    return held | {"idle": idle, "straggler": 0, "other": other}


def running_gpu_s(schedule: Schedule) -> dict[str, Ints]:
    """GPU-seconds of running time of each attempt by bucket."""
    ran, gpus = schedule.ran_s, schedule.n_gpus
    gang = gpus > GPUS_PER_NODE
    startup = np.where(gang, np.minimum(ran, published.STARTUP_S), 0)
    cycle = published.CHECKPOINT_INTERVAL_S + np.where(gang, published.CHECKPOINT_WRITE_S, 0)
    cycles, rest = np.divmod(ran - startup, cycle)
    unsaved = np.minimum(rest, published.CHECKPOINT_INTERVAL_S)
    worked = cycles * published.CHECKPOINT_INTERVAL_S + unsaved
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
    ends = np.minimum(outages["end_s"], schedule.period_s)
    gpu_s = (ends - outages["start_s"]) * GPUS_PER_NODE
    return {
        "drained": int(gpu_s[(kind == INSPECTION) | ((kind == REPAIR) & ~down)].sum()),
        "down_planned": int(gpu_s[kind == MAINTENANCE].sum()),
        "down_unplanned": int(gpu_s[down].sum()),
    }


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


COUNTED_ABOVE_GPUS: Final = 128
"""Jobs above this size count in the failure rate (papers.md A5)."""


@dataclass(frozen=True)
class DemoTruth:
    """What was planted, for checks of what an analysis finds.

    Attributes
    ----------
    rate_per_1000_node_days
        Expected failures per 1,000 node-days of running time, of attempts above 128 GPUs:
        sum(h_i e_i) / sum(e_i) over nodes i with failure rate h_i and realised exposure e_i to
        such attempts. Failures are a counting process with exactly this compensator, so their
        number is Poisson distributed around it. Where no such attempt ran, over all attempts.
    lemons
        Names of the nodes that are lemons.
    lemon_nodes
        Of each lemon: `node`, its `kind` (`LEMON_KINDS`), `since` when, and what is expected of it
        in 28 days at its realised hours of running and of service: `expected`, occasions by their
        kind (failure, drain, storm, exclusion), each of which may leave several signals, and
        `expected_occasions`, their sum.
    attempts
        One row per attempt that ended FAILED, NODE_FAIL, TIMEOUT or OUT_OF_MEMORY, or was
        requeued by its owner: `attempt_key`, `job_id`, `cause`, `domain` (user, system_software,
        hardware, unknown), `has_event` (a health event near its end shows the cause), `node` (the
        one that failed, None where none did).
    ledger
        GPU-seconds by bucket, whole numbers that sum to the capacity; see `ledger.ledger`. Of the
        productive time of a traced job, the share 1 - 1 / S is `straggler`.
    runs
        Of each job with training metrics, most GPU-time first: `job_id`, `n_gpus`, and
        `gpu_seconds`, its running time by bucket: productive, checkpoint, startup, lost_work,
        lost_work_preempted, other.
    traces
        Of each straggler trace: `name`, `job_id`, `cause` (worker, stage, sequence_length),
        `target` (`dp_rank`, `stage`, `rank` and `node`, or `stage`, or None) and `slowdown`, S.
    """

    rate_per_1000_node_days: float
    lemons: list[str]
    lemon_nodes: list[dict[str, object]]
    attempts: pa.Table
    ledger: dict[str, int]
    runs: list[dict[str, object]]
    traces: list[dict[str, object]]

    def as_dict(self) -> dict[str, object]:
        """The same as plain values, as `faultline demo --truth` writes it."""
        return vars(self) | {"attempts": self.attempts.to_pylist()}

    def to_json(self, path: Path) -> None:
        """Writes the truth as one JSON object."""
        path.write_text(json.dumps(self.as_dict()), encoding="utf-8")


def demo_truth(demo: Played) -> DemoTruth:
    """The truth behind a schedule."""
    schedule, nodes, verdicts = demo.schedule, demo.nodes, demo.verdicts
    struck = np.array([*(node for _, node, _ in schedule.strikes), -1])
    attempts = pa.table(
        {
            "attempt_key": demo.keys.take(pa.array(verdicts.row)),
            "job_id": job_ids(schedule.job[verdicts.row]),
            "cause": words(verdicts.cause, CAUSE_NAMES),
            "domain": words(verdicts.cause, CAUSE_DOMAINS),
            "has_event": pa.array(verdicts.has_event),
            "node": words(struck[schedule.strike][verdicts.row], nodes.names),
        }
    )
    return DemoTruth(
        rate_per_1000_node_days=_planted_rate(schedule, nodes),
        lemons=[nodes.names[node] for node in nodes.lemons],
        lemon_nodes=_lemon_nodes(schedule, nodes),
        attempts=attempts,
        ledger=_with_stragglers(ledger(demo.spec, schedule), schedule, demo.traces),
        runs=_runs(schedule),
        traces=[trace.truth() for trace in demo.traces],
    )


def planted_causes_table(demo: Played) -> pa.Table:
    """Why each attempt failed, as planted."""
    return demo.truth.attempts.drop_columns(["job_id", "node"])


def _lemon_nodes(schedule: Schedule, nodes: Fleet) -> list[dict[str, object]]:
    """What was planted in each lemon."""
    period_s, month_s = schedule.period_s, SIGNAL_DAYS * published.DAY_S
    counted = np.ones(len(schedule), dtype=bool)
    running = _exposure_s(schedule, counted, len(nodes)) / period_s
    outages = schedule.outages
    out_s = np.minimum(outages["end_s"], period_s) - outages["start_s"]
    in_service = 1 - np.bincount(outages["node"], out_s, len(nodes)) / period_s
    found: list[dict[str, object]] = []
    for node, lemon in nodes.lemons.items():
        expected = {
            "failure": lemon.hazard * month_s * float(running[node]),
            "drain": lemon.expected(lemon.kind.drains, month_s) * float(in_service[node]),
            "storm": lemon.expected(lemon.kind.storms, month_s),
            "exclusion": lemon.expected(lemon.kind.excluded, month_s),
        }
        found.append(
            {
                "node": nodes.names[node],
                "kind": lemon.kind.name,
                "since": START_AT.isoformat(),
                "expected": expected,
                "expected_occasions": sum(expected.values()),
            }
        )
    return found


def _with_stragglers(
    buckets: dict[str, int], schedule: Schedule, traces: Sequence[PlantedTrace]
) -> dict[str, int]:
    """The ledger with what stragglers waste of the productive time of traced jobs."""
    productive = running_gpu_s(schedule)["productive"]
    wasted = sum(
        round(int(productive[schedule.job == trace.job].sum()) * (1 - 1 / trace.slowdown))
        for trace in traces
    )
    return buckets | {
        "productive": buckets["productive"] - wasted,
        "straggler": buckets["straggler"] + wasted,
    }


def _runs(schedule: Schedule) -> list[dict[str, object]]:
    """Where the running time of each job with training metrics went."""
    gpu_s = running_gpu_s(schedule)
    jobs = logged_jobs(schedule)
    ids = job_ids(jobs).to_pylist()
    own = [np.flatnonzero(schedule.job == job) for job in jobs]
    return [
        {
            "job_id": job_id,
            "n_gpus": int(schedule.n_gpus[rows[0]]),
            "gpu_seconds": {name: int(part[rows].sum()) for name, part in gpu_s.items()},
        }
        for job_id, rows in zip(ids, own, strict=True)
    ]


def _planted_rate(schedule: Schedule, nodes: Fleet) -> float:
    counted = schedule.n_gpus > COUNTED_ABOVE_GPUS
    if not schedule.ran_s[counted].any():
        counted = np.ones(len(schedule), dtype=bool)
    exposure = _exposure_s(schedule, counted, len(nodes))
    if not exposure.any():
        return float(nodes.hazard.mean() * published.DAY_S * 1000)
    return float((nodes.hazard * exposure).sum() / exposure.sum() * published.DAY_S * 1000)


def _exposure_s(schedule: Schedule, counted: Bools, n_nodes: int) -> Floats:
    """Running time of whole nodes' GPUs in counted attempts, by node, seconds."""
    share = np.minimum(schedule.n_gpus / GPUS_PER_NODE, 1) * schedule.ran_s * counted
    weights = np.repeat(share, schedule.n_nodes)
    return np.bincount(schedule.nodes, weights, minlength=n_nodes).astype(np.float64)
