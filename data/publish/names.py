"""One name for each node, whatever spellings sources write.

Records keep the name that their source wrote (`node_written`), so that names follow from the set of
records and site.toml alone: an alias added or taken back later counts at the next publish.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from analytics.fleet.node_identity import LOG, SCHEDULER, identities
from data.tables import records, tables
from data.tables.table import NODE_AS_WRITTEN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import duckdb

_PLACES = {name: LOG for name, table in tables().items() if "node_written" in table.columns} | {
    "job_nodes": SCHEDULER,
    "node_events": SCHEDULER + 1,
    "nodes": SCHEDULER + 2,
    "node_inventory": SCHEDULER + 2,
    "node_failures": SCHEDULER + 3,
}
"""Tables that name nodes, and what place their names have among the names of a node: of a log,
where nothing else is said."""
_ROWS = {name: f"FROM {name}" for name in _PLACES} | {
    "nodes": "FROM nodes WHERE source = 'inventory'"
}
_SEEN = {
    name: f"""SELECT '{name}', cluster, {NODE_AS_WRITTEN} AS name, node,
      {tables()[name].n_records} {rows} GROUP BY ALL"""
    for name, rows in _ROWS.items()
} | {
    "jobs": """SELECT 'job_nodes', cluster, failed_node, NULL, 0 FROM jobs
        WHERE failed_node IS NOT NULL GROUP BY ALL"""
}
"""Table -> the names of nodes in it."""
NODE_KEYED = tuple(name for name, table in records().items()
                   if "node" in table.key and name in _PLACES)  # fmt: skip
"""Tables whose key holds the node: records of one thing in two spellings count once."""


class Written(NamedTuple):
    """A name as a table holds it."""

    table: str
    cluster: str
    name: str
    """As the source wrote it."""
    node: str | None
    """As it stands now."""
    n_records: int


def name_nodes(
    connection: duckdb.DuckDBPyConnection,
    stated: Mapping[str, Collection[str]],
    placed: Collection[str],
    sizes: Mapping[str, int],
) -> set[str]:
    """Sets the node of every record by the names that there are now; the tables that changed.

    Names stand in `node_names`; `stated` is what site.toml says; of `placed` tables rows were given
    another cluster. `sizes` are the rows of each table: none is asked that has none. Call it
    outside of a transaction.
    """
    asked = " UNION ALL ".join(query for table, query in _SEEN.items() if sizes[table])
    seen = [
        Written(*row)
        for row in (connection.execute(asked).fetchall() if asked else ())
        if row[1] is not None and row[2] is not None
    ]
    named = sorted(_named(seen, stated))
    meant = {(cluster, name): node for cluster, name, node, *_ in named}
    due = sorted({
        (one.table, one.cluster, one.name, meant.get((one.cluster, one.name), one.name))
        for one in seen
        if one.node is not None and one.node != meant.get((one.cluster, one.name), one.name)
    })  # fmt: skip
    changed = {table for table, *_ in due} - {*NODE_KEYED}
    connection.execute("BEGIN")
    before = connection.execute("FROM node_names ORDER BY ALL").fetchall()
    if named != before:
        if [row[:4] for row in named] != [row[:4] for row in before]:
            changed.add("node_names")
        connection.execute("DELETE FROM node_names")
        if named:
            columns = dict(zip(tables()["node_names"].columns, map(list, zip(*named, strict=True)),
                               strict=True))  # fmt: skip
            unnested = ", ".join(f"unnest(${name}) AS {name}" for name in columns)
            connection.execute(f"INSERT INTO node_names BY NAME SELECT {unnested}", columns)
    for table in sorted({table for table, *_ in due} - {*NODE_KEYED}):
        _, clusters, names, nodes = map(
            list, zip(*(row for row in due if row[0] == table), strict=True)
        )
        connection.execute(
            f"""UPDATE {table} SET node = due.node,
                  node_written = CASE WHEN due.name <> due.node THEN due.name END
                FROM (SELECT unnest($clusters) AS cluster, unnest($names) AS name,
                        unnest($nodes) AS node) due
                WHERE {table}.cluster = due.cluster AND {table}.node <> due.node
                  AND coalesce({table}.node_written, {table}.node) = due.name""",
            {"clusters": clusters, "names": names, "nodes": nodes},
        )
    respelt = {one.table for one in seen if one.name != one.node} | {table for table, *_ in due}
    respelt |= {*placed}
    changed |= {table for table in respelt & {*NODE_KEYED} if _name_keyed(connection, table)}
    connection.execute("COMMIT")
    return changed


def _name_keyed(connection: duckdb.DuckDBPyConnection, table: str) -> bool:
    """Sets the node where it is part of the key; True where any changed.

    Of records that have one key since their nodes have one name, one counts, chosen as the merge
    does; the others stay, for names follow from all records, but have no node.
    """
    rule = records()[table]
    rest = ", ".join(f'"{name}"' for name in rule.key if name not in ("cluster", "node"))
    ((n_changed,),) = connection.execute(
        f"""UPDATE {table} SET node = CASE WHEN place = 1 THEN wanted.node END,
              node_written = CASE WHEN place > 1 OR wanted.node <> written THEN written END
            FROM (
              SELECT id, written, node, row_number() OVER (PARTITION BY cluster, node, {rest}
                ORDER BY later DESC NULLS LAST, content DESC) AS place
              FROM (
                SELECT id, kept.* EXCLUDE (id), coalesce(named.node, kept.written) AS node
                FROM (SELECT rowid AS id, cluster, {rest}, {NODE_AS_WRITTEN} AS written,
                        "{rule.later}" AS later, {rule.content} AS content {_ROWS[table]}) AS kept
                LEFT JOIN node_names named
                  ON named.cluster = kept.cluster AND named.written = kept.written)) AS wanted
            WHERE {table}.rowid = id
              AND {table}.node IS DISTINCT FROM CASE WHEN place = 1 THEN wanted.node END"""
    ).fetchall()
    return bool(n_changed)


def names_told(connection: duckdb.DuckDBPyConnection) -> set[tuple[str, str, str, str]]:
    """What people must know of names: cluster, name, node and rule.

    The rule of hosts that only logs name is `in_logs_alone`.
    """
    return set(connection.execute(
        """SELECT cluster, written, node, rule FROM node_names WHERE n_records > 0
           UNION ALL
           SELECT cluster, node, node, 'in_logs_alone' FROM nodes WHERE role = 'unknown'"""
    ).fetchall())  # fmt: skip


def _named(
    seen: Collection[Written], stated: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, str, str, str, str, int]]:
    """The rows of `node_names`."""
    by_cluster: dict[str, list[Written]] = defaultdict(list)
    for one in seen:
        by_cluster[one.cluster].append(one)
    for cluster, rows in by_cluster.items():
        places: dict[str, int] = {}
        sources: dict[str, set[str]] = defaultdict(set)
        n_records: dict[str, int] = defaultdict(int)
        for one in rows:
            places[one.name] = min(places.get(one.name, LOG), _PLACES[one.table])
            sources[one.name].add(one.table)
            n_records[one.name] += one.n_records
        for name, identity in identities(places, stated).items():
            written = ", ".join(sorted(sources[name]))
            yield cluster, name, identity.node, identity.rule, written, n_records[name]
