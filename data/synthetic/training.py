"""The table `training_metrics`: what the largest runs log of their steps and checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from data.synthetic import calibration as cal
from data.synthetic.columns import ints, times, words
from data.synthetic.jobs import job_ids
from data.synthetic.spec import GPUS_PER_NODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from data.synthetic.cluster import Played
    from data.synthetic.schedule import Schedule

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

N_RUNS: Final = 20
"""Runs whose training metrics are collected."""
ROW_EVERY_S: Final = 60
"""Working time between two logged steps, about."""

_STEP_TIMES_S: Final = (4, 5, 6, 8, 9, 10, 12, 15, 18, 20)
"""Durations of a step; whole seconds that divide the checkpoint interval."""
_EVENTS: Final = ("saved", "loaded")
_STEP, _SAVED, _LOADED = -1, 0, 1
_TOKENS_PER_GPU_S: Final = 3_000


def logged_jobs(schedule: Schedule) -> Ints:
    """The jobs on several nodes that held most GPU-time, most first."""
    gang = schedule.n_gpus > GPUS_PER_NODE
    weight = np.where(gang, schedule.n_gpus * schedule.ran_s, 0)
    held = np.zeros(schedule.n_jobs, dtype=np.int64)
    np.add.at(held, schedule.job, weight)
    chosen = np.argsort(-held, kind="stable")[:N_RUNS]
    return chosen[held[chosen] > 0]


def training_metrics_table(demo: Played) -> pa.Table:
    """One row about every minute of training, one a checkpoint saved, one a checkpoint loaded.

    An attempt starts up for `STARTUP_S`, then works for `CHECKPOINT_INTERVAL_S` and writes for
    `CHECKPOINT_WRITE_S` by turns, to the second as in `ledger.ledger`. The next attempt goes on
    from the last step saved: later ones come again. The loss falls by a power of the step.
    """
    schedule, rng = demo.schedule, demo.chance["training"]
    jobs = logged_jobs(schedule)
    step_s = rng.choice(_STEP_TIMES_S, len(jobs))
    parts = [
        (np.full(len(at), row), step, at, event, np.full(len(at), duration))
        for job, duration in zip(jobs.tolist(), step_s.tolist(), strict=True)
        for row, step, at, event in _run_rows(schedule, job, duration)
    ]
    columns = zip(*parts, strict=True) if parts else [[np.zeros(0, dtype=np.int64)]] * 5
    row, step, at, event, duration = (np.concatenate(list(column)) for column in columns)
    plain, gpus = event == _STEP, schedule.n_gpus[row]
    noise = rng.standard_normal((3, len(row)))
    return pa.table(
        {
            "job_id": job_ids(schedule.job[row]),
            "attempt_key": demo.keys.take(pa.array(row)),
            "step": ints(step),
            "rank": ints(np.zeros(len(row), dtype=np.int32)),
            "logged_at": times(schedule.start_s[row] + at),
            "loss": _floats(1.7 + 9 / (1 + step / 200) ** 0.35 + 0.02 * noise[0], plain),
            "grad_norm": _floats((0.3 + 2 / (1 + step / 500)) * np.exp(0.1 * noise[1]), plain),
            "step_time_s": _floats(duration, plain),
            "throughput": _floats(gpus * _TOKENS_PER_GPU_S * (1 + 0.01 * noise[2]), plain),
            "checkpoint_event": words(event, _EVENTS),
            "checkpoint_s": _floats(np.full(len(row), cal.CHECKPOINT_WRITE_S), event == _SAVED),
        }
    )


def _run_rows(
    schedule: Schedule, job: int, step_s: int
) -> Iterator[tuple[int, Ints, Ints, NDArray[np.int8]]]:
    """Of each attempt of a job: its row in the schedule; step, second and event of what it logs."""
    saved_step, every = 0, max(round(ROW_EVERY_S / step_s), 1)
    rows = np.flatnonzero((schedule.job == job) & (schedule.start_s >= 0))
    for row in rows[np.argsort(schedule.start_s[rows])].tolist():
        worked_s = int(schedule.ran_s[row]) - cal.STARTUP_S
        if worked_s < 0:
            continue
        step, at, event = _attempt_rows(worked_s, step_s)
        logged = (event != _STEP) | ((saved_step + step) % every == 0) | (step == 1)
        logged &= (event != _LOADED) | (saved_step > 0)
        yield row, saved_step + step[logged], cal.STARTUP_S + at[logged], event[logged]
        saved_step += int(step[event == _SAVED].max(initial=0))


def _attempt_rows(worked_s: int, step_s: int) -> tuple[Ints, Ints, NDArray[np.int8]]:
    """Load, steps and saves of an attempt: step and second, both from its first step, and event."""
    cycle_s = cal.CHECKPOINT_INTERVAL_S + cal.CHECKPOINT_WRITE_S
    per_cycle = cal.CHECKPOINT_INTERVAL_S // step_s
    n_saves, rest_s = divmod(worked_s, cycle_s)
    n_steps = n_saves * per_cycle + min(rest_s // step_s, per_cycle)
    step = np.arange(1, n_steps + 1)
    at = step * step_s + (step - 1) // per_cycle * cal.CHECKPOINT_WRITE_S
    saves = np.arange(1, n_saves + 1)
    kind = np.repeat([_LOADED, _STEP, _SAVED], [1, n_steps, n_saves]).astype(np.int8)
    steps = np.concatenate([[0], step, saves * per_cycle])
    seconds = np.concatenate([[0], at, saves * cycle_s])
    order = np.lexsort((kind, seconds))
    return steps[order], seconds[order], kind[order]


def _floats(values: NDArray[np.generic], known: NDArray[np.bool_]) -> pa.Array:
    """Numbers to six digits; NULL where not known."""
    return pa.array(np.round(values.astype(np.float64), 6), mask=~known)
