"""The ordinal of each attempt within its job."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = ("jobs",)
WRITES = ("jobs.attempt",)
NEEDS = ("jobs",)


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Numbers attempts by submission; only jobs with several or other attempts are sorted."""
    due = """hash(cluster, job_id) IN (SELECT hash(cluster, job_id) FROM jobs GROUP BY 1
      HAVING count(*) > 1 OR max(attempt) > 1)"""
    if context.by_row("jobs"):
        due = """rowid IN (
          SELECT jobs.rowid FROM jobs SEMI JOIN touched_jobs USING (cluster, job_id)
          UNION ALL
          SELECT rowid FROM jobs WHERE cluster IS NULL OR job_id IS NULL)"""
    connection.execute(
        f"""UPDATE jobs SET attempt = new.place FROM (
             SELECT rowid AS id, row_number() OVER (
               PARTITION BY cluster, job_id
               ORDER BY submit_at NULLS LAST, start_at NULLS LAST, attempt_key) AS place
             FROM jobs WHERE {due}) AS new
           WHERE jobs.rowid = new.id AND attempt IS DISTINCT FROM new.place"""
    )
    connection.execute("UPDATE jobs SET attempt = 1 WHERE attempt IS NULL")
