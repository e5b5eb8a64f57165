"""Attempts of a period with what ended them and whose node it was, to be played again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from data.definitions import INFRASTRUCTURE
from data.filters import Filter
from data.interrupted import RAN_S, SEVERAL_NODES, WAITED_S, interrupted
from data.said import ARRANGED

if TYPE_CHECKING:
    import pandas as pd

    from data.filters import Selection
    from data.store import Store

_ENDED = Filter(within="end_at", n_gpus="n_gpus")
_FAILED = Filter(columns=("cluster",), within="failed_at")
"""Verdicts on attempts that end in the period."""
_TOLD = replace(_FAILED, within="struck_at")
_RAN = Filter(of="jobs", overlaps=("start_at", "end_at"), n_gpus="jobs.n_gpus")
_CAPACITY = Filter(columns=("cluster",))


def attempts(store: Store, selection: Selection, *, incidents: bool = False) -> pd.DataFrame:
    """Attempts with GPUs of the period: those on several nodes, and all that were interrupted; with
    `incidents` alone those that infrastructure failed or that are of an incident, which no other
    attempt is: they are few, and looked up one by one.

    Columns: `cluster`, `run_id`, `name`, `n_gpus`, `several`, `ran_s`, `counted_s` (of it within
    the period), `bucket` and `cause` of what an interruption within the period lost (NULL where
    there was none), `node` (at fault; of an attempt that had to make room, of the failure whose
    requeue took its place), `implicated` (all nodes at fault: of its own nodes those that its
    incident names, and `node`), `event` (a number that attempts of one incident share, and no
    other), `again` (the run went on with another attempt), `waited_s` (how long that one waited),
    and what the run's training metrics show: `interval_s`, `write_s`, `restart_s`.
    """
    ended = f"""ended AS {"" if incidents else "NOT "}MATERIALIZED (
      SELECT rowid, cluster, attempt_key, state, end_at FROM jobs
      WHERE {_ENDED.where(selection)} AND n_gpus > 0)"""
    of_incident = """bucket = 'lost_work' OR id IN (
      SELECT ended.rowid FROM ended SEMI JOIN told
        ON told.cluster = ended.cluster AND told.attempt_key = ended.attempt_key
        AND struck_at = end_at)"""
    return store.frame(
        f"""WITH {ARRANGED}, {ended}, {interrupted("ended", failed=_FAILED.where(selection))},
            told AS (
              SELECT cluster, key AS attempt_key, incident_members.start_at AS struck_at,
                min(incident_id) AS incident_id
              FROM incident_members JOIN incidents USING (incident_id)
              WHERE kind IN ('failure', 'preemption') AND NOT retired GROUP BY ALL),
            numbered AS (
              SELECT cluster, attempt_key, incident_id,
                dense_rank() OVER (ORDER BY incident_id) AS n FROM told),
            of_period AS (FROM told WHERE {_TOLD.where(selection)}),
            fellow AS MATERIALIZED (
              FROM told WHERE incident_id IN (SELECT incident_id FROM of_period)),
            loss AS (
              SELECT id, min(bucket) AS bucket, min(cause) AS cause FROM interrupted
              WHERE {of_incident if incidents else "true"} GROUP BY id),
            blamed AS (
              SELECT cluster, attempt_key, node FROM verdict
              WHERE {INFRASTRUCTURE} AND node IS NOT NULL AND {_FAILED.where(selection)}),
            at_fault AS (
              SELECT incident_id, min(node) AS node
              FROM fellow JOIN (
                SELECT cluster, attempt_key, failed_at AS struck_at, node FROM verdict
                WHERE {INFRASTRUCTURE} AND node IS NOT NULL) USING (cluster, attempt_key, struck_at)
              GROUP BY incident_id HAVING count(DISTINCT node) = 1),
            clock AS (
              SELECT cluster, gpus_per_node, epoch_us(as_of_at) // 1000000 AS end_s
              FROM clusters WHERE basis = 'gpu_time'),
            broken AS (
              SELECT DISTINCT cluster, run_id FROM jobs
              WHERE {_ENDED.where(selection)} AND rowid IN (SELECT id FROM loss)
                AND run_id IS NOT NULL),
            on_several AS MATERIALIZED (
              SELECT of_period.*, CAST(nodes AS VARCHAR[]) AS nodes
              FROM of_period JOIN incidents USING (incident_id)
              WHERE nodes_named AND len(CAST(nodes AS VARCHAR[])) > 1),
            faulty AS (
              SELECT told.cluster, told.attempt_key,
                list_sort(list(DISTINCT job_nodes.node)) AS nodes
              FROM on_several told JOIN job_nodes ON job_nodes.cluster = told.cluster
                AND job_nodes.attempt_key = told.attempt_key AND job_nodes.end_at = struck_at
              WHERE list_contains(told.nodes, job_nodes.node)
              GROUP BY ALL),
            shown AS (
              SELECT cluster, run_id, checkpoint_interval_s, checkpoint_write_s, restart_s
              FROM job_runs),
            following AS (
              SELECT jobs.rowid AS id, lead(start_at) OVER next IS NOT NULL AS again,
                lead({WAITED_S}) OVER next AS waited_s
              FROM jobs JOIN clock USING (cluster) SEMI JOIN broken USING (cluster, run_id)
              WHERE n_gpus > 0
              WINDOW next AS (PARTITION BY cluster, run_id
                ORDER BY coalesce(start_at, submit_at), attempt_key))
            SELECT jobs.cluster, jobs.run_id, jobs.name,
              CAST(jobs.n_gpus AS BIGINT) AS n_gpus, coalesce({SEVERAL_NODES}, false) AS several,
              {RAN_S} AS ran_s,
              greatest(0, epoch(least(coalesce(jobs.end_at, make_timestamptz(end_s * 1000000)),
                $to_at) - greatest(jobs.start_at, $from_at))) AS counted_s,
              bucket, loss.cause,
              CASE WHEN bucket IS NULL THEN NULL
                WHEN bucket = 'lost_work' THEN blamed.node ELSE at_fault.node END AS node,
              CASE WHEN bucket = 'lost_work' AND blamed.node IS NOT NULL THEN
                list_distinct(list_append(faulty.nodes, blamed.node)) END AS implicated,
              coalesce(-told.n, jobs.rowid) AS event,
              coalesce(again, false) AS again, following.waited_s,
              checkpoint_interval_s AS interval_s, checkpoint_write_s AS write_s, restart_s
            FROM jobs JOIN clock USING (cluster)
            {"JOIN" if incidents else "LEFT JOIN"} loss ON loss.id = jobs.rowid
            LEFT JOIN following ON following.id = jobs.rowid
            LEFT JOIN numbered told
              ON told.cluster = jobs.cluster AND told.attempt_key = jobs.attempt_key
            LEFT JOIN blamed
              ON blamed.cluster = jobs.cluster AND blamed.attempt_key = jobs.attempt_key
            LEFT JOIN faulty
              ON faulty.cluster = jobs.cluster AND faulty.attempt_key = jobs.attempt_key
            LEFT JOIN at_fault ON at_fault.incident_id = told.incident_id
            LEFT JOIN shown ON shown.cluster = jobs.cluster AND shown.run_id = jobs.run_id
            WHERE jobs.start_at IS NOT NULL AND jobs.n_gpus > 0 AND {_RAN.where(selection)}
              AND (several OR bucket IS NOT NULL)
            ORDER BY jobs.start_at, jobs.cluster, jobs.attempt_key""",
        selection.parameters,
    )


def node_gpus(store: Store, selection: Selection) -> pd.DataFrame:
    """GPUs of each node, or of a node of its cluster where none are listed."""
    return store.frame(
        f"""SELECT cluster, node, coalesce(arg_max(gpus, first_seen_at), any_value(gpus_per_node))
              AS gpus
            FROM nodes JOIN clusters USING (cluster)
            WHERE node IS NOT NULL AND {_CAPACITY.where(selection)}
            GROUP BY cluster, node ORDER BY cluster, node""",
        selection.parameters,
    )
