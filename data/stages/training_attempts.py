"""Which attempt of a job logged a training step, and which run a straggler trace is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = ("jobs", "jobs.run_id", "training_metrics", "straggler_traces")
WRITES = ("training_metrics.attempt_key", "training_metrics.run_id", "straggler_traces.cluster",
          "straggler_traces.run_id")  # fmt: skip
NEEDS = ("training_metrics", "straggler_traces")
CONCERNS = {
    "jobs": """SELECT 1 FROM training_metrics AS row JOIN (
      SELECT cluster, unnest([job_id, job_id_raw, run_id]) AS name FROM touched_jobs
    ) AS job ON row.cluster = job.cluster AND coalesce(row.job_id, row.run_id) = name
    UNION ALL SELECT 1 FROM straggler_traces JOIN touched_jobs USING (job_id)"""
}

SLACK = "INTERVAL 1 MINUTE"
"""By how much a row may lie outside of its attempt: clocks of nodes and scheduler differ."""


def run(connection: duckdb.DuckDBPyConnection, _: Context) -> None:
    """Sets the attempts and runs of logged steps, the clusters and runs of traces."""
    _place_steps(connection)
    _place_traces(connection)


def _place_steps(connection: duckdb.DuckDBPyConnection) -> None:
    """Sets the attempt of each logged step, and the run of each that names a job only.

    A row belongs to the job it names, else to the job and the run whose id its run_id is; of their
    attempts to the one during which it was logged. A minute before and after an attempt counts as
    part of it; between two attempts nearer to each other the middle divides. NULL where the store
    has no such job, or the job did not run then. A row may name the id as users see it, or, of a
    task of an array, the raw one. One without a time is of the job's attempt where one alone
    started, and of its run where its attempts are in one.
    """
    _windows(connection)
    connection.execute(
        """UPDATE training_metrics SET attempt_key = joined.attempt_key, run_id = joined.run_id
           FROM (
             SELECT id,
               CASE WHEN logged_at IS NULL THEN sole.attempt_key
                 WHEN logged_at <= to_at THEN attempt.attempt_key END AS attempt_key,
               CASE WHEN job_id IS NULL THEN row.run_id
                 WHEN logged_at IS NULL THEN sole.run_id
                 WHEN logged_at <= to_at THEN attempt.run_id END AS run_id
             FROM (SELECT rowid AS id, cluster, job_id, run_id, coalesce(job_id, run_id) AS name,
                     job_id IS NULL AS by_run, logged_at FROM training_metrics) AS row
             ASOF LEFT JOIN training_windows AS attempt
               ON row.cluster = attempt.cluster AND row.name = attempt.name
                 AND row.by_run = attempt.by_run AND row.logged_at >= attempt.from_at
             LEFT JOIN (
               SELECT cluster, name, by_run,
                 CASE WHEN count(*) = 1 THEN min(attempt_key) END AS attempt_key,
                 CASE WHEN count(DISTINCT run_id) = 1 THEN min(run_id) END AS run_id
               FROM training_windows GROUP BY ALL) AS sole
               ON row.logged_at IS NULL AND row.cluster = sole.cluster AND row.name = sole.name
                 AND row.by_run = sole.by_run) AS joined
           WHERE training_metrics.rowid = joined.id
             AND (training_metrics.attempt_key IS DISTINCT FROM joined.attempt_key
               OR training_metrics.run_id IS DISTINCT FROM joined.run_id)"""
    )


def _place_traces(connection: duckdb.DuckDBPyConnection) -> None:
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


def _windows(connection: duckdb.DuckDBPyConnection) -> None:
    """Table training_windows: when each attempt of the jobs that rows name may have logged."""
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE training_windows AS
            WITH named AS (
              SELECT DISTINCT cluster, coalesce(job_id, run_id) AS name, job_id IS NULL AS by_run
              FROM training_metrics),
            candidate AS (
              SELECT named.name, by_run, 1 AS place, jobs.* FROM named JOIN jobs
                ON jobs.cluster = named.cluster AND jobs.job_id = named.name
              UNION ALL
              SELECT named.name, by_run, 1, jobs.* FROM named JOIN jobs
                ON by_run AND jobs.cluster = named.cluster AND jobs.run_id = named.name
              WHERE jobs.job_id IS DISTINCT FROM named.name
              UNION ALL
              SELECT named.name, by_run, 2, jobs.* FROM named JOIN jobs
                ON jobs.cluster = named.cluster AND jobs.job_id_raw = named.name),
            best AS (
              SELECT cluster, name, by_run, attempt_key, run_id, start_at, end_at FROM candidate
              WHERE start_at IS NOT NULL
              QUALIFY place = min(place) OVER (PARTITION BY cluster, name, by_run)),
            ordered AS (
              SELECT *, lag(end_at) OVER earlier AS left_at, lead(start_at) OVER earlier AS next_at
              FROM best
              WINDOW earlier AS (
                PARTITION BY cluster, name, by_run ORDER BY start_at, attempt_key))
            SELECT cluster, name, by_run, attempt_key, run_id,
              CASE WHEN left_at > start_at THEN start_at
                ELSE greatest(start_at - {SLACK}, left_at + (start_at - left_at) / 2)
              END AS from_at,
              coalesce(end_at + {SLACK}, next_at, TIMESTAMPTZ 'infinity') AS to_at
            FROM ordered"""
    )
