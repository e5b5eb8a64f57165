"""On which node and GPU each rank of a hung job ran, as dumps and the job's record say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from data.hostlist import HostListError, expand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.training.hangs.dump import RankDump
    from data.queries.hangs import DumpedAttempt


@dataclass(frozen=True)
class Places:
    """Nodes and GPUs of ranks; a rank that is absent is not known."""

    node_of: Mapping[int, str] = field(default_factory=dict)
    gpu_of: Mapping[int, int] = field(default_factory=dict)
    basis: str = ""
    """What that takes for granted; empty where the dumps name the hosts."""

    @property
    def told(self) -> dict[int, str]:
        """Rank -> its place in words."""
        return {
            rank: f"{node} (GPU {self.gpu_of[rank]})" if rank in self.gpu_of else node
            for rank, node in self.node_of.items()
        }


def places(
    dumps: Mapping[int, RankDump],
    attempt: DumpedAttempt | None,
    own_names: Mapping[str, str] | None = None,
) -> Places:
    """Node and GPU of each rank: its dump's host, else its place in the job's node list.

    A rank's node is its number divided by the GPUs of a node, its GPU the rest: right where ranks
    were laid out in the order of the node list. Where a dump names another host than that, the
    record says nothing of any rank.
    """
    names = own_names or {}
    said = {rank: names.get(dump.host, dump.host) for rank, dump in dumps.items() if dump.host}
    hosts = [] if attempt is None else _hosts(attempt.node_list)
    n_gpus = None if attempt is None else attempt.n_gpus
    if not hosts or not n_gpus or n_gpus % len(hosts):
        return Places(said)
    per_node = n_gpus // len(hosts)
    listed = {
        rank: names.get(hosts[rank // per_node], hosts[rank // per_node]) for rank in range(n_gpus)
    }
    if any(_short(listed.get(rank, "")) != _short(node) for rank, node in said.items()):
        return Places(said)
    gpus = {rank: rank % per_node for rank in listed}
    basis = (
        f"A rank's node is its number divided by {per_node:,} GPUs a node, in the order of the "
        "job's node list, its GPU the rest: right where ranks were laid out in that order."
    )
    return Places({**listed, **said}, gpus, basis)


def _short(host: str) -> str:
    return host.partition(".")[0]


def _hosts(node_list: str | None) -> list[str]:
    """Hosts in the order of the record; none where it cannot be read, or names one twice."""
    try:
        hosts = expand(node_list or "")
    except HostListError:
        return []
    return hosts if len(set(hosts)) == len(hosts) else []
