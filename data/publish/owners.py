"""Whose records these are where their source names no cluster: of the only one that knows the host.

Like the names of nodes this follows from the set of records and site.toml alone, so that the order
of files does not matter: it is set anew at every publish.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from analytics.fleet.node_identity import clusters_knowing
from data.publish.followed import follow_placed
from data.tables import records, tables
from data.tables.table import NODE_AS_WRITTEN, UNNAMED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    import duckdb

    from data.site import Site

From: TypeAlias = Literal["host", "job", "site", "several", "none"]
_PLACED = {name: table for name, table in records().items() if table.placed_by}
"""Tables whose records may name no cluster."""
_NAMED_BY = {name: f"coalesce({table.host_or_job}, '')" for name, table in _PLACED.items()}
"""Table -> the host or the job by which its records are placed, as SQL; '' where they name none."""
_KNOWING = {
    name: f"SELECT cluster, {NODE_AS_WRITTEN} AS name FROM {name}"
    + (" WHERE cluster_from IS NULL" if name in _PLACED else "")
    + (" WHERE source = 'inventory'" if name == "nodes" else "")
    for name, table in tables().items()
    if "node_written" in table.columns and not (name in _PLACED and _PLACED[name].placed_by_job)
}
_NAMES = " UNION ".join(
    [*_KNOWING.values(), "SELECT cluster, failed_node FROM jobs WHERE failed_node IS NOT NULL"]
)
_LISTED = (
    f" UNION SELECT cluster, {NODE_AS_WRITTEN} FROM node_inventory WHERE cluster_from = 'host'"
)
"""Nodes of inventories that name no cluster and were placed by others of their nodes."""
_JOBS = """
SELECT DISTINCT cluster, name FROM (
  SELECT cluster, unnest([job_id, job_id_raw, run_id]) AS name FROM jobs
  WHERE list_has_any([job_id, job_id_raw, run_id], $names))
WHERE list_contains($names, name)
"""
_NAMED = " UNION ".join(
    f"SELECT cluster FROM {name}" + " WHERE cluster_from IS NULL" * (name in _PLACED)
    for name in ("jobs", "node_failures", *_PLACED)
)


class Owner(NamedTuple):
    """The cluster of a host or job, and what tells it; None where it stays unknown."""

    cluster: str | None
    told_by: From
    candidates: tuple[str, ...] = ()
    """The clusters that know it."""


@dataclass
class Owners:
    """Which cluster knows which host and job, as the store's records and site.toml say."""

    connection: duckdb.DuckDBPyConnection
    site: Site
    places_lists: bool = False
    """Whether inventories without a cluster are about to be placed anew: they tell nothing yet."""

    def __post_init__(self) -> None:
        self._known: dict[str, set[str]] = defaultdict(set)
        known = _NAMES + ("" if self.places_lists else _LISTED)
        for cluster, name in self.connection.execute(known).fetchall():
            if cluster is not None and name is not None:
                self._known[cluster].add(name)
        found = self.connection.execute(_NAMED).fetchall()
        self.named = {cluster for (cluster,) in found if cluster is not None} | set(self._known)

    def of(self, table: str, names: Collection[str]) -> dict[str, Owner]:
        """Owner of the rows of a table that name each host, or each job."""
        by_job = _PLACED[table].placed_by_job
        return self._of_jobs(names) if by_job else self._of_hosts(names)

    def learn(self, cluster: str, hosts: Iterable[str]) -> None:
        """Takes hosts for known in a cluster."""
        self._known[cluster].update(hosts)

    def _of_hosts(self, names: Collection[str]) -> dict[str, Owner]:
        found = clusters_knowing(names, self._known, self.site.nodes)
        return {name: self._owner(found[name], "host") for name in names}

    def _of_jobs(self, names: Collection[str]) -> dict[str, Owner]:
        found: dict[str, set[str]] = {name: set() for name in names}
        for cluster, name in self.connection.execute(_JOBS, {"names": list(names)}).fetchall():
            found[name].add(cluster)
        return {name: self._owner(clusters, "job") for name, clusters in found.items()}

    def _owner(self, clusters: Collection[str], by: From) -> Owner:
        candidates = tuple(sorted(clusters))
        if len(candidates) == 1:
            return Owner(candidates[0], by, candidates)
        if candidates:
            return Owner(None, "several", candidates)
        of_site = self.site.default_cluster
        if of_site in self.site.clusters and self.named <= {of_site}:
            return Owner(of_site, "site")
        return Owner(None if self.named else UNNAMED, "none")


def place(
    connection: duckdb.DuckDBPyConnection,
    site: Site,
    changed: Collection[str],
    sizes: Mapping[str, int],
) -> set[str]:
    """Sets the cluster of every record whose source names none; the tables that changed.

    Call it outside of a transaction, before nodes are named. Of `changed` tables, records that
    another one states with its cluster go. `sizes` are the rows of each table: none is asked that
    has none.
    """
    asked = " UNION ALL ".join(query for table, query in _UNPLACED.items() if sizes[table])
    rows = connection.execute(asked).fetchall() if asked else []
    if not rows:
        return set()
    names: dict[str, set[str]] = defaultdict(set)
    for table, name in rows:
        names[table].add(name)
    owners = Owners(connection, site, places_lists=True)
    moved: set[str] = set()
    connection.execute("BEGIN")
    if "node_inventory" in names:
        moved |= _place_inventories(connection, owners)
    for table in names.keys() - {"node_inventory"}:
        found = owners.of(table, names[table])
        moved |= {table} if _set(connection, table, found) else set()
    if "node_metrics" in moved:
        moved |= follow_placed(connection)
    for table in names.keys() & (moved | {*changed}):
        moved |= {table} if _drop_repeated(connection, table) else set()
    connection.execute("COMMIT")
    return moved


_UNPLACED = {
    table: f"SELECT DISTINCT '{table}', {name} AS name FROM {table} WHERE cluster_from IS NOT NULL"
    for table, name in _NAMED_BY.items()
}


def _place_inventories(connection: duckdb.DuckDBPyConnection, owners: Owners) -> set[str]:
    """Sets the cluster of inventories: that of the nodes that it knows, also of the others.

    A list of nodes is of one cluster. What knows a node may be another list, so that they are
    gone through until nothing is learnt.
    """
    listings: dict[tuple[object, str], list[str]] = {
        (at, source): hosts
        for at, source, hosts in connection.execute(
            f"""SELECT observed_at, source, list(DISTINCT {_NAMED_BY["node_inventory"]})
                FROM node_inventory WHERE cluster_from IS NOT NULL GROUP BY ALL ORDER BY ALL"""
        ).fetchall()
    }
    found: dict[tuple[object, str], dict[str, Owner]] = {}
    n_known = -1
    while len(found) > n_known:
        n_known = len(found)
        for key in [key for key in listings if key not in found]:
            of_list = owner_of_list(owners.of("node_inventory", listings[key]))
            told = {one.cluster for one in of_list.values() if one.told_by == "host"}
            if told:
                found[key] = of_list
            for cluster in filter(None, told):
                owners.learn(cluster, [h for h, one in of_list.items() if one.cluster == cluster])
    for key in listings.keys() - found.keys():
        found[key] = owners.of("node_inventory", listings[key])
    moved = False
    for (at, source), of_list in found.items():
        moved |= _set(connection, "node_inventory", of_list, observed_at=at, source=source)
    return {"node_inventory"} if moved else set()


def owner_of_list(found: Mapping[str, Owner]) -> dict[str, Owner]:
    """Owner of each host of one list: where one cluster knows some of them, all are its."""
    clusters = {one.cluster for one in found.values() if one.told_by == "host"}
    if len(clusters) != 1 or any(one.told_by == "several" for one in found.values()):
        return dict(found)
    (cluster,) = clusters
    return dict.fromkeys(found, Owner(cluster, "host"))


def _set(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    owners: Mapping[str, Owner],
    **where: object,
) -> bool:
    """Sets the cluster of a table's unplaced rows by their host or job; whether any changed."""
    written = ""
    if "node_written" in tables()[table].columns:
        written = f", node = {NODE_AS_WRITTEN}, node_written = NULL"
    also = "".join(f" AND {table}.{column} = ${column}" for column in where)
    ((n_changed,),) = connection.execute(
        f"""UPDATE {table} SET cluster = due.cluster, cluster_from = due.told_by{written}
            FROM (SELECT unnest($names) AS name, unnest($clusters::VARCHAR[]) AS cluster,
                    unnest($told::VARCHAR[]) AS told_by) AS due
            WHERE cluster_from IS NOT NULL AND {_NAMED_BY[table]} = due.name{also}
              AND (({table}.cluster, cluster_from) IS DISTINCT FROM (due.cluster, due.told_by))""",
        {
            "names": list(owners),
            "clusters": [one.cluster for one in owners.values()],
            "told": [one.told_by for one in owners.values()],
            **where,
        },
    ).fetchall()
    return bool(n_changed)


_SAID = {
    "health_events": (
        "node",
        *("gpu", "observed_at", "source", "check_name", "xid", "sxid", "message", "job_id"),
    )
}
"""What two records of one thing have in common, where their key is a hash of it."""


def _drop_repeated(connection: duckdb.DuckDBPyConnection, table: str) -> bool:
    """Removes records that another one states, too, with its cluster; whether there were any.

    Of records that stand there several times as many go as are stated.
    """
    mixed = connection.execute(
        f"""SELECT cluster FROM {table} WHERE cluster IS NOT NULL GROUP BY cluster
            HAVING count(cluster_from) BETWEEN 1 AND count(*) - 1"""
    ).fetchall()
    if not mixed:
        return False
    rule = records()[table]
    said = _SAID.get(table, tuple(name for name in rule.key if name != "cluster"))
    columns = ", ".join(f"{rule.value(name)} AS v{place}" for place, name in enumerate(said))
    values = ", ".join(f"v{place}" for place in range(len(said)))
    ((n_dropped,),) = connection.execute(
        f"""DELETE FROM {table} WHERE rowid IN (
              WITH said AS (
                SELECT rowid AS id, cluster, cluster_from IS NULL AS stated, {columns} FROM {table}
                WHERE list_contains($clusters, cluster)),
              counted AS (
                SELECT id, stated,
                  count(*) FILTER (stated) OVER (PARTITION BY cluster, {values}) AS n_stated,
                  row_number() OVER (PARTITION BY cluster, stated, {values} ORDER BY id) AS place
                FROM said)
              SELECT id FROM counted WHERE NOT stated AND place <= n_stated)""",
        {"clusters": [cluster for (cluster,) in mixed]},
    ).fetchall()
    return bool(n_dropped)
