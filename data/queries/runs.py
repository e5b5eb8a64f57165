"""One run: its attempts, and what its training metrics and traces say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.interrupted import ELIGIBLE_S, RAN_S, SEVERAL_NODES, WAITED_S, interrupted

if TYPE_CHECKING:
    import pandas as pd

    from data.store import Store

_RUN = "cluster = $cluster AND run_id = $run"
_JOBS = f"(SELECT rowid, * FROM jobs WHERE {_RUN})"


def clusters_of(store: Store, run_id: str) -> list[str]:
    """Clusters with a run of this id."""
    rows = store.rows(
        "SELECT DISTINCT cluster FROM jobs WHERE run_id = $run ORDER BY ALL", {"run": run_id}
    )
    return [cluster for (cluster,) in rows]


def run_of_job(store: Store, job_id: str) -> list[tuple[str, str]]:
    """Cluster and id of the runs that a job is part of."""
    return [
        (cluster, run)
        for cluster, run in store.rows(
            """SELECT DISTINCT cluster, run_id FROM jobs
               WHERE job_id = $job AND run_id IS NOT NULL ORDER BY ALL""",
            {"job": job_id},
        )
    ]


def attempts_of(store: Store, cluster: str, run_id: str) -> pd.DataFrame:
    """Attempts of a run in order of time, with their verdicts and living incidents.

    Beside columns of `jobs`: `eligible_s`, `start_s` (seconds since the epoch), `waited_s`, `ran_s`
    (NULL without GPUs), `several`, `interrupted`, `bucket` (of what an interruption lost), `cause`,
    `domain`, `node`, `incident_id`.
    """
    return store.frame(
        f"""WITH {interrupted(_JOBS)},
            attempt AS (
              SELECT jobs.rowid AS id, cluster, attempt_key, job_id, attempt, name, "user", account,
                partition, state, n_nodes, jobs.n_gpus, submit_at, eligible_at, start_at, end_at,
                {ELIGIBLE_S} AS eligible_s,
                epoch_us(start_at) // 1000000 AS start_s,
                {WAITED_S} AS waited_s,
                CASE WHEN jobs.n_gpus > 0 AND basis = 'gpu_time' THEN {RAN_S} END AS ran_s,
                coalesce({SEVERAL_NODES}, false) AS several
              FROM {_JOBS} jobs JOIN (
                SELECT cluster, basis, gpus_per_node, epoch_us(as_of_at) // 1000000 AS end_s
                FROM clusters) USING (cluster)),
            loss AS (
              SELECT id, min(bucket) AS bucket, min(cause) AS room_for FROM interrupted
              GROUP BY id),
            told AS (
              SELECT key AS attempt_key, min(incident_id) AS incident_id
              FROM incident_members JOIN incidents USING (incident_id)
              WHERE kind IN ('failure', 'preemption') AND NOT retired AND cluster = $cluster
                AND key IN (SELECT attempt_key FROM attempt)
              GROUP BY key)
            SELECT attempt.* EXCLUDE (id), bucket, bucket IS NOT NULL AS interrupted,
              coalesce(verdict.cause, room_for) AS cause, verdict.domain, verdict.node, incident_id
            FROM attempt LEFT JOIN loss USING (id)
            LEFT JOIN verdict USING (cluster, attempt_key)
            LEFT JOIN told USING (attempt_key)
            ORDER BY coalesce(attempt.start_at, attempt.end_at, attempt.submit_at),
              attempt.submit_at, attempt_key""",
        _of(cluster, run_id),
    )


def metrics_of(store: Store, cluster: str, run_id: str) -> pd.DataFrame:
    """Logged steps of the attempts of a run, the columns that tell its progress."""
    return store.frame(
        f"""SELECT cluster, attempt_key, step, rank, logged_at, step_time_s, checkpoint_event,
              checkpoint_s
            FROM training_metrics
            SEMI JOIN (FROM jobs WHERE {_RUN}) USING (cluster, attempt_key)""",
        _of(cluster, run_id),
    )


def _of(cluster: str, run_id: str) -> dict[str, str]:
    return {"cluster": cluster, "run": run_id}
