"""Records of an input whose source names no cluster: of that which knows their host or job."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.site import load_site
from data.tables import records
from data.tables.table import UNNAMED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import duckdb

    from data.ingest.reader import Batch, Options
    from data.publish import StoreWriter
    from data.publish.owners import Owner
    from data.publish.writer import Rows

_TOLD = 3
"""Hosts or jobs that a sentence names."""


@dataclass(frozen=True)
class Unnamed:
    """To whom the records of one input belong that name no cluster."""

    owners: Mapping[str, Mapping[str, Owner]] = field(default_factory=dict)
    """Table -> host or job -> its owner."""
    tells_nothing: bool = False
    """Whether no record of the input says which cluster knows a host."""

    @property
    def clusters(self) -> set[str]:
        """Clusters that were found to own any of them."""
        each = chain.from_iterable(found.values() for found in self.owners.values())
        return {one.cluster for one in each if one.cluster is not None}

    def zone(self, options: Options, shown: str) -> str | None:
        """Zone of their local times: that of the clusters that own them.

        Raises
        ------
        SourceError
            Where these have several.
        """
        zones = {cluster: options.zone_of(cluster) for cluster in sorted(self.clusters)}
        if len(set(zones.values())) > 1:
            told = ", ".join(f"{zone or 'UTC'} in {cluster}" for cluster, zone in zones.items())
            raise SourceError(
                f"{shown}: its times name no zone, and its hosts are of clusters in several "
                f"({told}): pass --timezone, or the hosts of each with --cluster"
            )
        return next(iter(zones.values()), None)

    def name(self, batch: Batch) -> None:
        """Names the clusters of a batch as its records will be; tells what has none yet."""
        if not self.owners:
            return
        batch.clusters = tuple(sorted({*batch.clusters} - {UNNAMED} | self.clusters))
        if UNNAMED in batch.local:
            batch.local |= self.clusters
        batch.notices += self._notices()

    def _notices(self) -> Iterator[str]:
        for things, of_jobs in (("hosts", False), ("jobs", True)):
            unknown = sorted({
                name
                for table, found in self.owners.items() if records()[table].placed_by_job is of_jobs
                for name, one in found.items() if name and one.cluster is None
            })  # fmt: skip
            if unknown:
                more = len(unknown) - _TOLD
                named = ", ".join(unknown[:_TOLD]) + (f" and {more:,} more" if more > 0 else "")
                yield (
                    f"{things} that no cluster of the store knows, whose records wait for one that "
                    f"does (or pass --cluster): {named}"
                )

    @contextmanager
    def placed(self, connection: duckdb.DuckDBPyConnection, batch: Batch) -> Iterator[None]:
        """Gives each row of a batch the cluster that it belongs to, while it lasts."""
        import duckdb

        tables = {name: batch.tables[name] for name in self.owners}
        with _registered(connection, tables) as views:
            for table, view in views.items():
                rows = connection.sql(_placed(connection, table, view, self.owners[table]))
                in_database = isinstance(tables[table], duckdb.DuckDBPyRelation)
                batch.tables[table] = rows if in_database else rows.to_arrow_table()
            yield


def owners_of(writer: StoreWriter, batch: Batch, shown: str) -> Unnamed:
    """Owners of the hosts and jobs of which a batch names no cluster.

    Raises
    ------
    SourceError
        Where several clusters know one of them, naming these.
    """
    from data.publish.owners import Owners, owner_of_list

    tables = {name: rows for name, rows in batch.tables.items() if records()[name].placed_by}
    if UNNAMED not in batch.clusters:
        return Unnamed()
    owners = writer.owners or Owners(writer.connection, load_site(writer.root))
    writer.owners = owners
    found = {}
    with _registered(writer.connection, tables) as views:
        for table, view in views.items():
            rows = writer.connection.execute(
                f"SELECT DISTINCT {_name(writer.connection, table, view)} FROM {view} "
                f"WHERE cluster = '{UNNAMED}'"
            ).fetchall()
            of_table = owners.of(table, sorted(name for (name,) in rows))
            found[table] = owner_of_list(of_table) if table == "node_inventory" else of_table
    for table, of_table in found.items():
        _refuse_several(shown, "job" if records()[table].placed_by_job else "host", of_table)
    return Unnamed(found, set(batch.clusters) == {UNNAMED} and "node_inventory" not in found)


def _refuse_several(shown: str, thing: str, owners: Mapping[str, Owner]) -> None:
    several = {name: one.candidates for name, one in owners.items() if one.told_by == "several"}
    if several:
        name, candidates = min(several.items())
        more = f" and {len(several) - 1:,} more" if len(several) > 1 else ""
        raise SourceError(
            f"{shown}: {thing} {name}{more}, of which it names no cluster, is known in "
            f"{' and in '.join(candidates)}: pass --cluster with one of them"
        )


def _name(connection: duckdb.DuckDBPyConnection, table: str, view: str) -> str:
    """The host or job that a row of an input names, as SQL; '' where it names none."""
    present = connection.sql(f"FROM {view}").columns
    names = [name for name in records()[table].placed_by if name in present]
    return "coalesce(" + ", ".join([*names, "''"]) + ")"


def _placed(
    connection: duckdb.DuckDBPyConnection, table: str, view: str, owners: Mapping[str, Owner]
) -> str:
    """Query of the rows of a view with their owners' clusters."""
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE owner_in_{view} AS
            SELECT unnest($names::VARCHAR[]) AS name, unnest($clusters::VARCHAR[]) AS owner,
              unnest($told::VARCHAR[]) AS told_by""",
        {
            "names": list(owners),
            "clusters": [one.cluster for one in owners.values()],
            "told": [one.told_by for one in owners.values()],
        },
    )
    unnamed = f"cluster = '{UNNAMED}'"
    return f"""
      SELECT rows.* EXCLUDE (placed_by)
          REPLACE (CASE WHEN {unnamed} THEN owner ELSE cluster END AS cluster),
        CASE WHEN {unnamed} THEN coalesce(told_by, 'none') END AS cluster_from
      FROM (SELECT *, {_name(connection, table, view)} AS placed_by FROM {view}) AS rows
      LEFT JOIN owner_in_{view} AS owner_of ON owner_of.name = placed_by"""


@contextmanager
def _registered(
    connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Rows]
) -> Iterator[dict[str, str]]:
    """Names under which SQL reads the rows of tables, while it lasts."""
    import duckdb

    views = {table: f"unnamed_{table}" for table in tables}
    for table, rows in tables.items():
        if isinstance(rows, duckdb.DuckDBPyRelation):
            rows.create_view(views[table], replace=True)
        else:
            connection.register(views[table], rows)
    try:
        yield views
    finally:
        for view in views.values():
            connection.execute(f"DROP VIEW IF EXISTS {view}")
