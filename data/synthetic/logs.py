"""The tables `job_logs` and `training_metrics`: what jobs write."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from data.synthetic import published
from data.synthetic.columns import ints, times, words
from data.synthetic.jobs import FIRST_JOB_ID, job_ids
from data.synthetic.schedule import CAUSE_NAMES, NODE_FAIL
from data.synthetic.spec import GPUS_PER_NODE, START_AT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from analytics.arrays import Bools, Ints
    from data.synthetic.cluster import Played
    from data.synthetic.fleet import Fleet
    from data.synthetic.schedule import Schedule, Verdicts

MOST_LOGS: Final = 1_500
"""Logs of hardware failures, and again as many of other failures, that are written at most."""

_COMPLETED_LOGS: Final = 60

_STEP: Final = "[rank0] step {step} | loss {loss:.3f} | 41.2k tokens/s"
_TRACEBACK: Final = (
    "Traceback (most recent call last):",
    '  File "/workspace/train.py", line {some}, in <module>',
    "    main()",
)
_STEP_END: Final = "slurmstepd: error: *** STEP {job}.0 ON {node} CANCELLED AT {at} {why} ***"
_WATCHDOG: Final = (
    "[rank{other}]:[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={step}, "
    "OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600{some} milliseconds before timing out."
)
_KILLED: Final = "srun: error: {node}: task {rank}: Exited with exit code 1"
_NCCL: Final = "{node}: [{rank}] NCCL WARN "
_CUDA: Final = "RuntimeError: CUDA error: "
_LOST: Final = "Unable to determine the device handle for GPU 0000:47:00.0: GPU is lost."
_OOM: Final = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB."
_OOM_KILL: Final = "slurmstepd: error: Detected 1 oom_kill event in StepId={job}.batch."
_NO_FILE: Final = "FileNotFoundError: [Errno 2] No such file or directory: '/data/part-{some}.bin'"
_WORKER: Final = "RuntimeError: DataLoader worker (pid {some}) exited unexpectedly"
_NO_MOUNT: Final = "OSError: [Errno 107] Transport endpoint is not connected: '/checkpoints/{job}'"

_LINES: Final[dict[str, tuple[str, ...]]] = {
    "ib_link": (f"{_NCCL}NET/IB : Got completion with status=12 vendor err 129", _WATCHDOG),
    "gpu_memory": (f"{_CUDA}uncorrectable ECC error encountered", _WATCHDOG),
    "filesystem_mount": (_NO_MOUNT,),
    "pcie": (_LOST, _WATCHDOG),
    "node_lost": (),
    "gpu_driver": (f"{_CUDA}unknown error",),
    "nvlink": (f"{_CUDA}uncorrectable NVLink error detected during the execution", _WATCHDOG),
    "host_memory": ("{node}: train.py: Bus error (core dumped)", _WATCHDOG),
    "ethernet_link": (f"{_NCCL}socketProgress: Connection closed by remote peer", _WATCHDOG),
    "power": (),
    "key_error": (*_TRACEBACK, "KeyError: 'attention_mask'"),
    "file_not_found": (*_TRACEBACK, _NO_FILE),
    "import_error": (*_TRACEBACK, "ModuleNotFoundError: No module named 'fused_rotary'"),
    "cuda_oom": (*_TRACEBACK, _OOM),
    "assertion_error": (*_TRACEBACK, "AssertionError: expected 4096 tokens, got {some}"),
    "data_loader": (*_TRACEBACK, _WORKER),
    "illegal_memory_access": (*_TRACEBACK, f"{_CUDA}an illegal memory access was encountered"),
    "nccl_timeout": (_WATCHDOG, _WATCHDOG),
    "time_limit": (_STEP_END.replace("{why}", "DUE TO TIME LIMIT"),),
    "host_oom": (_OOM_KILL,),
    "requeued": (_STEP_END.replace("{why}", "DUE TO JOB REQUEUE"),),
    "completed": ("saved checkpoint of step {step} to /checkpoints/{job}", "done, 0 errors"),
}
_KILLED_BY: Final = frozenset(_LINES) - {"completed", "time_limit", "requeued"}


class _Line(NamedTuple):
    attempt: int
    number: int
    at_s: float
    node: int
    rank: int
    text: str


def job_logs_table(demo: Played) -> pa.Table:
    """Last lines of the logs of hardware failures and of a sample of all others.

    At most `MOST_LOGS` of either, and a few of completed jobs. A lost node ends its log without a
    reason; in a multi-node job the ranks that only waited complain as loudly as the one that died.
    """
    schedule, nodes, rng = demo.schedule, demo.nodes, demo.chance["logs"]
    lines = [
        line
        for row, cause in _chosen(schedule, demo.verdicts, rng)
        for line in _log(schedule, (row, cause), nodes, rng=rng)
    ]
    attempt = np.array([line.attempt for line in lines], dtype=np.int64)
    ids = schedule.job[attempt] + FIRST_JOB_ID
    return pa.table(
        {
            "attempt_key": demo.keys.take(pa.array(attempt)),
            "file": pa.array([f"slurm-{job}.out" for job in ids.tolist()], pa.string()),
            "line_no": pa.array([line.number for line in lines], pa.int64()),
            "logged_at": times(np.array([line.at_s for line in lines], dtype=np.float64)),
            "node": words(np.array([line.node for line in lines], dtype=np.int64), nodes.names),
            "rank": pa.array([line.rank for line in lines], pa.int32()),
            "text": pa.array([line.text for line in lines], pa.string()),
        }
    )


def _chosen(
    schedule: Schedule, verdicts: Verdicts, rng: np.random.Generator
) -> list[tuple[int, str]]:
    """Rows of the schedule that get a log, with what it shows."""
    struck = schedule.strike[verdicts.row] >= 0
    causes = dict(zip(verdicts.row.tolist(), verdicts.cause.tolist(), strict=True))
    completed = np.flatnonzero(schedule.in_state("COMPLETED"))
    groups = (
        (verdicts.row[struck], MOST_LOGS),
        (verdicts.row[~struck], MOST_LOGS),
        (completed, _COMPLETED_LOGS),
    )
    rows = np.concatenate(
        [rng.choice(group, min(len(group), most), replace=False) for group, most in groups]
    )
    return [
        (row, CAUSE_NAMES[causes[row]] if row in causes else "completed")
        for row in np.sort(rows).tolist()
    ]


def _log(
    schedule: Schedule, attempt: tuple[int, str], nodes: Fleet, *, rng: np.random.Generator
) -> Iterator[_Line]:
    """The last lines of one attempt, written by the node that failed, else by its first."""
    row, cause = attempt
    held = schedule.nodes_of(row).tolist()
    strike = int(schedule.strike[row])
    place = held.index(schedule.strikes[strike][1]) if strike >= 0 else 0
    start_s, end_s = float(schedule.start_s[row]), float(schedule.end_s[row])
    facts: dict[str, object] = {
        "node": nodes.names[held[place]],
        "rank": place * GPUS_PER_NODE,
        "other": (place + 1) % len(held) * GPUS_PER_NODE,
        "job": int(schedule.job[row]) + FIRST_JOB_ID,
        "some": int(rng.integers(100, 999)),
        "step": int(rng.integers(100, 90_000)),
        "at": (START_AT + timedelta(seconds=end_s)).isoformat(timespec="seconds")[:19],
        "why": "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
    }
    texts = [_STEP.format(loss=1.7 + float(rng.gamma(2, 0.1)), **facts)]
    texts += [line.format(**facts) for line in _LINES[cause]]
    if schedule.state[row] == NODE_FAIL:
        texts.append(_STEP_END.format(**facts))
    elif cause in _KILLED_BY:
        texts.append(_KILLED.format(**facts))
    apart_s = rng.uniform(0.5, 4)
    for number, text in enumerate(texts, 1):
        at_s = max(end_s - (len(texts) - number) * apart_s, start_s)
        yield _Line(row, number, at_s, held[place], place * GPUS_PER_NODE, text)


N_RUNS: Final = 20
"""Runs whose training metrics are collected."""
ROW_EVERY_S: Final = 60
"""Working time between two logged steps, about."""

_STEP_TIMES_S: Final = (4, 5, 6, 8, 9, 10, 12, 15, 18, 20)
"""Durations of a step; whole seconds that divide the checkpoint interval."""
_EVENTS: Final = ("saved", "loaded")
SPIKED_EVERY = 4
"""Of so many runs one has a loss spike: at this part of its steps, so high, that wide."""
SPIKE_AT, SPIKE_HEIGHT, SPIKE_WIDTH = 0.6, 1.5, 0.003
_PLAIN, _SAVED, _LOADED = -1, 0, 1
_TOKENS_PER_GPU_S: Final = 3_000
_PEAK_RATE: Final = 3e-4
_WARM_UP_STEPS, _DECAY_STEPS = 2_000, 100_000


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
    from the last step saved: later ones come again. The loss falls by a power of the step; in
    every fourth run it rises once and recovers, the gradient norm with it.
    """
    schedule, rng = demo.schedule, demo.chance["training"]
    jobs = logged_jobs(schedule)
    step_s = rng.choice(_STEP_TIMES_S, len(jobs))
    parts = [
        (np.full(len(at), row), step, at, event, np.full(len(at), duration), excess)
        for place, (job, duration) in enumerate(zip(jobs.tolist(), step_s.tolist(), strict=True))
        for row, step, at, event, excess in _with_spikes(
            list(_run_rows(schedule, job, duration)), is_spiked=place % SPIKED_EVERY == 1
        )
    ]
    columns = zip(*parts, strict=True) if parts else [[np.zeros(0, dtype=np.int64)]] * 6
    row, step, at, event, duration, excess = (np.concatenate(list(each)) for each in columns)
    plain, gpus = event == _PLAIN, schedule.n_gpus[row]
    noise = rng.standard_normal((3, len(row)))
    return pa.table(
        {
            "job_id": job_ids(schedule.job[row]),
            "attempt_key": demo.keys.take(pa.array(row)),
            "step": ints(step),
            "rank": ints(np.zeros(len(row), dtype=np.int32)),
            "logged_at": times(schedule.start_s[row] + at),
            "loss": _floats(1.7 + 9 / (1 + step / 200) ** 0.35 + excess + 0.02 * noise[0], plain),
            "grad_norm": _floats(
                (0.3 + 2 / (1 + step / 500)) * (1 + 9 * excess) * np.exp(0.1 * noise[1]), plain
            ),
            "step_time_s": _floats(duration, plain),
            "learning_rate": _floats(_learning_rate(step), plain, digits=12),
            "throughput": _floats(gpus * _TOKENS_PER_GPU_S * (1 + 0.01 * noise[2]), plain),
            "checkpoint_event": words(event, _EVENTS),
            "checkpoint_s": _floats(
                np.full(len(row), published.CHECKPOINT_WRITE_S), event == _SAVED
            ),
        }
    )


def _with_spikes(
    attempts: Sequence[tuple[int, Ints, Ints, NDArray[np.int8]]], *, is_spiked: bool
) -> Iterator[tuple[int, Ints, Ints, NDArray[np.int8], NDArray[np.float64]]]:
    """Attempts of a run, and by how much the loss of each row exceeds its course."""
    last = max((int(step.max(initial=0)) for _, step, _, _ in attempts), default=0)
    for row, step, at, event in attempts:
        since = (step - SPIKE_AT * last) / (SPIKE_WIDTH * max(last, 1))
        excess = np.where(since >= 0, SPIKE_HEIGHT * np.exp(-np.maximum(since, 0.0)), 0.0)
        yield row, step, at, event, np.where(is_spiked & (excess > 0.01), excess, 0.0)


def _run_rows(
    schedule: Schedule, job: int, step_s: int
) -> Iterator[tuple[int, Ints, Ints, NDArray[np.int8]]]:
    """Of each attempt of a job: its row in the schedule; step, second and event of what it logs."""
    saved_step, every = 0, max(round(ROW_EVERY_S / step_s), 1)
    rows = np.flatnonzero((schedule.job == job) & (schedule.start_s >= 0))
    for row in rows[np.argsort(schedule.start_s[rows])].tolist():
        worked_s = int(schedule.ran_s[row]) - published.STARTUP_S
        if worked_s < 0:
            continue
        step, at, event = _attempt_rows(worked_s, step_s)
        logged = (event != _PLAIN) | ((saved_step + step) % every == 0) | (step == 1)
        logged &= (event != _LOADED) | (saved_step > 0)
        yield row, saved_step + step[logged], published.STARTUP_S + at[logged], event[logged]
        saved_step += int(step[event == _SAVED].max(initial=0))


def _attempt_rows(worked_s: int, step_s: int) -> tuple[Ints, Ints, NDArray[np.int8]]:
    """Load, steps and saves of an attempt: step and second, both from its first step, and event."""
    cycle_s = published.CHECKPOINT_INTERVAL_S + published.CHECKPOINT_WRITE_S
    per_cycle = published.CHECKPOINT_INTERVAL_S // step_s
    n_saves, rest_s = divmod(worked_s, cycle_s)
    n_steps = n_saves * per_cycle + min(rest_s // step_s, per_cycle)
    step = np.arange(1, n_steps + 1)
    at = step * step_s + (step - 1) // per_cycle * published.CHECKPOINT_WRITE_S
    saves = np.arange(1, n_saves + 1)
    kind = np.repeat([_LOADED, _PLAIN, _SAVED], [1, n_steps, n_saves]).astype(np.int8)
    steps = np.concatenate([[0], step, saves * per_cycle])
    seconds = np.concatenate([[0], at, saves * cycle_s])
    order = np.lexsort((kind, seconds))
    return steps[order], seconds[order], kind[order]


def _floats(values: NDArray[np.generic], known: Bools, *, digits: int = 6) -> pa.Array:
    """Numbers to so many digits; NULL where not known."""
    return pa.array(np.round(values.astype(np.float64), digits), mask=~known)


def _learning_rate(step: Ints) -> NDArray[np.float64]:
    """A linear warm-up, then half a cosine down to a tenth of the peak."""
    through = np.clip((step - _WARM_UP_STEPS) / (_DECAY_STEPS - _WARM_UP_STEPS), 0, 1)
    falling = 0.1 + 0.9 * (1 + np.cos(np.pi * through)) / 2
    return _PEAK_RATE * np.minimum(step / _WARM_UP_STEPS, falling)
