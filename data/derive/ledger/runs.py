"""The table job_runs: what each run waited for, held and got done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.interrupted import WAITED_S

if TYPE_CHECKING:
    import duckdb

    from data.derive.ledger.attempts import AttemptRows


def write_runs(connection: duckdb.DuckDBPyConnection, held: AttemptRows) -> None:
    """Fills `job_runs` from jobs and from the parts of their attempts.

    Listed are runs on several nodes, with all their attempts. Queued is what an attempt was
    eligible and waited, scheduled what it ran; attempts without GPUs have no share in the sums.
    Queued is unknown where an attempt started and nothing says since when it waited. A run rests on
    training metrics where all its attempts that ran do.
    """
    connection.register("attempt_parts", held.parts)
    connection.register("shown_habits", held.run_habits)
    connection.execute(
        f"""INSERT INTO job_runs BY NAME
           WITH listed AS (
             SELECT DISTINCT cluster, run_id FROM jobs JOIN attempt_parts ON id = jobs.rowid
           ),
           attempt AS (
             SELECT cluster, run_id, job_id, name, "user", account,
               partition, submit_at, start_at, end_at, state, n_gpus, n_nodes, ledger_loss.bucket,
               parts.* EXCLUDE (id),
               {WAITED_S} AS waited_s
             FROM jobs JOIN ledger_window USING (cluster)
             SEMI JOIN listed USING (cluster, run_id)
             LEFT JOIN attempt_parts parts ON parts.id = jobs.rowid
             LEFT JOIN attempt_loss ON attempt_loss.id = jobs.rowid
             LEFT JOIN ledger_loss USING (code)),
           run AS (
             SELECT cluster, run_id, min(name) AS name, min("user") AS "user",
               min(account) AS account, arg_max(partition, submit_at) AS partition,
               min(submit_at) AS first_submit_at, min(start_at) AS first_start_at,
               CASE WHEN count(end_at) = count(*) THEN max(end_at) END AS last_end_at,
               CAST(count(DISTINCT job_id) AS INTEGER) AS n_jobs,
               CAST(count(*) AS INTEGER) AS n_attempts, max(n_gpus) AS n_gpus,
               max(n_nodes) AS n_nodes,
               CAST(count(bucket) AS INTEGER) AS n_interruptions,
               CAST(count(*) FILTER (bucket = 'lost_work') AS INTEGER) AS n_failures,
               CASE WHEN count(*) = count(waited_s) THEN CAST(sum(waited_s) AS BIGINT) END
                 AS queued_s,
               CAST(sum(ran_s) AS BIGINT) AS scheduled_s,
               CAST(sum(startup_s) AS BIGINT) AS startup_s,
               CAST(sum(checkpoint_s) AS BIGINT) AS checkpoint_s,
               CAST(sum(lost_s) AS BIGINT) AS lost_s,
               CAST(sum(productive_s) AS BIGINT) AS productive_s,
               CAST(sum(lower_productive_s) AS BIGINT) AS lower_productive_s,
               CAST(sum(upper_productive_s) AS BIGINT) AS upper_productive_s,
               sum(variance_s2) AS variance_productive_s2,
               CASE WHEN bool_and(measured) FILTER (ran_s > 0) THEN 'training_metrics'
                 ELSE any_value(basis) END AS basis
             FROM attempt GROUP BY cluster, run_id)
           SELECT run.*, coalesce(joined_by, CASE WHEN n_attempts > 1 THEN 'requeue'
               ELSE 'single' END) AS joined_by,
             checkpoint_interval_s, checkpoint_write_s, restart_s
           FROM run LEFT JOIN run_links USING (cluster, run_id)
           LEFT JOIN shown_habits USING (cluster, run_id)"""
    )
    connection.unregister("attempt_parts")
    connection.unregister("shown_habits")
