"""Which attempts were interrupted, and how long they ran: SQL that the ledger and runs share."""

from __future__ import annotations

from data.said import VERDICTS


def interrupted(jobs: str = "jobs") -> str:
    """Common tables up to `interrupted`: attempts that infrastructure, preemption or a requeue
    ended, by row id in jobs, with the bucket of what they lost and the cause where it is known;
    `jobs` is the table, or a query in brackets for some of its rows.
    """
    return f"""{VERDICTS},
struck AS (
  SELECT jobs.rowid AS id, 'lost_work' AS bucket, nullif(cause, 'unknown') AS cause
  FROM {jobs} jobs JOIN (
    FROM verdict WHERE domain IN ('hardware', 'system_software') OR node_lost
  ) counted USING (cluster, attempt_key)),
made_room AS (
  SELECT incidents.cluster, key AS attempt_key, any_value(cause) AS cause
  FROM incident_members JOIN incidents USING (incident_id)
  WHERE kind = 'preemption' GROUP BY ALL),
interrupted AS (
  FROM struck
  UNION ALL
  SELECT jobs.rowid,
    CASE state WHEN 'PREEMPTED' THEN 'lost_work_preempted' ELSE 'other' END,
    made_room.cause
  FROM {jobs} jobs LEFT JOIN made_room USING (cluster, attempt_key)
  WHERE state IN ('PREEMPTED', 'REQUEUED') AND jobs.rowid NOT IN (SELECT id FROM struck))
"""


RAN_S = """greatest(least(coalesce(epoch_us(end_at) // 1000000, end_s), end_s)
  - epoch_us(start_at) // 1000000, 0)"""
"""Seconds that an attempt ran, up to the end `end_s` of what the records tell."""

WAITED_S = """epoch_us(greatest(coalesce(start_at, end_at), eligible_at)) // 1000000
  - epoch_us(coalesce(eligible_at, submit_at)) // 1000000"""
"""Seconds that an attempt was eligible and waited; below 0 where its records contradict."""

SEVERAL_NODES = "n_nodes > 1 OR jobs.n_gpus > gpus_per_node"
"""Whether an attempt has the habits of jobs on several nodes."""
