"""Laying new rows into the tables of a snapshot so that the order of files never matters.

Rows are inserted, then of each key one stays: the one that ended later, then the greater row hash.
What a record is worth, and so the result, depends on the set of records alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.ingest.hostlist import HostListError, expand
from data.ingest.sacct_fields import FINAL_STATES
from data.publish.schema import tables

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Rule:
    """How rows of one table are told apart."""

    key: tuple[str, ...]
    later: str | None = None
    """Of rows with one key the one with the later value of this column wins; NULL is earliest."""
    derived: tuple[str, ...] = ()
    """Columns set at publish: they do not tell rows apart."""
    stated: tuple[str, ...] = ()
    """Before `later`, one wins that states these columns, the first of them above all; of two
    statements the one that came last, so that a person can correct it."""
    derived_with: tuple[str, str] | None = None
    """A column of the key that is set at publish where the second column holds a value."""

    def value(self, column: str) -> str:
        """What of a column tells rows apart."""
        if self.derived_with is None or column != self.derived_with[0]:
            return f'"{column}"'
        return f'(CASE WHEN "{self.derived_with[1]}" IS NULL THEN "{column}" END)'


RULES = {
    "jobs": Rule(("cluster", "attempt_key"), "end_at", ("attempt", "run_id")),
    "nodes": Rule(("cluster", "node", "first_seen_at"), "last_seen_at"),
    "node_facts": Rule(("cluster", "node", "gpu", "key", "from_at"), "to_at"),
    "node_events": Rule(("cluster", "node", "start_at"), "end_at"),
    "node_failures": Rule(("cluster", "failure_key"), "end_at"),
    "health_events": Rule(("cluster", "event_id"), "observed_at", ("severity",)),
    "tickets": Rule(("cluster", "ticket_id"), "closed_at"),
    "job_logs": Rule(("cluster", "job_id", "file", "line_no"), "logged_at", ("attempt_key",)),
    "training_metrics": Rule(
        ("cluster", "run_id", "job_id", "step", "rank", "logged_at", "checkpoint_event"),
        derived=("attempt_key",),
        derived_with=("run_id", "job_id"),
    ),
    "straggler_traces": Rule(
        ("trace_id",),
        stated=("job_id", "n_gpus", "cluster"),
        derived=(
            "run_id",
            "n_steps",
            "n_dropped_steps",
            "slowdown",
            "wasted_ratio",
            "cause",
            "results",
        ),
    ),
}
_FINAL = "(state IN (" + ", ".join(f"'{state}'" for state in FINAL_STATES) + "))"
_JOB_NODES_COLUMNS = "cluster, attempt_key, node, n_gpus, start_at, end_at"


def merge(connection: duckdb.DuckDBPyConnection, table: str, rows: str) -> dict[str, int]:
    """Merges the relation `rows` into `table`; rows added or changed, by table.

    Call it inside a transaction: row ids tell new rows from old ones.
    """
    rule = RULES[table]
    (top,) = connection.execute(f"SELECT coalesce(max(rowid), -1) FROM {table}").fetchall()[0]
    _insert(connection, table, rows)
    _drop_repeats(connection, table, rule, top)
    if table == "jobs":
        _drop_superseded_jobs(connection, top)
        n_job_nodes = _refresh_job_nodes(connection, top)
    else:
        n_job_nodes = 0
        _drop_superseded(connection, table, rule, top)
    ((changed,),) = connection.execute(
        f"SELECT count(*) FROM {table} WHERE rowid > {top}"
    ).fetchall()
    counts = {table: changed}
    return counts | {"job_nodes": n_job_nodes} if n_job_nodes else counts


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: str) -> None:
    """Inserts by name; columns that the source lacks become NULL.

    A job is a run of its own until the rule of runs says otherwise (`data.derive.runs`).
    """
    present = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()]
    kinds = tables()[table].columns
    stated = {name: f'CAST("{name}" AS {kinds[name]})' for name in kinds if name in present}
    if table == "jobs":
        ids = [name for name in ("job_id", "attempt_key") if name in present]
        stated["run_id"] = f"coalesce({', '.join(ids)})"
    names = ", ".join(f'"{name}"' for name in stated)
    values = ", ".join(stated.values())
    connection.execute(f"INSERT INTO {table} ({names}) SELECT {values} FROM {rows}")


def _content_hash(table: str, rule: Rule) -> str:
    """Hash over all columns that the source states."""
    columns = [rule.value(name) for name in tables()[table].columns if name not in rule.derived]
    return f"hash({', '.join(columns)})"


def _drop_repeats(connection: duckdb.DuckDBPyConnection, table: str, rule: Rule, top: int) -> None:
    """Removes new rows that stand in the table already, to the letter."""
    if top < 0:
        return
    content = _content_hash(table, rule)
    connection.execute(
        f"""DELETE FROM {table} WHERE rowid > {top}
            AND {content} IN (SELECT {content} FROM {table} WHERE rowid <= {top})"""
    )


def _drop_superseded(
    connection: duckdb.DuckDBPyConnection, table: str, rule: Rule, top: int
) -> None:
    """Keeps the best row of each key that got a new one."""
    key = ", ".join(rule.value(name) for name in rule.key)
    last = "".join(
        f""", last_value("{name}" IGNORE NULLS) OVER (PARTITION BY {key} ORDER BY rowid
              ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS "last_{name}" """
        for name in rule.stated
    )
    later = "".join(f'"{name}" IS NULL, "{name}" <> "last_{name}", ' for name in rule.stated)
    later += f'"{rule.later}" DESC NULLS LAST, ' if rule.later else ""
    connection.execute(
        f"""DELETE FROM {table} WHERE rowid IN (
              SELECT id FROM (
                SELECT id, row_number() OVER (
                  PARTITION BY {key} ORDER BY {later} {_content_hash(table, rule)} DESC, id
                ) AS place
                FROM (
                  SELECT rowid AS id, *{last} FROM {table} WHERE hash({key}) IN (
                    SELECT hash({key}) FROM {table} GROUP BY 1
                    HAVING count(*) > 1 AND max(rowid) > {top})))
              WHERE place > 1)"""
    )


def _drop_superseded_jobs(connection: duckdb.DuckDBPyConnection, top: int) -> None:
    """Keeps of each attempt its best record; a pending or running one gives way to a final one.

    Records of one job and submit are compared by finality (final, started, pending); of one start
    a record with SLUID stands for one without; of one key the later end, then the greater hash.
    """
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE superseded AS
            WITH busy AS (
              SELECT hash(cluster, job_id, submit_at) FROM jobs GROUP BY 1
              HAVING count(*) > 1 AND max(rowid) > {top}
              UNION
              SELECT hash(cluster, job_id, submit_at) FROM jobs WHERE sluid IN (
                SELECT sluid FROM jobs WHERE sluid IS NOT NULL GROUP BY sluid
                HAVING count(*) > 1 AND max(rowid) > {top})),
            record AS (
              SELECT rowid AS id, *, CASE WHEN {_FINAL} THEN 2
                WHEN start_at IS NOT NULL THEN 1 ELSE 0 END AS finality,
                {_content_hash("jobs", RULES["jobs"])} AS content
              FROM jobs WHERE hash(cluster, job_id, submit_at) IN (FROM busy)),
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
    )
    connection.execute("DELETE FROM jobs WHERE rowid IN (SELECT id FROM superseded)")


def _refresh_job_nodes(connection: duckdb.DuckDBPyConnection, top: int) -> int:
    """Nodes of the attempts that are new or changed; those of superseded records go."""
    connection.execute(
        f"""DELETE FROM job_nodes WHERE (cluster, attempt_key) IN (
              SELECT cluster, attempt_key FROM superseded WHERE id <= {top})"""
    )
    _expand_node_lists(connection, top)
    (n_rows,) = connection.execute(
        f"""INSERT INTO job_nodes ({_JOB_NODES_COLUMNS})
            SELECT cluster, attempt_key, unnest(hosts),
              CASE WHEN n_gpus % len(hosts) = 0 THEN n_gpus // len(hosts) END, start_at, end_at
            FROM jobs JOIN host_lists USING (node_list) WHERE jobs.rowid > {top}"""
    ).fetchall()[0]
    return int(n_rows)


def _expand_node_lists(connection: duckdb.DuckDBPyConnection, top: int) -> None:
    """Temporary table host_lists: each distinct list of the new attempts, expanded once."""
    import pyarrow as pa

    lists = [
        row[0]
        for row in connection.execute(
            f"SELECT DISTINCT node_list FROM jobs WHERE rowid > {top} AND node_list IS NOT NULL"
        ).fetchall()
    ]
    expanded = [_hosts(text) for text in lists]
    connection.register(
        "host_list_rows",
        pa.table({"node_list": pa.array(lists, pa.string()),
                  "hosts": pa.array(expanded, pa.list_(pa.string()))}),
    )  # fmt: skip
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE host_lists AS "
        "SELECT node_list, list_distinct(hosts) AS hosts FROM host_list_rows WHERE len(hosts) > 0"
    )
    connection.unregister("host_list_rows")


def _hosts(text: str) -> list[str]:
    """Hosts of a list; none where it is broken, so that the attempt itself is not lost."""
    try:
        return expand(text)
    except HostListError:
        return []
