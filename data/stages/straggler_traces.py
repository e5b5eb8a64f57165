"""The jobs and runs that stored straggler traces are of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = ("straggler_traces", "jobs", "jobs.run_id")
WRITES = ("straggler_traces.cluster", "straggler_traces.run_id")
NEEDS = ("straggler_traces",)


def run(connection: duckdb.DuckDBPyConnection, _: Context) -> None:
    """Sets cluster and run of each trace whose job the store knows in one cluster.

    A job is a run of its own, named by its id, until the ledger has joined it to others. Where a
    job's attempts are in several runs, the one during which it was traced says the run.
    """
    connection.execute(
        """UPDATE straggler_traces SET cluster = known.cluster FROM (
             SELECT job_id, min(cluster) AS cluster FROM jobs
             WHERE job_id IN (SELECT job_id FROM straggler_traces WHERE cluster IS NULL)
             GROUP BY job_id HAVING count(DISTINCT cluster) = 1) AS known
           WHERE straggler_traces.cluster IS NULL AND straggler_traces.job_id = known.job_id"""
    )
    connection.execute(
        """UPDATE straggler_traces SET run_id = traced.run_id FROM (
             SELECT trace_id, CASE WHEN count(DISTINCT jobs.run_id) = 1 THEN min(jobs.run_id)
               WHEN count(DISTINCT jobs.run_id) FILTER (during) = 1
               THEN min(jobs.run_id) FILTER (during) END AS run_id
             FROM (SELECT trace_id, coalesce(jobs.run_id, job_id) AS run_id,
                     traced_at >= jobs.start_at
                       AND traced_at <= coalesce(jobs.end_at, traced_at) AS during
                   FROM straggler_traces JOIN jobs USING (cluster, job_id)) AS jobs
             GROUP BY trace_id) AS traced
           WHERE straggler_traces.trace_id = traced.trace_id
             AND straggler_traces.run_id IS DISTINCT FROM traced.run_id"""
    )
