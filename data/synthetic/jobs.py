"""The tables `jobs` and `job_nodes`: who submits what, where and how it ran."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from data.synthetic import published
from data.synthetic.columns import ints, times, words
from data.synthetic.schedule import NODE_FAIL, STATES
from data.synthetic.scheduler import LARGE_ABOVE_GPUS
from data.synthetic.spec import GPUS_PER_NODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.arrays import Floats, Ints
    from data.synthetic.cluster import Played
    from data.synthetic.fleet import Fleet
    from data.synthetic.schedule import Schedule

ACCOUNTS: Final = (
    *("foundation", "multimodal", "alignment", "speech", "vision", "recsys"),
    *("robotics", "biology", "infra", "interns"),
)
USERS_PER_ACCOUNT: Final = 12
USERS: Final = tuple(
    f"{account[:4]}{i:02d}" for account in ACCOUNTS for i in range(1, USERS_PER_ACCOUNT + 1)
)
PARTITIONS: Final = ("learn", "dev", "eval")
QOS: Final = ("high", "normal", "low")

_NAMES: Final = (
    ("pretrain-70b", "pretrain-34b", "pretrain-moe", "pretrain-video", "longcontext-34b"),
    ("finetune-7b", "sft-34b", "rlhf-ppo", "ablation-lr", "ablation-data", "distill-7b"),
    ("notebook", "eval-mmlu", "eval-code", "preprocess", "debug", "sweep", "tokenize", "profile"),
)
NAMES: Final = tuple(name for group in _NAMES for name in group)

_ACCOUNT_WEIGHTS: Final = np.array(
    [
        [0.50, 0.25, 0.15, 0.05, 0.05, 0.00, 0.00, 0.00, 0.00, 0.00],
        [0.22, 0.18, 0.18, 0.12, 0.12, 0.08, 0.05, 0.05, 0.00, 0.00],
        [0.12, 0.12, 0.12, 0.10, 0.14, 0.10, 0.08, 0.08, 0.06, 0.08],
    ]
)
_PARTITION_WEIGHTS: Final = np.array([[1, 0, 0], [1, 0, 0], [0, 0.65, 0.35]])


@dataclass(frozen=True)
class People:
    """Of every job the number of its user, account, partition, quality of service and name."""

    user: Ints
    account: Ints
    partition: Ints
    qos: Ints
    name: Ints


def people(n_gpus: Ints, rng: np.random.Generator) -> People:
    """Owners of jobs by size: large training runs belong to few teams, small jobs to everyone."""
    group = np.where(n_gpus > LARGE_ABOVE_GPUS, 0, np.where(n_gpus > GPUS_PER_NODE, 1, 2))
    account = _drawn(group, _ACCOUNT_WEIGHTS, rng)
    activity = 1 / np.arange(1, USERS_PER_ACCOUNT + 1)
    member = rng.choice(USERS_PER_ACCOUNT, len(n_gpus), p=activity / activity.sum())
    first = np.cumsum([0, *(len(names) for names in _NAMES)])
    name = first[group] + (rng.random(len(n_gpus)) * np.diff(first)[group]).astype(np.int64)
    return People(
        user=account * USERS_PER_ACCOUNT + member,
        account=account,
        partition=_drawn(group, _PARTITION_WEIGHTS, rng),
        qos=group,
        name=name,
    )


def _drawn(group: Ints, weights: Floats, rng: np.random.Generator) -> Ints:
    """For each job a column of the weights of its group, which sum to 1."""
    drawn = np.empty(len(group), dtype=np.int64)
    for number, of_group in enumerate(weights):
        members = np.flatnonzero(group == number)
        drawn[members] = rng.choice(len(of_group), len(members), p=of_group)
    return drawn


def node_lists(schedule: Schedule, names: list[str]) -> pa.DictionaryArray:
    """The node list of every attempt, NULL where it never started.

    Single nodes are looked up by number; the lists of multi-node attempts follow behind them.
    """
    n_nodes = schedule.n_nodes
    codes = np.full(len(schedule), -1)
    one = np.flatnonzero(n_nodes == 1)
    codes[one] = schedule.nodes[schedule.begins[one]]
    many = np.flatnonzero(n_nodes > 1)
    codes[many] = len(names) + np.arange(len(many))
    lists = _bracketed(schedule, many, names)
    return words(codes, pa.concat_arrays([pa.array(names), pa.array(lists, pa.string())]))


def _bracketed(schedule: Schedule, many: np.ndarray, names: list[str]) -> list[str]:
    if not len(many):
        return []
    stem = names[0].rstrip("0123456789")
    numbers = [name[len(stem) :] for name in names]
    texts = [""] * len(many)
    for attempt, runs in groupby(_runs(schedule), itemgetter(0)):
        parts = [
            numbers[low] if low == high else f"{numbers[low]}-{numbers[high]}"
            for _, low, high in runs
        ]
        texts[attempt] = f"{stem}[{','.join(parts)}]"
    return texts


def _runs(schedule: Schedule) -> Iterator[tuple[int, int, int]]:
    """Number among the multi-node attempts, first and last node of every run of adjacent nodes."""
    n_nodes = schedule.n_nodes
    wide = n_nodes > 1
    attempt = np.repeat(np.cumsum(wide) - 1, n_nodes)
    chosen = np.repeat(wide, n_nodes)
    attempt, node = attempt[chosen], schedule.nodes[chosen]
    order = np.lexsort((node, attempt))
    attempt, node = attempt[order], node[order]
    breaks = (np.diff(attempt) != 0) | (np.diff(node) != 1)
    low = np.concatenate([[0], np.flatnonzero(breaks) + 1])
    high = np.append(low[1:], len(node)) - 1
    yield from zip(attempt[low].tolist(), node[low].tolist(), node[high].tolist(), strict=True)


FIRST_JOB_ID: Final = 100_001

CPUS_PER_GPU: Final = 12

_EXIT: Final = {"FAILED": (1, 0), "NODE_FAIL": (1, 0), "OUT_OF_MEMORY": (0, 125)}
"""Exit code and signal as sacct shows them; 0 and 0 in all other states."""

_LIMITS_H: Final = np.array([0.5, 1, 2, 4, 8, 12, 24, 48, 72, 120, 168])
_PRIORITY: Final = np.array([30_000, 20_000, 10_000])
_EXCLUDING: Final = 0.004
"""Share of attempts on one node whose owner excluded another node."""


def job_ids(job: Ints) -> pa.Array:
    """Job ids as users see them; NULL for a negative number."""
    return pc.cast(ints(job + FIRST_JOB_ID, job >= 0), pa.string())


def jobs_table(demo: Played) -> pa.Table:
    """One row per attempt, with every column of the store's table that Slurm could fill."""
    schedule, keys, nodes, rng = demo.schedule, demo.keys, demo.nodes, demo.chance["jobs"]
    job = schedule.job
    sizes = np.empty(schedule.n_jobs, dtype=np.int64)
    sizes[job] = schedule.n_gpus
    owners = people(sizes, rng)
    excluded = _excluded(schedule, nodes, rng)
    ids = job_ids(job)
    return pa.table(
        {
            "attempt_key": keys,
            "job_id": ids,
            "job_id_raw": ids,
            "sluid": keys,
            "original_sluid": keys,
            "user": words(owners.user[job], USERS),
            "account": words(owners.account[job], ACCOUNTS),
            "partition": words(owners.partition[job], PARTITIONS),
            "qos": words(owners.qos[job], QOS),
            "name": words(owners.name[job], NAMES),
            "state_raw": _states_raw(schedule, owners.user[job]),
            "submit_line": _submit_lines(sizes, owners, job, (excluded, nodes.names)),
            "priority": ints(_PRIORITY[owners.qos[job]] + sizes[job] + job % 997),
            "node_list": node_lists(schedule, nodes.names),
            "excluded_nodes": words(excluded, nodes.names),
            "failed_node": _failed_node(schedule, nodes),
            **_course(schedule),
        }
    )


def _course(schedule: Schedule) -> dict[str, pa.Array]:
    """Columns that say when each attempt ran, on how much, and how it ended."""
    exits = np.array([_EXIT.get(name, (0, 0)) for name in STATES], dtype=np.int32)
    began, ended = schedule.start_s >= 0, schedule.end_s >= 0
    n_gpus = schedule.n_gpus.astype(np.int32)
    return {
        "attempt": ints(schedule.restarts.astype(np.int32) + 1),
        "restarts": ints(schedule.restarts.astype(np.int32)),
        "state": words(schedule.state, STATES),
        "exit_code": ints(exits[schedule.state, 0], ended),
        "exit_signal": ints(exits[schedule.state, 1], ended),
        "reason": words(np.where(began | ended, -1, 0), ["Resources"]),
        "preempted_by": job_ids(schedule.preempted_by),
        "submit_at": times(schedule.submit_s),
        "eligible_at": times(schedule.eligible_s),
        "start_at": times(schedule.start_s, began),
        "end_at": times(schedule.end_s, ended),
        "elapsed_s": ints(schedule.ran_s),
        "timelimit_s": ints(_time_limits(schedule)),
        "n_nodes": ints(-(-n_gpus // GPUS_PER_NODE)),
        "n_gpus": ints(n_gpus),
        "n_cpus": ints(n_gpus * CPUS_PER_GPU),
    }


def job_nodes_table(demo: Played) -> pa.Table:
    """One row per node of every attempt that started."""
    schedule = demo.schedule
    attempt = np.repeat(np.arange(len(schedule)), schedule.n_nodes)
    end_s = schedule.end_s[attempt]
    gpus = np.minimum(schedule.n_gpus, GPUS_PER_NODE).astype(np.int32)
    return pa.table(
        {
            "attempt_key": demo.keys.take(pa.array(attempt)),
            "node": words(schedule.nodes, demo.nodes.names),
            "n_gpus": ints(gpus[attempt]),
            "start_at": times(schedule.start_s[attempt]),
            "end_at": times(end_s, end_s >= 0),
        }
    )


def _states_raw(schedule: Schedule, user: Ints) -> pa.DictionaryArray:
    """States as sacct writes them: a cancelled job names the user."""
    values = [*STATES, *(f"CANCELLED by {5000 + i}" for i in range(len(USERS)))]
    return words(
        np.where(schedule.in_state("CANCELLED"), len(STATES) + user, schedule.state), values
    )


def _failed_node(schedule: Schedule, nodes: Fleet) -> pa.DictionaryArray:
    """The node that failed, as sacct's FailedNode names it for NODE_FAIL."""
    struck = np.array([node for _, node, _ in schedule.strikes] or [-1])
    return words(np.where(schedule.state == NODE_FAIL, struck[schedule.strike], -1), nodes.names)


def _time_limits(schedule: Schedule) -> Ints:
    """Limits, seconds: the next usual one above the longest attempt; a TIMEOUT ran into its own."""
    longest = np.zeros(schedule.n_jobs, dtype=np.int64)
    np.maximum.at(longest, schedule.job, schedule.ran_s)
    wanted = np.maximum(longest, 60) * 1.2 / published.HOUR_S
    usual = _LIMITS_H[np.searchsorted(_LIMITS_H[:-1], wanted)] * published.HOUR_S
    reached = np.maximum(schedule.ran_s // 60 * 60, 60)
    return np.where(schedule.in_state("TIMEOUT"), reached, usual.astype(np.int64)[schedule.job])


def _submit_lines(
    sizes: Ints, owners: People, job: Ints, exclusion: tuple[Ints, list[str]]
) -> pa.DictionaryArray:
    """One command line for each partition, size and job name in use, and each that excludes."""
    kinds = np.stack([owners.partition, sizes, owners.name])
    forms, form = np.unique(kinds, axis=1, return_inverse=True)
    lines = [
        f"sbatch --partition={PARTITIONS[partition]} --nodes={-(-gpus // GPUS_PER_NODE)} "
        f"--gpus-per-node={min(gpus, GPUS_PER_NODE)} {NAMES[name]}.sh"
        for partition, gpus, name in forms.T.tolist()
    ]
    excluded, names = exclusion
    code, own = form.reshape(-1)[job], np.flatnonzero(excluded >= 0)
    for row in own.tolist():
        option = f"sbatch --exclude={names[excluded[row]]}"
        lines.append(lines[code[row]].replace("sbatch", option, 1))
    code[own] = np.arange(len(lines) - len(own), len(lines))
    return words(code, lines)


def _excluded(schedule: Schedule, nodes: Fleet, rng: np.random.Generator) -> Ints:
    """Of each attempt the node that it excluded, which it did not run on, or -1.

    A few exclude any node, which says little about the node (A8); more the lemons that users know.
    """
    alone = (schedule.n_nodes == 1) & (np.bincount(schedule.job)[schedule.job] == 1)
    codes = np.where(alone & (rng.random(len(schedule)) < _EXCLUDING), 0, -1)
    chosen = np.flatnonzero(codes == 0)
    codes[chosen] = rng.integers(0, len(nodes), len(chosen))
    for node, lemon in nodes.lemons.items():
        n = rng.poisson(lemon.expected(lemon.kind.excluded, schedule.period_s))
        free = np.flatnonzero(alone & (codes < 0))
        codes[rng.choice(free, min(n, len(free)), replace=False)] = node
    chosen = np.flatnonzero(codes >= 0)
    codes[chosen[codes[chosen] == schedule.nodes[schedule.begins[chosen]]]] = -1
    return codes
