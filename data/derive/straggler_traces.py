"""The jobs and runs that stored straggler traces are of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.ingest import METRICS
from data.ingest.straggler_trace import FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import duckdb


def join_traces(connection: duckdb.DuckDBPyConnection, root: Path) -> None:
    """Finds the run of each trace, and removes files of traces that the snapshot does not name.

    `timed_traces` are those of a known cluster and time.
    """
    link_traces(connection)
    _prune(connection, root)
    connection.execute(
        """CREATE OR REPLACE TEMP VIEW timed_traces AS
           FROM straggler_traces WHERE cluster IS NOT NULL AND traced_at IS NOT NULL"""
    )


def link_traces(connection: duckdb.DuckDBPyConnection) -> None:
    """Cluster and run of each trace whose job the store knows in one cluster.

    A job is a run of its own, named by its id, until the ledger has joined it to others. Of several
    attempts in several runs, the one during which it was traced says the run.
    """
    connection.execute(
        """UPDATE straggler_traces SET cluster = known.cluster FROM (
             SELECT job_id, min(cluster) AS cluster FROM jobs
             WHERE job_id IN (SELECT job_id FROM straggler_traces WHERE cluster IS NULL)
             GROUP BY job_id HAVING count(DISTINCT cluster) = 1) AS known
           WHERE straggler_traces.cluster IS NULL AND straggler_traces.job_id = known.job_id"""
    )
    connection.execute(
        """UPDATE straggler_traces SET run_id = found.run_id FROM (
             SELECT trace_id, CASE WHEN count(DISTINCT jobs.run_id) = 1 THEN min(jobs.run_id)
               WHEN count(DISTINCT jobs.run_id) FILTER (during) = 1
               THEN min(jobs.run_id) FILTER (during) END AS run_id
             FROM (SELECT trace_id, coalesce(jobs.run_id, job_id) AS run_id,
                     traced_at >= jobs.start_at
                       AND traced_at <= coalesce(jobs.end_at, traced_at) AS during
                   FROM straggler_traces JOIN jobs USING (cluster, job_id)) AS jobs
             GROUP BY trace_id) AS found
           WHERE straggler_traces.trace_id = found.trace_id
             AND straggler_traces.run_id IS DISTINCT FROM found.run_id"""
    )


def dsp_size(row: Mapping[str, Any]) -> int:
    """Data-sequence-parallel size: what the GPUs of the job leave for it; 1 where unknown."""
    sizes = [row[name] for name in ("dp", "pp", "tp")]
    if row["n_gpus"] is None or None in sizes:
        return 1
    n_traced = 1
    for size in sizes:
        n_traced *= int(size or 1)
    return int(row["n_gpus"]) // n_traced


def _prune(connection: duckdb.DuckDBPyConnection, root: Path) -> None:
    """Removes files of traces that no row names."""
    folder = root / METRICS / FOLDER
    if not folder.is_dir():
        return
    kept = {path for (path,) in connection.execute("SELECT path FROM straggler_traces").fetchall()}
    for file in folder.iterdir():
        if f"{FOLDER}/{file.name}" not in kept:
            file.unlink()
