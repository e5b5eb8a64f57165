"""Which attempt of a job a log belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = ("jobs", "job_logs")
WRITES = ("job_logs.attempt_key",)
NEEDS = ("job_logs",)
CONCERNS = {
    "jobs": """SELECT 1 FROM job_logs JOIN (
      SELECT cluster, unnest([job_id, job_id_raw]) AS job_id FROM touched_jobs
    ) USING (cluster, job_id)"""
}

EARLY, LATE = "INTERVAL 1 MINUTE", "INTERVAL 5 MINUTE"
"""By how much the last line of a log may lie outside of its attempt."""


def run(connection: duckdb.DuckDBPyConnection, _: Context) -> None:
    """Sets the attempt of each log that names a job; NULL where the store has no such job.

    Of several attempts it is the one during which the log's last dated line was written, else
    the one around it, else the last one. A log may name the id as users see it, or, of a task of
    an array, the raw one.
    """
    connection.execute(
        f"""UPDATE job_logs SET attempt_key = joined.attempt_key FROM (
              WITH log AS (
                SELECT cluster, job_id, file, max(logged_at) AS last_at
                FROM job_logs WHERE job_id IS NOT NULL GROUP BY ALL),
              candidate AS (
                SELECT log.*, jobs.attempt_key, jobs.start_at, jobs.end_at, true AS as_seen
                FROM log JOIN jobs USING (cluster, job_id)
                UNION ALL
                SELECT log.*, jobs.attempt_key, jobs.start_at, jobs.end_at, false
                FROM log JOIN jobs ON jobs.cluster = log.cluster AND jobs.job_id_raw = log.job_id
                  AND jobs.job_id <> log.job_id),
              placed AS (
                SELECT *, row_number() OVER (
                  PARTITION BY cluster, job_id, file ORDER BY as_seen DESC,
                    coalesce(last_at BETWEEN start_at AND coalesce(end_at, 'infinity'), false) DESC,
                    coalesce(last_at BETWEEN start_at - {EARLY}
                      AND coalesce(end_at, 'infinity') + {LATE}, false) DESC,
                    start_at DESC NULLS LAST, attempt_key) AS place FROM candidate)
              SELECT log.cluster, log.job_id, log.file, placed.attempt_key
              FROM log LEFT JOIN (FROM placed WHERE place = 1) AS placed
                USING (cluster, job_id, file)) AS joined
            WHERE job_logs.cluster = joined.cluster AND job_logs.job_id = joined.job_id
              AND job_logs.file = joined.file
              AND job_logs.attempt_key IS DISTINCT FROM joined.attempt_key"""
    )
