"""On which node did each worker of a traced job run?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from data.hostlist import HostListError, expand
from data.queries import fleet as fleet_queries
from data.queries import stragglers as straggler_queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from data.store import Store


@dataclass(frozen=True)
class WorkerNodes:
    """Nodes of workers, and what that takes for granted, or why they are unknown."""

    basis: str
    node_of: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """By (dp_rank, stage): the node of the rank that was traced."""
    attempt: int | None = None
    """Attempt of the job that was traced; None where unknown."""


def worker_nodes(store: Store, trace: Mapping[str, Any]) -> WorkerNodes:
    """The node of each worker: its rank / GPUs of a node, in the order of the job's node list.

    Unknown where the trace states no job or ranks, the store has not the job with nodes and GPUs,
    it cannot be told which attempt was traced, or sizes disagree.
    """
    if trace["job_id"] is None or trace["cluster"] is None:
        return WorkerNodes("the trace names no job that the store knows, so nodes are unknown")
    job = f"job {trace['job_id']}"
    attempts = straggler_queries.attempts(store, trace["cluster"], trace["job_id"])
    traced = _traced(attempts, trace["traced_at"])
    if traced is None:
        why = "it has no record of it" if not attempts else "which attempt was traced is unknown"
        return WorkerNodes(f"nodes of {job} are unknown: {why}")
    hosts, n_gpus, attempt = _hosts(traced["node_list"]), traced["n_gpus"], traced["attempt"]
    if not hosts or not n_gpus or n_gpus % len(hosts):
        why = "its record says no nodes, or no GPUs that divide evenly over them"
        return WorkerNodes(f"nodes of {job} are unknown: {why}", attempt=attempt)
    if trace["n_gpus"] not in (None, n_gpus):
        why = f"the trace is of {trace['n_gpus']:,} GPUs, the job had {n_gpus:,}"
        return WorkerNodes(f"nodes of {job} are unknown: {why}", attempt=attempt)
    ranks = straggler_queries.ranks(store, trace["path"])
    if ranks is None or not _are_places(ranks, n_gpus):
        why = f"the trace does not number its workers within 0 to {n_gpus - 1:,}"
        return WorkerNodes(f"nodes of {job} are unknown: {why}", attempt=attempt)
    own_name = fleet_queries.own_names(store, trace["cluster"])
    per_node = n_gpus // len(hosts)
    return WorkerNodes(
        f"a worker's node is its rank divided by {per_node:,} GPUs a node, in the order of the "
        f"node list of {job}: right where ranks were laid out in that order, as is usual",
        {
            worker: own_name.get(hosts[rank // per_node], hosts[rank // per_node])
            for worker, rank in ranks.items()
        },
        attempt,
    )


def _traced(
    attempts: Sequence[Mapping[str, Any]], traced_at: datetime | None
) -> Mapping[str, Any] | None:
    """The attempt during which the trace began, or the only one that it can be."""
    if traced_at is not None:
        during = [
            each
            for each in attempts
            if each["start_at"] <= traced_at
            and (each["end_at"] is None or traced_at <= each["end_at"])
        ]
        return during[0] if len(during) == 1 else None
    alike = {(each["node_list"], each["n_gpus"]) for each in attempts}
    return attempts[-1] if len(alike) == 1 else None


def _hosts(node_list: str | None) -> list[str]:
    """Hosts in the order of the record; none where it cannot be read, or names one twice."""
    try:
        hosts = expand(node_list or "")
    except HostListError:
        return []
    return hosts if len(set(hosts)) == len(hosts) else []


def _are_places(ranks: Mapping[tuple[int, int], int], n_gpus: int) -> bool:
    """Whether each worker has a rank of its own within the job."""
    numbers = set(ranks.values())
    return len(numbers) == len(ranks) and min(numbers) >= 0 and max(numbers) < n_gpus
