"""Who submits jobs, in which account and partition, under which name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from data.synthetic.gangs import LARGE_ABOVE_GPUS
from data.synthetic.spec import GPUS_PER_NODE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

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


def _drawn(group: Ints, weights: NDArray[np.float64], rng: np.random.Generator) -> Ints:
    """For each job a column of the weights of its group, which sum to 1."""
    drawn = np.empty(len(group), dtype=np.int64)
    for number, of_group in enumerate(weights):
        members = np.flatnonzero(group == number)
        drawn[members] = rng.choice(len(of_group), len(members), p=of_group)
    return drawn
