"""The table `job_logs`: last lines of the logs of failed jobs, in our own words."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from data.synthetic.columns import times, words
from data.synthetic.jobs import FIRST_JOB_ID
from data.synthetic.schedule import CAUSE_NAMES, NODE_FAIL
from data.synthetic.spec import GPUS_PER_NODE, START_AT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from data.synthetic.cluster import Played
    from data.synthetic.fleet import Fleet
    from data.synthetic.schedule import Schedule, Verdicts

    Ints = NDArray[np.int64]

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
