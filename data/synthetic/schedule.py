"""One row per attempt, in order of submission: what the scheduler did, and why it failed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from data.synthetic import published
from data.synthetic.attempts import ID_MASK, IS_READY, KIND_MASK, PREEMPTED, REQUEUED
from data.synthetic.fleet import CAUSES
from data.synthetic.spec import GPUS_PER_NODE
from data.synthetic.workload import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from analytics.arrays import Bools, Ints
    from data.synthetic.fleet import Fault
    from data.synthetic.scheduler import Scheduler
    from data.synthetic.spec import DemoSpec
    from data.synthetic.workload import Workload

    Codes = NDArray[np.int8]

OUTAGE_COLUMNS: Final = ("node", "start_s", "end_s", "kind", "reference")

STATES: Final = (*OUTCOMES, "PREEMPTED", "REQUEUED", "NODE_FAIL", "RUNNING", "PENDING")
"""States of attempts; `Schedule.state` is an index into it."""

FAILED: Final = STATES.index("FAILED")
NODE_FAIL: Final = STATES.index("NODE_FAIL")


@dataclass(frozen=True)
class Schedule:
    """All attempts and outages; times in seconds of the period, -1 where there is none."""

    period_s: int
    n_jobs: int
    """Jobs, those cancelled before they started included."""
    job: Ints
    """Job of the attempt, numbered by first submission."""
    n_gpus: Ints
    state: Codes
    submit_s: Ints
    eligible_s: Ints
    start_s: Ints
    end_s: Ints
    """-1 while running or pending."""
    restarts: Ints
    preempted_by: Ints
    """Job that preempted the attempt."""
    strike: Ints
    """Hardware failure that ended the attempt, an index into `strikes`."""
    n_nodes: Ints
    """Nodes held; 0 of an attempt that never started."""
    nodes: Ints
    """Nodes of all attempts, one attempt after the other."""
    strikes: list[tuple[int, int, Fault]]
    """Time, node and fault of every hardware failure."""
    outages: Mapping[str, Ints]
    """`OUTAGE_COLUMNS` of all outages; ends may lie beyond the period."""

    def __len__(self) -> int:
        return len(self.job)

    @cached_property
    def begins(self) -> Ints:
        """Place in `nodes` of the first node of each attempt."""
        return np.cumsum(self.n_nodes) - self.n_nodes

    @property
    def stop_s(self) -> Ints:
        """End of running within the period; 0 of an attempt that never started."""
        until = np.where(self.end_s < 0, self.period_s, self.end_s)
        return np.where(self.start_s < 0, 0, until)

    @property
    def ran_s(self) -> Ints:
        """Running time within the period."""
        return self.stop_s - np.maximum(self.start_s, 0)

    def nodes_of(self, row: int) -> Ints:
        """Nodes of one attempt."""
        begin = int(self.begins[row])
        return self.nodes[begin : begin + int(self.n_nodes[row])]

    def in_state(self, *names: str) -> Bools:
        """Which attempts have one of the states."""
        return np.isin(self.state, [STATES.index(name) for name in names])


def schedule(
    spec: DemoSpec, workload: Workload, played: Scheduler, *, rng: np.random.Generator
) -> Schedule:
    """The rows of a played period.

    Jobs cancelled while they wait fill the table to exactly `spec.n_jobs` rows; they hold nothing,
    so the scheduler need not know them.
    """
    rows = _played(spec, workload, played)
    n_more = spec.n_jobs - len(rows["job"])
    cancelled = _cancelled_waiting(spec.period_s, range(len(workload), len(workload) + n_more), rng)
    order = np.lexsort(
        [np.concatenate([rows[name], cancelled[name]]) for name in ("start_s", "submit_s")]
    )
    rows = {name: np.concatenate([rows[name], cancelled[name]])[order] for name in rows}
    slots = rows.pop("slot")
    rank = _rank_by_first(rows["job"])
    by = rows["preempted_by"]
    rows["job"], rows["preempted_by"] = rank[rows["job"]], np.where(by < 0, -1, rank[by])
    state = rows.pop("state").astype(np.int8)
    gang = rows["n_gpus"] > GPUS_PER_NODE
    n_nodes = np.where(rows["start_s"] < 0, 0, -(-rows["n_gpus"] // GPUS_PER_NODE))
    outages = (np.array(column, dtype=np.int64) for column in played.nodes.outages)
    return Schedule(
        period_s=spec.period_s,
        n_jobs=len(rank),
        state=state,
        **rows,
        n_nodes=n_nodes,
        nodes=_nodes(slots, n_nodes, gang=gang, gang_nodes=np.array(played.attempts.gang_nodes)),
        strikes=played.strikes,
        outages=dict(zip(OUTAGE_COLUMNS, outages, strict=True)),
    )


def _played(spec: DemoSpec, workload: Workload, played: Scheduler) -> dict[str, Ints]:
    """Columns of the attempts that started, then of those that wait at the end of the period."""
    attempts = played.attempts
    started = len(attempts.job)
    waiting = np.array(list(_waiting(played)), dtype=np.int64).reshape(-1, 2)
    nothing = np.full(len(waiting), -1)

    def column(values: Iterable[int], rest: Ints) -> Ints:
        return np.concatenate([np.fromiter(values, np.int64, started), rest])

    job, again = column(attempts.job, waiting[:, 0]), column(attempts.submit, waiting[:, 1])
    end = column(attempts.end, nothing)
    end[end >= spec.period_s] = -1
    by, strike = np.full(len(job), -1), np.full(len(job), -1)
    by[list(attempts.preempted_by)] = list(attempts.preempted_by.values())
    strike[list(attempts.struck_by)] = list(attempts.struck_by.values())
    restarts = pd.Series(job).groupby(job).cumcount().to_numpy().astype(np.int64)
    how = column(attempts.how, nothing)
    state = _states(workload.outcome[job], how, restarts)
    lost = np.array([fault.node_fail for _, _, fault in played.strikes], dtype=bool)
    state[strike >= 0] = np.where(lost[strike[strike >= 0]], NODE_FAIL, FAILED)
    state[end < 0] = STATES.index("RUNNING")
    state[started:] = STATES.index("PENDING")
    return {
        "job": job,
        "n_gpus": workload.n_gpus[job],
        "state": state,
        "submit_s": np.where(again < 0, workload.submit_s[job], again),
        "eligible_s": np.where(
            again < 0, workload.eligible_s[job], again + published.REQUEUE_HOLD_S
        ),
        "start_s": column(attempts.start, nothing),
        "end_s": end,
        "restarts": restarts,
        "preempted_by": by,
        "strike": strike,
        "slot": column(attempts.slot, nothing),
    }


def _states(outcome: NDArray[np.int8], how: Ints, restarts: Ints) -> Ints:
    """States of ended attempts; a job cut short once no longer reaches its time limit."""
    planned = np.where(
        (outcome == STATES.index("TIMEOUT")) & (restarts > 0), STATES.index("COMPLETED"), outcome
    )
    cases = [how == PREEMPTED, how == REQUEUED]
    states = [STATES.index("PREEMPTED"), STATES.index("REQUEUED")]
    return np.select(cases, states, planned).astype(np.int64)


def _waiting(played: Scheduler) -> Iterator[tuple[int, int]]:
    """Job and time of requeue (or -1) of all that wait at the end, or are not yet eligible."""
    for queue in (*played.waiting.values(), played.gangs.large, played.gangs.medium):
        yield from queue
    for event in sorted(played.attempts.agenda):
        if event & KIND_MASK == IS_READY:
            yield played.attempts.requeued[event & ID_MASK][:2]


def _cancelled_waiting(period_s: int, jobs: range, rng: np.random.Generator) -> dict[str, Ints]:
    """Columns of single-node jobs whose owners cancel them before they start."""
    sizes = np.array(list(published.SMALL_JOBS))
    weights = np.array([share for share, _ in published.SMALL_JOBS.values()])
    n = len(jobs)
    submit = rng.integers(0, period_s - 1, n)
    nothing = np.full(n, -1)
    return {
        "job": np.array(jobs, dtype=np.int64),
        "n_gpus": rng.choice(sizes, n, p=weights / weights.sum()),
        "state": np.full(n, STATES.index("CANCELLED")),
        "submit_s": submit,
        "eligible_s": submit,
        "start_s": nothing,
        "end_s": np.minimum(submit + 1 + rng.exponential(900, n).astype(np.int64), period_s - 1),
        "restarts": np.zeros(n, dtype=np.int64),
        "preempted_by": nothing,
        "strike": nothing,
        "slot": nothing,
    }


def _rank_by_first(job: Ints) -> Ints:
    """New number of each job: its place in the order of first rows."""
    _, first = np.unique(job, return_index=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank


def _nodes(slots: Ints, n_nodes: Ints, *, gang: Bools, gang_nodes: Ints) -> Ints:
    """The nodes of all attempts, one attempt after the other."""
    begins = np.cumsum(n_nodes) - n_nodes
    within = np.arange(n_nodes.sum()) - np.repeat(begins, n_nodes)
    place = np.repeat(slots, n_nodes) + within
    gang = np.repeat(gang, n_nodes)
    nodes: Ints = np.where(gang, 0, place)
    nodes[gang] = gang_nodes[place[gang]]
    return nodes


ILLEGAL_ACCESS: Final = "illegal_memory_access"
"""The one error of user programs that leaves a kernel line."""

_USER_SHARES: Final = {
    "key_error": (0.46, 0.30),
    "file_not_found": (0.14, 0.10),
    "import_error": (0.12, 0.04),
    "cuda_oom": (0.14, 0.20),
    "assertion_error": (0.06, 0.08),
    "data_loader": (0.05, 0.08),
    ILLEGAL_ACCESS: (0.03, 0.04),
    "nccl_timeout": (0.0, 0.16),
}
"""Share of user failures of single-node and of multi-node jobs."""

_BY_STATE: Final = {
    "TIMEOUT": ("time_limit", "user"),
    "OUT_OF_MEMORY": ("host_oom", "user"),
    "REQUEUED": ("requeued", "unknown"),
}

CAUSE_NAMES: Final = (
    *(cause.name for cause in CAUSES),
    *_USER_SHARES,
    *(name for name, _ in _BY_STATE.values()),
)
"""All planted causes; `Verdicts.cause` is an index into it."""

CAUSE_DOMAINS: Final = (
    *(cause.domain for cause in CAUSES),
    *("user" for _ in _USER_SHARES),
    *(domain for _, domain in _BY_STATE.values()),
)
"""The domain of each of `CAUSE_NAMES`: user, system_software, hardware or unknown."""


@dataclass(frozen=True)
class Verdicts:
    """Attempts that failed or were requeued by hand, in the order of the schedule."""

    row: Ints
    """Row of the schedule."""
    cause: Ints
    has_event: Bools
    """Whether a health event near the end of the attempt shows the cause."""

    def of(self, name: str) -> Ints:
        """Rows of the schedule that one cause ended."""
        chosen: Ints = self.row[self.cause == CAUSE_NAMES.index(name)]
        return chosen


def verdicts(schedule: Schedule, rng: np.random.Generator) -> Verdicts:
    """The planted cause of every attempt that ended in a failure or was requeued by its owner."""
    state, strike = schedule.state, schedule.strike
    cause = np.full(len(schedule), -1)
    for name, (word, _) in _BY_STATE.items():
        cause[schedule.in_state(name)] = CAUSE_NAMES.index(word)
    user = (state == FAILED) & (strike < 0)
    for column, of_size in enumerate(
        (schedule.n_gpus <= GPUS_PER_NODE, schedule.n_gpus > GPUS_PER_NODE)
    ):
        chosen = np.flatnonzero(user & of_size)
        shares = np.array([pair[column] for pair in _USER_SHARES.values()])
        drawn = rng.choice(len(shares), len(chosen), p=shares / shares.sum())
        cause[chosen] = len(CAUSES) + drawn
    struck = np.flatnonzero(strike >= 0)
    faults = [fault for _, _, fault in schedule.strikes]
    of_fault = np.array([fault.cause for fault in faults], dtype=np.int64)
    evident = np.array([bool(fault.evidence) for fault in faults], dtype=bool)
    cause[struck] = of_fault[strike[struck]]
    has_event = cause == CAUSE_NAMES.index(ILLEGAL_ACCESS)
    has_event[struck] = evident[strike[struck]]
    row = np.flatnonzero(cause >= 0)
    return Verdicts(row=row, cause=cause[row], has_event=has_event[row])
