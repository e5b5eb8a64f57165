"""How large the demo cluster is, for how long, and with which seed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

from data.errors import DataError

GPUS_PER_NODE = 8
"""GPUs in a node (papers.md A1)."""

START_AT = datetime(2025, 12, 1, tzinfo=UTC)
"""Midnight of a Monday on which every demo begins."""

START_S = int(START_AT.timestamp())
"""`START_AT` in seconds since the epoch."""

UTILISATION = 0.83
"""Share of all GPU-time that jobs hold, RSC-1 (papers.md A1)."""

DEFAULT_JOBS = 200_000
DEFAULT_NODES = 256
DEFAULT_DAYS = 90.0

_MOST_DAYS = 3_660.0
_MOST_NODES = 100_000
_MOST_JOBS = 100_000_000


class DemoSpecError(DataError, ValueError):
    """A demo cluster was asked for that cannot exist."""


@dataclass(frozen=True)
class DemoSpec:
    """Size, length and seed of a demo cluster.

    Parameters
    ----------
    n_jobs
        Attempts in the `jobs` table, at least 1.
    n_nodes
        Nodes of 8 GPUs, at least 1.
    days
        Length of the period in days, above 0.
    seed
        Seed of all chance, at least 0: the same spec gives the same tables.

    Raises
    ------
    DemoSpecError
        A number lies outside its range.

    Examples
    --------
    >>> DemoSpec.of(n_jobs=20_000).days
    9.0
    """

    n_jobs: int = DEFAULT_JOBS
    n_nodes: int = DEFAULT_NODES
    days: float = DEFAULT_DAYS
    seed: int = 0

    def __post_init__(self) -> None:
        _within("jobs", self.n_jobs, least=1, most=_MOST_JOBS)
        _within("nodes", self.n_nodes, least=1, most=_MOST_NODES)
        _within("seed", self.seed, least=0, most=2**63)
        if not (isfinite(self.days) and 0 < self.days <= _MOST_DAYS):
            raise DemoSpecError(
                f"days must be above 0 and at most {_MOST_DAYS:g}, got {self.days:g}: "
                "choose a period in between, or other numbers of jobs and nodes where it follows"
            )

    @classmethod
    def of(
        cls,
        n_jobs: int | None = None,
        n_nodes: int | None = None,
        days: float | None = None,
        seed: int = 0,
    ) -> DemoSpec:
        """A spec in which what is not given follows from what is.

        Jobs per node and day stay those of the default (200,000 on 256 nodes in 90 days),
        which keeps GPU-time per job, and so utilisation, as it is: days follow from jobs and
        nodes; jobs follow from days and nodes where no jobs are given.
        """
        _within("jobs", 1 if n_jobs is None else n_jobs, least=1, most=_MOST_JOBS)
        nodes = DEFAULT_NODES if n_nodes is None else n_nodes
        _within("nodes", nodes, least=1, most=_MOST_NODES)
        per_node_day = DEFAULT_JOBS / (DEFAULT_NODES * DEFAULT_DAYS)
        if n_jobs is None:
            days = DEFAULT_DAYS if days is None else days
            n_jobs = max(1, round(per_node_day * nodes * days)) if isfinite(days) else 1
        elif days is None:
            days = n_jobs / (per_node_day * nodes)
        return cls(n_jobs=n_jobs, n_nodes=nodes, days=days, seed=seed)

    @property
    def period_s(self) -> int:
        """Length of the period in whole seconds, at least one minute."""
        return max(60, round(self.days * 86_400))

    @property
    def capacity_gpu_s(self) -> int:
        """GPU-seconds the cluster has in the period."""
        return self.n_nodes * GPUS_PER_NODE * self.period_s


def _within(name: str, found: int, *, least: int, most: int) -> None:
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
        raise DemoSpecError(
            f"{name} must be a whole number from {least} to {most}, got {found}: choose one there"
        )
