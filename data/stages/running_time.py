"""Running time of attempts by day: sums of what pages would add up from millions of rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from data import running_time
from data.running_time import days_held

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = ("jobs", "jobs.node_gpus", "clusters")
WRITES = ("running_time",)
CARRIES = ("running_time",)
INPUTS = ("data.running_time",)
NEEDS = ("jobs",)

_KIND = "cluster, partition, n_gpus, n_nodes, node_gpus"


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> dict[str, object]:
    """Fills the table, or adds and takes off the time of attempts that came and went; notes the
    zones in which days were told, and whether there are so many attempts that sums are kept.

    Whole microseconds add up to the same either way. What clusters have besides a zone changes
    nothing here. Attempts that came have no `node_gpus` yet: where any has, all are summed.
    """
    zones = dict(
        connection.execute("SELECT cluster, timezone FROM clusters ORDER BY ALL").fetchall()
    )
    ((n_jobs,),) = connection.execute("SELECT count(*) FROM jobs").fetchall()
    if n_jobs < running_time.LEAST_JOBS:
        connection.execute("DELETE FROM running_time")
        return {"zones": zones, "kept": False}
    by_row = (
        context.by_row("jobs", besides=("clusters", "jobs.node_gpus"))
        and _kept_in_zones(connection).items() <= zones.items()
        and not _unlike(connection)
    )
    if not by_row:
        connection.execute("DELETE FROM running_time")
        _insert(connection, _summed("jobs", "false"))
    elif "jobs" in context.touched:
        connection.execute(
            f"""CREATE OR REPLACE TEMP TABLE ran AS
                SELECT {_KIND}, day, CAST(sum(running_us) AS BIGINT) AS running_us
                FROM ({_summed("touched_jobs", "gone")}) GROUP BY ALL"""
        )
        days = "day BETWEEN (SELECT min(day) FROM ran) AND (SELECT max(day) FROM ran)"
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE ran_before AS FROM running_time WHERE {days}"
        )
        connection.execute(f"DELETE FROM running_time WHERE {days}")
        _insert(connection, "FROM ran UNION ALL FROM ran_before")
    return {"zones": zones, "kept": True}


def _kept_in_zones(connection: duckdb.DuckDBPyConnection) -> dict[str, str | None]:
    """The zone of each cluster in which days were told last; one that nothing is like where none
    were kept."""
    ((notes,),) = connection.execute(
        "SELECT notes FROM stage_runs WHERE stage = 'running_time'"
    ).fetchall()
    known = json.loads(notes)
    return dict(known["zones"]) if known.get("kept", True) else {"": None}


def _unlike(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether an attempt had, or has, nodes of other GPUs than most of its cluster."""
    found = connection.execute(
        """SELECT 1 FROM jobs WHERE node_gpus IS NOT NULL
           UNION ALL SELECT 1 FROM running_time WHERE node_gpus IS NOT NULL LIMIT 1"""
    )
    return found.fetchone() is not None


def _summed(jobs: str, gone: str) -> str:
    """Time by kind and day of the attempts of a table, less than nothing of those that went."""
    return f"""
        WITH attempt AS MATERIALIZED (
          SELECT {_KIND}, {gone} AS gone, epoch_us(start_at) AS begin_us,
            epoch_us(end_at) AS end_us
          FROM {jobs} WHERE start_at IS NOT NULL AND end_at IS NOT NULL),
        {days_held(f"{_KIND}, gone")}
        SELECT {_KIND}, DATE '1970-01-01' + CAST(day AS INTEGER) AS day,
          CASE WHEN gone THEN -running_us ELSE running_us END AS running_us FROM held"""


def _insert(connection: duckdb.DuckDBPyConnection, rows: str) -> None:
    """Adds up rows alike, and keeps what is left."""
    connection.execute(
        f"""INSERT INTO running_time BY NAME
            SELECT {_KIND}, day, CAST(sum(running_us) AS BIGINT) AS running_us
            FROM ({rows}) GROUP BY ALL HAVING sum(running_us) <> 0
            ORDER BY cluster, day, partition, n_gpus, n_nodes, node_gpus"""
    )
