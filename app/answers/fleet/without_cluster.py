"""Which records have no cluster: their source names none, and no cluster knows their host?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.answers.columns import columns
from app.answers.content import Table
from app.words import numbers
from app.words.cells import Column
from data.queries import fleet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.queries.fleet import Homeless
    from data.store import Store

COLUMNS = (
    Column("table", "Table"),
    Column("n_records", "Records", "count"),
    Column("named", "Hosts or jobs they name", none="none"),
    Column("why", "Why"),
    *columns("cluster"),
)
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


def table(shown: WithoutCluster) -> Table:
    """Records without a cluster, and the hosts or jobs that they name."""
    rows = [
        (one.table, one.n_records, _some(one), WHY[one.cluster_from], one.cluster)
        for one in shown.rows
    ]
    return Table(
        "records_without_cluster",
        "Records without a cluster",
        COLUMNS,
        rows,
        "Every record belongs to a cluster.",
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


def _some(one: Homeless) -> str | None:
    if not one.names:
        return None
    more = one.n_names - _TOLD
    return ", ".join(one.names[:_TOLD]) + (f" and {more:,} more" if more > 0 else "")
