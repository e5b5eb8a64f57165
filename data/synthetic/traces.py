"""Straggler traces of three large jobs, each with a planted cause."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from data.synthetic import published
from data.synthetic.jobs import job_ids
from data.synthetic.logs import logged_jobs
from data.synthetic.spec import GPUS_PER_NODE, START_S
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns

if TYPE_CHECKING:
    from analytics.arrays import Floats
    from data.synthetic.cluster import Played
    from data.synthetic.schedule import Schedule
    from data.synthetic.trace_schedule import Columns

STAGES: Final = 4
LEAST_NODES, MOST_NODES = 2 * STAGES, 8 * STAGES
"""Jobs that are traced; a node is a worker: tensor parallelism takes its GPUs."""
MICRO_BATCHES: Final = 8
STEPS: Final = tuple(range(100, 340, 20))
FORWARD_S, BACKWARD_S = 0.12, 0.24
JITTER: Final = 0.01
"""Standard deviation of a compute's time over its mean."""
SLOW_WORKER, SLOW_STAGE = 1.7, 1.35
"""Time of computes of the slow worker, and of the last stage, over that of others."""
SEQUENCE_SPREAD: Final = 0.4
"""Standard deviation of the logarithm of a micro-batch's work where sequences differ in length."""
_TOLD: Final = ("name", "job_id", "cause", "target", "slowdown")
"""What the truth holds of a trace."""
_COSTS_S: Final = {
    "forward_p2p": 0.002,
    "backward_p2p": 0.002,
    "all_gather": 0.03,
    "reduce_scatter": 0.06,
    "layernorm": 0.001,
    "embedding": 0.004,
    "clip": 0.002,
    "optimizer": 0.02,
}
"""Operation -> about how long it takes."""
_BEGINS_AFTER_S: Final = 2 * published.HOUR_S
_BETWEEN_STEPS_S: Final = 0.05


@dataclass(frozen=True)
class PlantedTrace:
    """A trace and what makes it slow.

    Attributes
    ----------
    name
        Name of the trial.
    job_id, job
        The job: its id, its number in the schedule.
    shape
        Its layout.
    columns
        As of `trace_columns`, start_ts in seconds since 1970 (float64).
    cause
        `worker`, `stage` or `sequence_length`.
    target
        Where: `dp_rank`, `stage`, `rank` and `node` of a worker, `stage` of a stage; None of
        sequence lengths.
    slowdown
        Mean step time over that with the ideal cost of its type for every operation: the mean of
        computes and optimizers, the median of all else.
    """

    name: str
    job_id: str
    job: int
    shape: TraceShape
    columns: Columns
    cause: str
    target: dict[str, int | str] | None
    slowdown: float

    def truth(self) -> dict[str, object]:
        """What was planted, as plain values."""
        return {name: getattr(self, name) for name in _TOLD}


class _Plant(NamedTuple):
    """Times of computes, and what was planted in them."""

    name: str
    forward: Floats
    backward: Floats
    cause: str
    target: dict[str, int | str] | None


def planted_traces(demo: Played) -> list[PlantedTrace]:
    """Traces of a slow worker, a slow last stage and uneven sequences; of fewer jobs, fewer.

    Worker (stage, dp) has the global rank (stage * DP + dp) * 8 and so the node of that place among
    the job's nodes in order of name. Traced are the largest jobs of 8 to 32 nodes, long ones first,
    that log no training metrics.
    """
    schedule, nodes, rng = demo.schedule, demo.nodes, demo.chance["traces"]
    plants = (_slow_worker, _slow_last_stage, _uneven_sequences)
    traces = []
    for plant, row in zip(plants, _traced_rows(schedule), strict=False):
        held = sorted(nodes.names[node] for node in schedule.nodes_of(row))
        shape = TraceShape(
            dp=len(held) // STAGES,
            pp=STAGES,
            micro_batches=MICRO_BATCHES,
            steps=STEPS,
            tp=GPUS_PER_NODE,
        )
        planted = plant(shape, rng)
        target = planted.target
        if target is not None and "rank" in target:
            target = target | {"node": held[int(target["rank"]) // GPUS_PER_NODE]}
        costs = _costs(shape, planted.forward, planted.backward, rng=rng)
        traces.append(
            PlantedTrace(
                name=planted.name,
                job_id=str(job_ids(schedule.job[row : row + 1])[0]),
                job=int(schedule.job[row]),
                shape=shape,
                columns=_columns(shape, costs, START_S + int(schedule.start_s[row])),
                cause=planted.cause,
                target=target,
                slowdown=_step_s(shape, costs) / _step_s(shape, _ideal(costs)),
            )
        )
    return traces


def _traced_rows(schedule: Schedule) -> list[int]:
    """The longest attempts of the largest jobs that are traced, one a job."""
    n_nodes, ran_s = schedule.n_nodes, schedule.ran_s
    fits = (n_nodes >= LEAST_NODES) & (n_nodes <= MOST_NODES) & (n_nodes % STAGES == 0)
    fits &= schedule.n_gpus == n_nodes * GPUS_PER_NODE
    fits &= ~np.isin(schedule.job, logged_jobs(schedule))
    rows = np.flatnonzero(fits & (ran_s > 2 * _BEGINS_AFTER_S))
    rows = rows[np.lexsort([rows, -ran_s[rows], -n_nodes[rows]])]
    _, first = np.unique(schedule.job[rows], return_index=True)
    return [int(row) for row in rows[np.sort(first)]]


def _slow_worker(shape: TraceShape, rng: np.random.Generator) -> _Plant:
    """One node computes slower than all others."""
    forward, backward = _computes(shape, rng)
    dp_rank, stage = int(rng.integers(shape.dp)), int(rng.integers(1, shape.pp - 1))
    for times in (forward, backward):
        times[:, dp_rank, stage] *= SLOW_WORKER
    rank = (stage * shape.dp + dp_rank) * shape.tp
    target: dict[str, int | str] = {"dp_rank": dp_rank, "stage": stage, "rank": rank}
    return _Plant("synthetic slow worker", forward, backward, "worker", target)


def _slow_last_stage(shape: TraceShape, rng: np.random.Generator) -> _Plant:
    """The last stage holds the loss as well as its share of layers."""
    forward, backward = _computes(shape, rng)
    for times in (forward, backward):
        times[:, :, -1] *= SLOW_STAGE
    target: dict[str, int | str] = {"stage": shape.pp - 1}
    return _Plant("synthetic slow last stage", forward, backward, "stage", target)


def _uneven_sequences(shape: TraceShape, rng: np.random.Generator) -> _Plant:
    """Micro-batches of one size hold sequences of different lengths: attention grows with them."""
    forward, backward = _computes(shape, rng)
    size = (len(shape.steps), shape.dp, 1, 1, shape.micro_batches)
    work = rng.lognormal(-(SEQUENCE_SPREAD**2) / 2, SEQUENCE_SPREAD, size)
    return _Plant(
        "synthetic uneven sequences", forward * work, backward * work, "sequence_length", None
    )


def _computes(shape: TraceShape, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Times of forward and backward computes of healthy workers."""
    size = (len(shape.steps), shape.dp, shape.pp, shape.vpp, shape.micro_batches)
    return (
        FORWARD_S * rng.normal(1, JITTER, size).clip(0.5),
        BACKWARD_S * rng.normal(1, JITTER, size).clip(0.5),
    )


def _costs(
    shape: TraceShape, forward: Floats, backward: Floats, *, rng: np.random.Generator
) -> TraceCosts:
    """Costs of all operations; transfers vary more than computes."""
    size = (len(shape.steps), shape.dp, shape.pp)
    around = {name: mean * rng.lognormal(0, 0.1, size) for name, mean in _COSTS_S.items()}
    return TraceCosts(forward=forward, backward=backward, **around)


def _ideal(costs: TraceCosts) -> TraceCosts:
    """Every cost as it usually is."""
    averaged = ("forward", "backward", "optimizer", "pause")
    return TraceCosts(
        **{
            field.name: float(
                (np.mean if field.name in averaged else np.median)(getattr(costs, field.name))
            )
            for field in fields(costs)
        }
    )


def _step_s(shape: TraceShape, costs: TraceCosts) -> float:
    """Mean time of a step."""
    columns = trace_columns(shape, costs)
    end = columns["start_ts"].astype(np.float64) + columns["duration"].astype(np.float64)
    longest = np.zeros(len(shape.steps))
    np.maximum.at(longest, np.searchsorted(shape.steps, columns["step"]), end)
    return float(longest.mean())


def _columns(shape: TraceShape, costs: TraceCosts, job_began_at: int) -> Columns:
    """The trace with times since 1970: traced two hours into the attempt."""
    columns = trace_columns(shape, costs)
    start = columns["start_ts"].astype(np.float64)
    place = np.searchsorted(shape.steps, columns["step"])
    step_s = _step_s(shape, costs) + _BETWEEN_STEPS_S
    origin = job_began_at + _BEGINS_AFTER_S + (np.array(shape.steps) - shape.steps[0]) * step_s
    return columns | {"start_ts": start + origin[place]}
