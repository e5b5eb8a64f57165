"""The tables of the ledger: `gpu_time` by day and bucket, `job_runs` by run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from analytics.reliability.failure_rate import size_label
from data.interrupted import WAITED_S

if TYPE_CHECKING:
    import duckdb

    from data.stages.ledger.attempts import AttemptRows


def write_ledger(
    connection: duckdb.DuckDBPyConnection, held: AttemptRows, rest: pd.DataFrame
) -> None:
    """Fills `gpu_time` with the rows of attempts and of the fleet, by day."""
    sizes = [
        n for (n,) in connection.execute("SELECT DISTINCT n_gpus FROM ledger_group").fetchall()
    ]
    classes = pd.DataFrame({"n_gpus": sizes, "size_class": [size_label(n) for n in sizes]})
    connection.register("ledger_size", classes.astype({"n_gpus": "int64"}))
    connection.register("attempt_time", held.daily)
    connection.register("fleet_time", rest)
    connection.execute(
        """INSERT INTO gpu_time BY NAME
           WITH summed AS (
             SELECT day, "group", loss, part, sum(gpu_seconds) AS gpu_seconds,
               sum(lower_gpu_seconds) AS lower_gpu_seconds,
               sum(upper_gpu_seconds) AS upper_gpu_seconds,
               sum(variance_gpu_s2) AS variance_gpu_s2, sum(n_attempts) AS n_attempts,
               sum(rule_gpu_seconds) AS rule_gpu_seconds
             FROM attempt_time GROUP BY ALL)
           SELECT DATE '1970-01-01' + CAST(day AS INTEGER) AS day, cluster, partition, account,
             size_class, n_gpus, coalesce(ledger_loss.bucket, part) AS bucket, cause,
             CAST(gpu_seconds AS BIGINT) AS gpu_seconds,
             CAST(least(floor(lower_gpu_seconds), gpu_seconds) AS BIGINT) AS lower_gpu_seconds,
             CAST(greatest(ceil(upper_gpu_seconds), gpu_seconds) AS BIGINT) AS upper_gpu_seconds,
             variance_gpu_s2, CAST(n_attempts AS BIGINT) AS n_attempts,
             CAST(rule_gpu_seconds AS BIGINT) AS rule_gpu_seconds
           FROM summed JOIN ledger_group ON ledger_group.code = summed.group
           JOIN ledger_size USING (n_gpus)
           LEFT JOIN ledger_loss ON ledger_loss.code = summed.loss
           WHERE gpu_seconds > 0 OR upper_gpu_seconds > 0 OR rule_gpu_seconds IS NOT NULL
           ORDER BY day, cluster"""
    )
    connection.execute(
        """INSERT INTO gpu_time BY NAME
           SELECT DATE '1970-01-01' + CAST(day AS INTEGER) AS day, cluster, bucket, gpu_seconds,
             gpu_seconds AS lower_gpu_seconds, gpu_seconds AS upper_gpu_seconds,
             0.0 AS variance_gpu_s2
           FROM fleet_time WHERE gpu_seconds > 0 ORDER BY day, cluster, bucket"""
    )
    connection.unregister("ledger_size")
    connection.unregister("attempt_time")
    connection.unregister("fleet_time")


def write_runs(connection: duckdb.DuckDBPyConnection, held: AttemptRows) -> None:
    """Fills `job_runs` from jobs and from the parts of their attempts.

    Runs on several nodes are listed, with all their attempts. `queued_s` is the time that attempts
    were eligible and waited, `scheduled_s` the time that they ran; attempts without GPUs have no
    share in the sums. `queued_s` is unknown where an attempt started and nothing says since when
    it waited. A run rests on training metrics where all its attempts that ran do.
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
