"""Which records have no cluster: their source names none, and no cluster knows their host?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.answers.columns import columns
from app.answers.described import Rows, field
from app.words import numbers
from data.queries import fleet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.answers.content import Table
    from data.queries.fleet import Homeless
    from data.store import Store

WHY = {
    "none": "no cluster of the store knows the host or job",
    "several": "several clusters know the host or job",
}
"""By what tells the cluster (`cluster_from`)."""
_TOLD = 3
"""Hosts or jobs that a cell names."""


@dataclass(frozen=True)
class WithoutCluster:
    """Records that belong to no cluster so far."""

    rows: tuple[Homeless, ...]


def without_cluster(store: Store) -> WithoutCluster:
    """Records that belong to no cluster so far, by table."""
    return WithoutCluster(tuple(fleet.without_cluster(store)))


def _some(records: Homeless) -> str | None:
    if not records.names:
        return None
    more = records.n_names - _TOLD
    return ", ".join(records.names[:_TOLD]) + (f" and {more:,} more" if more > 0 else "")


DESCRIBED = (
    field("table", "Table"),
    field("n_records", "Records", "count"),
    field("named", "Hosts or jobs they name", of=_some, none="none"),
    field("why", "Why", of=lambda records: WHY[records.cluster_from]),
    *columns("cluster"),
)


def table(shown: WithoutCluster) -> Table:
    """Records without a cluster, and the hosts or jobs that they name."""
    return Rows(DESCRIBED, shown.rows).table(
        "records_without_cluster",
        "Records without a cluster",
        empty="Every record belongs to a cluster.",
    )


def record(shown: WithoutCluster) -> dict[str, object]:
    """The JSON of the command."""
    return {"records_without_cluster": [one._asdict() for one in shown.rows]}


def notes(shown: WithoutCluster) -> Iterator[str]:
    """How many records count in no cluster, and what to do."""
    n_records = sum(one.n_records for one in shown.rows)
    if n_records:
        tables = ", ".join(dict.fromkeys(one.table for one in shown.rows))
        yield (
            f"{numbers.counted(n_records, 'record')} of {tables} without a cluster: their source "
            "names none, and none or several of the store know their host or job. They count "
            "nowhere until the records of their cluster are read; --cluster says which it is."
        )
