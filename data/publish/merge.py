"""Laying new rows into the tables of a snapshot so that the order of files never matters.

Rows are inserted, then of each key one stays: the one that ended later, then the greater row hash.
What a record is worth, and so the result, depends on the set of records alone. Few new rows cost
what they are few: of the old rows those count that may share a key with them, and what came and
went is kept for the stages (`Touched`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.hostlist import HostListError, expand
from data.publish.followed import follow
from data.tables import records
from data.tables.jobs import FINAL_STATES, JOBS

if TYPE_CHECKING:
    import duckdb

    from data.tables import Records

_FINAL = "(state IN (" + ", ".join(f"'{state}'" for state in FINAL_STATES) + "))"
_JOB_NODES_COLUMNS = "cluster, attempt_key, node, n_gpus, start_at, end_at"
KEPT_ROWS = 100_000
"""A merge of more rows counts as a change of the whole table."""


class Touched:
    """Temporary tables `touched_<table>`: rows that came or went, and which (`gone`).

    A row stands there as its source states it: what is set at publish was not set when it came. A
    row that came and went again stands there twice.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._kept: set[str] = set()
        self._whole: set[str] = set()

    @property
    def tables(self) -> set[str]:
        """Tables of which every row that came or went is kept; nodes of jobs go with their job."""
        return (self._kept | ({"job_nodes"} if "jobs" in self._kept else set())) - self._whole

    def keep(self, table: str, where: str, *, gone: bool) -> None:
        """Keeps the rows of a table that fulfil a condition."""
        if table in self._whole:
            return
        self._connection.execute(
            f"""CREATE TEMP TABLE IF NOT EXISTS touched_{table} AS
                SELECT *, false AS gone FROM {table} LIMIT 0"""
        )
        self._connection.execute(
            f"INSERT INTO touched_{table} SELECT *, {gone} FROM {table} WHERE {where}"
        )
        self._kept.add(table)

    def forget(self, tables: set[str]) -> None:
        """Says that rows of these tables came or went that are not kept."""
        self._whole |= tables | ({"job_nodes"} if "jobs" in tables else set())


def merge(
    connection: duckdb.DuckDBPyConnection, table: str, rows: str, touched: Touched | None = None
) -> dict[str, int]:
    """Merges the relation `rows` into `table`; rows added or changed, by table.

    Call it inside a transaction: row ids tell new rows from old ones. What comes and goes is kept
    in `touched`.
    """
    rule = records()[table]
    (top,) = connection.execute(f"SELECT coalesce(max(rowid), -1) FROM {table}").fetchall()[0]
    changed = _insert(connection, rule, rows)
    if touched is not None and (top < 0 or changed > KEPT_ROWS):
        touched.forget({table})
    alike = _alike(connection, rule, top)
    if top >= 0:
        ((n_known,),) = connection.execute(  # new rows that stand there already, to the letter
            f"""DELETE FROM {table} WHERE rowid > {top} AND {rule.content} IN (
                  SELECT {rule.content} FROM {table} WHERE rowid <= {top} AND {alike})"""
        ).fetchall()
        changed -= n_known
    find = _FINDS.get(table, _find_superseded)
    if find(connection, rule, top, alike):
        if touched is not None:
            old = f"rowid IN (SELECT id FROM superseded WHERE id <= {top})"
            touched.keep(table, old, gone=True)
        connection.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT id FROM superseded)")
        left = f"SELECT count(*) FROM {table} WHERE rowid > {top}"
        ((changed,),) = connection.execute(left).fetchall()
    n_job_nodes = _insert_job_nodes(connection, top) if table == "jobs" else 0
    if touched is not None:
        touched.keep(table, f"rowid > {top}", gone=False)
    counts = {table: changed}
    counts |= {"job_nodes": n_job_nodes} if n_job_nodes else {}
    return counts | follow(connection, table, top, touched)


def _insert(connection: duckdb.DuckDBPyConnection, rule: Records, rows: str) -> int:
    """Inserts by name, and says how many; columns that the source lacks become NULL.

    A job is a run of its own until the rule of runs says otherwise (`data.stages.runs`).
    """
    present = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()]
    stated = {
        name: f'CAST("{name}" AS {column.type})'
        for name, column in rule.columns.items()
        if name in present
    }
    if rule is JOBS:
        ids = [name for name in ("job_id", "attempt_key") if name in present]
        stated["run_id"] = f"coalesce({', '.join(ids)})"
    values = ", ".join(f'{value} AS "{name}"' for name, value in stated.items())
    ((n_rows,),) = connection.execute(
        f"INSERT INTO {rule.name} BY NAME SELECT {values} FROM {rows}"
    ).fetchall()
    return int(n_rows)


def _alike(connection: duckdb.DuckDBPyConnection, rule: Records, top: int) -> str:
    """Condition of the rows that may share a key with a new one: of jobs, their submission."""
    if top < 0:
        return "true"
    key, near = ", ".join(rule.value(name) for name in rule.key), "true"
    if rule is JOBS:
        key, near = _SUBMISSION, _submitted(connection, f"FROM jobs WHERE rowid > {top}")
    return f"{near} AND hash({key}) IN (SELECT hash({key}) FROM {rule.name} WHERE rowid > {top})"


def _submitted(connection: duckdb.DuckDBPyConnection, rows: str) -> str:
    """Condition of jobs submitted while these rows were, by which DuckDB skips most of a table."""
    ((first, last, known),) = connection.execute(
        f"""SELECT CAST(min(submit_at) AS VARCHAR), CAST(max(submit_at) AS VARCHAR),
              count(*) = count(submit_at) {rows}"""
    ).fetchall()
    if first is None:
        return "submit_at IS NULL"
    between = f"submit_at BETWEEN TIMESTAMPTZ '{first}' AND TIMESTAMPTZ '{last}'"
    return between if known else f"({between} OR submit_at IS NULL)"


def _find_superseded(
    connection: duckdb.DuckDBPyConnection, rule: Records, top: int, alike: str
) -> int:
    """Temporary table superseded: all but the best row of each key that got a new one; how many."""
    key = ", ".join(rule.value(name) for name in rule.key)
    ((n_busy,),) = connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE busy AS
            SELECT hash({key}) AS key_hash FROM {rule.name} WHERE {alike} GROUP BY 1
            HAVING count(*) > 1 AND max(rowid) > {top}"""
    ).fetchall()
    if n_busy == 0:
        return 0
    last = "".join(
        f""", last_value("{name}" IGNORE NULLS) OVER (PARTITION BY {key} ORDER BY rowid
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS "last_{name}" """
        for name in rule.stated
    )
    later = f'"{rule.weight}" IS NOT NULL, ' if rule.weight else ""
    later += "".join(f'"{name}" IS NULL, "{name}" <> "last_{name}", ' for name in rule.stated)
    later += f'"{rule.later}" DESC NULLS LAST, ' if rule.later else ""
    ((n_superseded,),) = connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE superseded AS
            SELECT id FROM (
              SELECT id, row_number() OVER (
                PARTITION BY {key} ORDER BY {later} {rule.content} DESC, id
              ) AS place
              FROM (
                SELECT rowid AS id, *{last} FROM {rule.name}
                WHERE hash({key}) IN (SELECT key_hash FROM busy)))
            WHERE place > 1"""
    ).fetchall()
    return int(n_superseded)


_SUBMISSION = "cluster, job_id, submit_at"


def _find_superseded_jobs(
    connection: duckdb.DuckDBPyConnection, _: Records, top: int, alike: str
) -> int:
    """Temporary table superseded: all but the best record of each attempt; how many.

    A pending or running record gives way to a final one. Records of one job and submit are compared
    by finality (final, started, pending); of one start a record with SLUID stands for one without;
    of one key the later end, then the greater hash. Nodes of the old records in it go at once.
    """
    named = f"sluid IN (SELECT sluid FROM jobs WHERE rowid > {top})" if top >= 0 else "true"
    (n_busy,) = connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE busy AS
            SELECT hash({_SUBMISSION}) AS submission, submit_at FROM jobs WHERE {alike}
            GROUP BY ALL HAVING count(*) > 1 AND max(rowid) > {top}
            UNION
            SELECT hash({_SUBMISSION}), submit_at FROM jobs WHERE sluid IN (
              SELECT sluid FROM jobs WHERE sluid IS NOT NULL AND {named} GROUP BY sluid
              HAVING count(*) > 1 AND max(rowid) > {top})"""
    ).fetchall()[0]
    if n_busy == 0:
        return 0
    ((n_superseded,),) = connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE superseded AS
            WITH record AS (
              SELECT rowid AS id, *, CASE WHEN {_FINAL} THEN 2
                WHEN start_at IS NOT NULL THEN 1 ELSE 0 END AS finality,
                {JOBS.content} AS content
              FROM jobs WHERE {_submitted(connection, "FROM busy")}
                AND hash({_SUBMISSION}) IN (SELECT submission FROM busy)),
            ranked AS (
              SELECT *, finality < max(finality) OVER (
                  PARTITION BY cluster, job_id, submit_at) AS outdated FROM record),
            named AS (
              SELECT *, outdated OR (sluid IS NULL AND bool_or(sluid IS NOT NULL AND NOT outdated)
                OVER (PARTITION BY cluster, job_id, submit_at, start_at)) AS gone FROM ranked),
            placed AS (
              SELECT *, row_number() OVER (PARTITION BY cluster, attempt_key, gone
                ORDER BY end_at DESC NULLS LAST, content DESC, id) AS place FROM named)
            SELECT id, cluster, attempt_key FROM placed WHERE gone OR place > 1"""
    ).fetchall()
    connection.execute(
        f"""DELETE FROM job_nodes WHERE (cluster, attempt_key) IN (
              SELECT cluster, attempt_key FROM superseded WHERE id <= {top})"""
    )
    return int(n_superseded)


def _find_superseded_events(
    connection: duckdb.DuckDBPyConnection, rule: Records, top: int, alike: str
) -> int:
    """Temporary table superseded: the same, and all records of older versions of a burst."""
    if not _find_superseded(connection, rule, top, alike):
        connection.execute("CREATE OR REPLACE TEMP TABLE superseded (id BIGINT)")
    connection.execute(
        f"""INSERT INTO superseded
            WITH changed AS (
              SELECT cluster, burst, max(burst_version) AS newest FROM health_events
              WHERE burst IN (SELECT burst FROM health_events WHERE rowid > {top})
              GROUP BY ALL HAVING min(burst_version) < newest)
            SELECT event.rowid FROM health_events event JOIN changed
              ON changed.burst = event.burst AND changed.cluster IS NOT DISTINCT FROM event.cluster
            WHERE burst_version < newest AND event.rowid NOT IN (SELECT id FROM superseded)"""
    )
    ((n_superseded,),) = connection.execute("SELECT count(*) FROM superseded").fetchall()
    return int(n_superseded)


_FINDS = {"jobs": _find_superseded_jobs, "health_events": _find_superseded_events}
"""Table -> what finds its superseded rows, where that is no matter of the key alone."""


def _insert_job_nodes(connection: duckdb.DuckDBPyConnection, top: int) -> int:
    """Nodes of the attempts that are new or changed; each distinct list is expanded once."""
    import pyarrow as pa

    rows = connection.execute(
        f"SELECT DISTINCT node_list FROM jobs WHERE rowid > {top} AND node_list IS NOT NULL"
    ).fetchall()
    lists = [node_list for (node_list,) in rows]
    hosts = pa.array([_hosts(text) for text in lists], pa.list_(pa.string()))
    connection.register(
        "expanded", pa.table({"node_list": pa.array(lists, pa.string()), "hosts": hosts})
    )
    connection.execute(  # a table: DuckDB would make them distinct for each attempt
        """CREATE OR REPLACE TEMP TABLE host_lists AS
           SELECT node_list, list_distinct(hosts) AS hosts FROM expanded WHERE len(hosts) > 0"""
    )
    (n_rows,) = connection.execute(
        f"""INSERT INTO job_nodes ({_JOB_NODES_COLUMNS})
            SELECT cluster, attempt_key, unnest(hosts),
              CASE WHEN n_gpus % len(hosts) = 0 THEN n_gpus // len(hosts) END, start_at, end_at
            FROM jobs JOIN host_lists USING (node_list) WHERE jobs.rowid > {top}"""
    ).fetchall()[0]
    connection.execute("DROP TABLE host_lists")
    connection.unregister("expanded")
    return int(n_rows)


def _hosts(text: str) -> list[str]:
    """Hosts of a list; none where it is broken, so that the attempt itself is not lost."""
    try:
        return expand(text)
    except HostListError:
        return []
