"""Totals of all time: what pages would add up from millions of rows where no period is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from data import running_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

    from data.stages import Context

READS = ("jobs", "job_nodes")
WRITES = ("node_totals", "state_totals")
CARRIES = WRITES
INPUTS = ("data.running_time",)
NEEDS = ("jobs",)

_RAN_US = "greatest(0, epoch_us(end_at) - epoch_us(start_at))"
_KEYS: Final = {"node_totals": "cluster, node", "state_totals": "cluster, partition, state"}
_EACH: Final = {
    "node_totals": f"""
      SELECT cluster, node, coalesce(n_gpus, 0) * {_RAN_US} AS gpu_us, {_RAN_US} AS node_us
      FROM job_nodes WHERE start_at IS NOT NULL AND end_at IS NOT NULL AND {{came}}""",
    "state_totals": f"""
      SELECT cluster, partition, state, 1 AS n_attempts,
        CASE WHEN start_at IS NULL THEN 0 ELSE 1 END AS n_started,
        CASE WHEN start_at IS NULL OR n_gpus IS NULL THEN 0 ELSE 1 END AS n_sized,
        CASE WHEN start_at IS NULL THEN 0 ELSE coalesce(n_gpus, 0) * ({_RAN_US} // 1000000) END
          AS gpu_seconds
      FROM jobs WHERE end_at IS NOT NULL AND {{came}}""",
}
"""What each attempt that ended adds to a total."""
_CAME = """end_at BETWEEN $first AND $last AND (cluster, attempt_key) IN (
  SELECT cluster, attempt_key FROM touched_jobs)"""


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> dict[str, object]:
    """Fills the tables, or adds the attempts that came; notes whether there are so many that totals
    are kept.

    Where an attempt that had ended went, all are added up anew: its nodes are no longer known.
    """
    ((n_jobs,),) = connection.execute("SELECT count(*) FROM jobs").fetchall()
    kept = n_jobs >= running_time.LEAST_JOBS
    ended = _ended(connection, context)
    for table, each in _EACH.items():
        if not kept or ended is None:
            connection.execute(f"DELETE FROM {table}")
        if kept and ended is None:
            _insert(connection, table, each.format(came="true"))
        elif kept and ended:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE totals_before AS FROM {table}")
            connection.execute(f"DELETE FROM {table}")
            rows = f"FROM totals_before UNION ALL BY NAME {each.format(came=_CAME)}"
            _insert(connection, table, rows, ended)
    return {"kept": kept}


def _ended(connection: duckdb.DuckDBPyConnection, context: Context) -> dict[str, Any] | None:
    """When the attempts that came ended, first and last; nothing where none had. None where totals
    of before cannot be brought up to date."""
    if not context.by_row("jobs", "job_nodes") or "state_totals" not in context.filled:
        return None
    if "jobs" not in context.touched:
        return {}
    ((went, first, last),) = connection.execute(
        """SELECT bool_or(gone), min(end_at), max(end_at) FROM touched_jobs
           WHERE end_at IS NOT NULL"""
    ).fetchall()
    if went:
        return None
    return {} if first is None else {"first": first, "last": last}


def _insert(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    rows: str,
    times: Mapping[str, Any] | None = None,
) -> None:
    """Adds up rows."""
    keys = _KEYS[table]
    connection.execute(
        f"""INSERT INTO {table} BY NAME
            SELECT {keys}, sum(COLUMNS(* EXCLUDE ({keys}))) FROM ({rows}) GROUP BY {keys}
            ORDER BY {keys}""",
        times,
    )
