"""What is said of a host of which no job is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.queries import hosts

if TYPE_CHECKING:
    from app.ask import Ask

NO_JOB = "no job ran here in the records"


def without_jobs(ask: Ask, cluster: str | None) -> str:
    """That no job ran on a host, as far as the records of its cluster can tell."""
    n_ran, n_unplaced = ask(hosts.placed).get(cluster, (0, 0))
    if not n_ran:
        return f"the records hold no job{'' if cluster is None else f' of cluster {cluster}'}"
    if n_unplaced:
        where = f"nothing says where {n_unplaced:,} of {n_ran:,} attempts ran"
        return f"no job is known to have run here; {where}"
    return NO_JOB
