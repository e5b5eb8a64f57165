"""Which attempts were interrupted, and how long they ran: SQL that the ledger and runs share."""

from __future__ import annotations

from data.definitions import INFRASTRUCTURE
from data.said import VERDICTS


def interrupted(jobs: str = "jobs", *, failed: str = "true") -> str:
    """Common tables up to `interrupted`: attempts that infrastructure, preemption or a requeue
    ended, by row id in jobs, with the bucket of what they lost and the cause where it is known;
    `jobs` is the table, or a query in brackets for some of its rows, and `failed` a condition on
    verdicts that all of these meet: the database then reads few.
    """
    return f"""{VERDICTS},
struck AS (
  SELECT jobs.rowid AS id, 'lost_work' AS bucket, nullif(cause, 'unknown') AS cause
  FROM {jobs} jobs JOIN (
    FROM verdict WHERE {INFRASTRUCTURE} AND {failed}
  ) counted USING (cluster, attempt_key)),
made_room AS (
  SELECT incidents.cluster, key AS attempt_key, min(cause) AS cause
  FROM incident_members JOIN incidents USING (incident_id)
  WHERE kind = 'preemption' AND NOT retired GROUP BY ALL),
interrupted AS (
  FROM struck
  UNION ALL
  SELECT jobs.rowid,
    CASE state WHEN 'PREEMPTED' THEN 'lost_work_preempted' ELSE 'other' END,
    made_room.cause
  FROM {jobs} jobs LEFT JOIN made_room USING (cluster, attempt_key)
  WHERE state IN ('PREEMPTED', 'REQUEUED') AND jobs.rowid NOT IN (SELECT id FROM struck))
"""


KEEP_ATTEMPTS = """SELECT DISTINCT one.cluster FROM jobs one JOIN (
    SELECT cluster, job_id, attempt FROM jobs WHERE attempt > 1) later USING (cluster, job_id)
  WHERE one.attempt < later.attempt AND one.state IN ('REQUEUED', 'PREEMPTED', 'NODE_FAIL')"""
"""Clusters whose records keep attempts that a requeue ended: sacct does with `--duplicates`."""
SACCT_ALONE = """SELECT DISTINCT unnest(string_split(cluster, ',')) AS cluster FROM ingests
  WHERE source IN ('sacct', 'sacct-json', 'reduced-jobs')
    AND NOT contains(coalesce(command, ''), '--preset xdmod')
    AND command IS DISTINCT FROM 'faultline collect'"""
"""Clusters of which sacct was read, but for what Open XDMoD's helper and `faultline collect` had it
write: both ask for every attempt."""

RAN_S = """greatest(least(coalesce(epoch_us(end_at) // 1000000, end_s), end_s)
  - epoch_us(start_at) // 1000000, 0)"""
"""Seconds that an attempt ran, up to the end `end_s` of what the records tell."""

ELIGIBLE_S = """epoch_us(coalesce(eligible_at, CASE WHEN start_at IS NOT NULL THEN submit_at END))
  // 1000000"""
"""When an attempt became eligible, seconds since the epoch; of one that started its submission
where nothing else is known. NULL of one that never became eligible, e.g. one that was held."""

WAITED_S = f"""CASE WHEN start_at IS NULL AND eligible_at IS NULL THEN 0 ELSE
  CASE WHEN {ELIGIBLE_S} IS NOT NULL THEN greatest(0,
    coalesce(epoch_us(coalesce(start_at, end_at)) // 1000000, end_s) - {ELIGIBLE_S}) END END"""
"""Seconds that an attempt was eligible and waited, up to the end `end_s` of what the records tell;
NULL where it started and nothing says since when it waited."""

BY_RULE = """CAST(jobs.n_gpus AS BIGINT) * least(1800, greatest(0,
  epoch_us(jobs.end_at) // 1000000 - epoch_us(jobs.start_at) // 1000000))"""
"""GPU-seconds that the RSC paper takes an interrupted attempt to lose (papers.md A7)."""

SEVERAL_NODES = "n_nodes > 1 OR jobs.n_gpus > coalesce(jobs.node_gpus, gpus_per_node)"
"""Whether an attempt has the habits of jobs on several nodes."""
