"""The planted truth: the failure rate, the lemons, why each attempt failed, where GPU-time went."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from data.synthetic.calibration import DAY_S
from data.synthetic.columns import words
from data.synthetic.jobs import job_ids
from data.synthetic.ledger import ledger, running_gpu_s
from data.synthetic.spec import GPUS_PER_NODE
from data.synthetic.training import logged_jobs
from data.synthetic.verdicts import CAUSE_DOMAINS, CAUSE_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from data.synthetic.fleet import Fleet
    from data.synthetic.schedule import Schedule
    from data.synthetic.spec import DemoSpec
    from data.synthetic.traces import PlantedTrace
    from data.synthetic.verdicts import Verdicts

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
        Names of the nodes that fail ten times as often as the others.
    attempts
        One row per attempt that ended FAILED, NODE_FAIL, TIMEOUT or OUT_OF_MEMORY, or was
        requeued by its owner: `attempt_key`, `job_id`, `cause`, `domain` (user, system_software,
        hardware, unknown), `has_event` (a health event near its end shows the cause).
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
    attempts: pa.Table
    ledger: dict[str, int]
    runs: list[dict[str, object]]
    traces: list[dict[str, object]]

    def as_dict(self) -> dict[str, object]:
        """The same as plain values, as `faultline demo --truth` writes it."""
        return {
            "rate_per_1000_node_days": self.rate_per_1000_node_days,
            "lemons": self.lemons,
            "attempts": self.attempts.to_pylist(),
            "ledger": self.ledger,
            "runs": self.runs,
            "traces": self.traces,
        }

    def to_json(self, path: Path) -> None:
        """Writes the truth as one JSON object."""
        path.write_text(json.dumps(self.as_dict()), encoding="utf-8")


def demo_truth(
    spec: DemoSpec,
    schedule: Schedule,
    nodes: Fleet,
    *,
    verdicts: Verdicts,
    keys: pa.Array,
    traces: Sequence[PlantedTrace] = (),
) -> DemoTruth:
    """The truth behind a schedule."""
    attempts = pa.table(
        {
            "attempt_key": keys.take(pa.array(verdicts.row)),
            "job_id": job_ids(schedule.job[verdicts.row]),
            "cause": words(verdicts.cause, CAUSE_NAMES),
            "domain": words(verdicts.cause, CAUSE_DOMAINS),
            "has_event": pa.array(verdicts.has_event),
        }
    )
    return DemoTruth(
        rate_per_1000_node_days=_planted_rate(schedule, nodes),
        lemons=[nodes.names[node] for node in nodes.lemons],
        attempts=attempts,
        ledger=_with_stragglers(ledger(spec, schedule), schedule, traces),
        runs=_runs(schedule),
        traces=[trace.truth() for trace in traces],
    )


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
    share = np.minimum(schedule.n_gpus / GPUS_PER_NODE, 1) * schedule.ran_s * counted
    weights = np.repeat(share, schedule.n_nodes)
    exposure = np.bincount(schedule.nodes, weights, minlength=len(nodes))
    if not exposure.any():
        return float(nodes.hazard.mean() * DAY_S * 1000)
    return float((nodes.hazard * exposure).sum() / exposure.sum() * DAY_S * 1000)
