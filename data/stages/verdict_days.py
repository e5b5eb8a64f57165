"""Verdicts by day: sums of what pages would add up from a million rows of `failures`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from data import running_time
from data.running_time import local
from data.stages import failures
from data.verdict_days import ALIKE, EACH

if TYPE_CHECKING:
    from datetime import date

    import duckdb

    from data.stages import Context

READS = ("failures", "clusters", *failures.READS)
WRITES = ("verdict_days",)
CARRIES = ("verdict_days",)
INPUTS = ("data.verdict_days", "data.running_time", "data.stages.failures", *failures.INPUTS)
NEEDS = ("failures",)

_OBSERVED = frozenset({"health_events", "node_events"})


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> dict[str, object]:
    """Fills the table, or sums those days anew on which attempts that came or went ended; notes
    the zones in which days were told, and whether there are so many attempts that sums are kept.

    What was observed of nodes is weighed by all attempts: where anything was, verdicts of any day
    may be others.
    """
    ((n_jobs,),) = connection.execute("SELECT count(*) FROM jobs").fetchall()
    if n_jobs < running_time.LEAST_JOBS:
        if "verdict_days" in context.filled:
            connection.execute("DELETE FROM verdict_days")
        return {"zones": {}, "kept": False}
    zones = dict(
        connection.execute("SELECT cluster, timezone FROM clusters ORDER BY ALL").fetchall()
    )
    by_day = (
        context.by_row("jobs", "job_nodes", besides=("clusters", "failures"))
        and not context.filled & _OBSERVED
        and _kept_in_zones(connection).items() <= zones.items()
    )
    if not by_day:
        connection.execute("DELETE FROM verdict_days")
        _insert(connection, "true", "true")
    elif days := _days_touched(connection):
        these = "day BETWEEN $first AND $last"
        connection.execute(f"DELETE FROM verdict_days WHERE {these}", days)
        _insert(connection, _NEAR, these, days)
    return {"zones": zones, "kept": True}


_NEAR = """failed_at BETWEEN timezone('UTC', CAST($first AS TIMESTAMP)) - INTERVAL 1 DAY
  AND timezone('UTC', CAST($last AS TIMESTAMP)) + INTERVAL 2 DAY"""
"""Failures on some days wherever their cluster stands, and few others."""


def _kept_in_zones(connection: duckdb.DuckDBPyConnection) -> dict[str, str | None]:
    """The zone of each cluster in which days were told last; one that nothing is like where none
    were kept."""
    ((notes,),) = connection.execute(
        "SELECT notes FROM stage_runs WHERE stage = 'verdict_days'"
    ).fetchall()
    known: dict[str, Any] = json.loads(notes) if notes else {"kept": False}
    return {**known["zones"]} if known["kept"] else {"": None}


def _days_touched(connection: duckdb.DuckDBPyConnection) -> dict[str, date]:
    """The first and the last day on which attempts that came or went ended; none where none did."""
    ((first, last),) = connection.execute(
        f"""SELECT min(day), max(day) FROM (
              SELECT CAST({local("end_at")} AS DATE) AS day
              FROM touched_jobs JOIN clusters USING (cluster))"""
    ).fetchall()
    return {} if first is None else {"first": first, "last": last}


def _insert(
    connection: duckdb.DuckDBPyConnection,
    near: str,
    which: str,
    days: dict[str, date] | None = None,
) -> None:
    """Adds up failures alike of the days that a condition names."""
    connection.execute(
        f"""INSERT INTO verdict_days BY NAME
            SELECT {ALIKE}, day, count(*) AS n_attempts, sum(n_started) AS n_started,
              sum(gpu_seconds) AS gpu_seconds
            FROM (SELECT {EACH} FROM (
                SELECT * EXCLUDE (job_start_at), job_partition AS partition, job_gpus AS n_gpus,
                  job_nodes AS n_nodes, job_start_at AS start_at FROM failures
              ) JOIN clusters USING (cluster) WHERE failed_at IS NOT NULL AND {near})
            WHERE {which} GROUP BY ALL ORDER BY day, cluster""",
        days,
    )
