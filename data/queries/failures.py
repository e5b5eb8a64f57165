"""What failed, why, and what each verdict rests on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from data.definitions import FAILED_BY
from data.filters import Filter, Selection, equal, of_cluster
from data.queries.exposure import node_failures_of
from data.queries.verdict_sums import verdicts_alike
from data.queries.whole_days import of_all_time
from data.running_time import local
from data.said import FAILED_ATTEMPTS, SAID, VERDICTS

if TYPE_CHECKING:
    import pandas as pd

    from data.store import Store

_OF_NODES = "cluster IN (SELECT cluster FROM clusters WHERE basis IS DISTINCT FROM 'gpu_time')"
_ENDED = Filter(
    of="jobs",
    within="jobs.end_at",
    n_gpus="jobs.n_gpus",
    unsized=f"jobs.{_OF_NODES}",
)
"""Attempts by their end; of a cluster without GPUs those of every size, as in its exposure."""

_RUNS_ON = replace(_ENDED, within=None)
_FAILED = replace(_ENDED, of="", within="failed_at", n_gpus="n_gpus", unsized=_OF_NODES)
_TOTAL = Filter(columns=("cluster", "partition"))
_ALIKE = Filter(columns=(), n_gpus="n_gpus", unsized=_OF_NODES)
_OF_CLUSTER = Filter(of="jobs", columns=("cluster",))
_RAN_THERE = Filter(columns=(), overlaps=("job_nodes.start_at", "job_nodes.end_at"))
_RECORDED_THEN = Filter(
    columns=(),
    overlaps=(
        "start_at",
        """CASE WHEN end_at IS NOT NULL OR kind NOT IN ('node_event', 'ticket')
             THEN coalesce(end_at, start_at) END""",
    ),
    undated=True,
)
"""Records of a node; an outage or ticket without an end goes on, any other record is a moment."""

_GPU_SECONDS = """CASE WHEN start_at IS NULL THEN 0
  WHEN basis IS DISTINCT FROM 'gpu_time' THEN NULL ELSE n_gpus
  * (greatest(0, epoch_us({end}) - epoch_us(start_at)) // 1000000) END"""
"""Running time x GPUs up to `end`: 0 where the attempt never began, NULL where its GPUs are unknown
and on a cluster whose jobs state none."""

_GPU_SECONDS_ALIKE = """CASE WHEN basis = 'gpu_time' AND gpu_seconds IS NOT NULL THEN gpu_seconds
  WHEN n_started < n_attempts THEN 0 END"""
"""The same of verdicts alike."""
_EXPOSED = "basis IS DISTINCT FROM 'gpu_time' OR coalesce(n_gpus > 0, false)"


def verdicts_of(selection: Selection) -> str:
    """Common tables up to `chosen`: verdicts of a selection.

    `exposed` tells those whose attempts have exposure: without GPUs an attempt counts in no rate of
    a cluster that has GPUs.
    """
    return f"""{FAILED_ATTEMPTS},
chosen AS (
  SELECT failed_attempt.*, {_GPU_SECONDS.format(end="failed_at")} AS gpu_seconds,
    timezone, {_EXPOSED} AS exposed
  FROM failed_attempt JOIN clusters USING (cluster)
  WHERE failed_at IS NOT NULL AND {_FAILED.where(selection)})
"""


def by_state(store: Store, selection: Selection) -> pd.DataFrame:
    """Attempts that ended: columns state, n_attempts, gpu_seconds (null where unknown);
    the most frequent first."""
    if selection.min_gpus == 0 and of_all_time(store, selection):
        return store.frame(
            f"""SELECT coalesce(state, 'unknown') AS state,
                  CAST(sum(n_attempts) AS BIGINT) AS n_attempts,
                  CAST(sum(CASE WHEN basis = 'gpu_time' AND n_sized > 0 THEN gpu_seconds
                    WHEN n_started < n_attempts THEN 0 END) AS BIGINT) AS gpu_seconds
                FROM state_totals JOIN clusters USING (cluster) WHERE {_TOTAL.where(selection)}
                GROUP BY ALL ORDER BY n_attempts DESC, state""",
            selection.parameters,
        )
    return store.frame(
        f"""SELECT coalesce(state, 'unknown') AS state, count(*) AS n_attempts,
              CAST(sum({_GPU_SECONDS.format(end="end_at")}) AS BIGINT) AS gpu_seconds
            FROM jobs JOIN clusters USING (cluster)
            WHERE end_at IS NOT NULL AND {_ENDED.where(selection)}
            GROUP BY ALL ORDER BY n_attempts DESC, state""",
        selection.parameters,
    )


def running_gpu_seconds(store: Store, selection: Selection) -> float:
    """Running time x GPUs of attempts that had not ended when the period or the records did; NaN
    where it is known of none."""
    ((seconds,),) = store.rows(
        f"""SELECT sum(jobs.n_gpus * (epoch_us(least(as_of_at, $to_at)) - epoch_us(start_at))
                / 1e6) FILTER (basis = 'gpu_time')
            FROM jobs JOIN clusters USING (cluster)
            WHERE start_at < least(as_of_at, $to_at) AND (end_at IS NULL OR end_at >= $to_at)
              AND {_RUNS_ON.where(selection)}""",
        selection.parameters,
    )
    return float("nan") if seconds is None else float(seconds)


def by_cause(store: Store, selection: Selection) -> pd.DataFrame:
    """Verdicts by cause and day.

    Columns cause, domain, day, n_attempts, n_exposed (of them, attempts with exposure), gpu_seconds
    (running time x GPUs; null where the GPUs of none are known).
    """
    verdicts = verdicts_alike(store, selection)
    return store.frame(
        f"""WITH {verdicts.tables}
            SELECT cause, domain, day, CAST(sum(n_attempts) AS BIGINT) AS n_attempts,
              CAST(coalesce(sum(n_attempts) FILTER ({_EXPOSED}), 0) AS BIGINT) AS n_exposed,
              CAST(sum({_GPU_SECONDS_ALIKE}) AS BIGINT) AS gpu_seconds
            FROM alike JOIN clusters USING (cluster) WHERE {_ALIKE.where(selection)}
            GROUP BY ALL ORDER BY ALL""",
        verdicts.parameters,
    )


def verdict_rows(
    store: Store,
    selection: Selection,
    *,
    cause: str | None = None,
    domain: str | None = None,
    counted: bool = False,
    limit: int = 10_000,
) -> pd.DataFrame:
    """One verdict an attempt, the latest first; evidence and alternatives as lists.

    `counted` keeps what the failure rate counts, by the selection's definition.
    """
    attempts = store.frame(
        f"""WITH {verdicts_of(selection)}
            SELECT cluster, failed_at, latest.job_id, jobs.attempt, latest.state, cause, domain,
              confidence, method, symptom, node, latest.n_gpus, latest.n_nodes, latest.partition,
              latest."user", latest.account, jobs.name, latest.start_at,
              gpu_seconds / 3600 AS gpu_hours, evidence, alternatives, attempt_key
            FROM (FROM chosen WHERE {equal(cause=cause, domain=domain)}
              AND {f"exposed AND {FAILED_BY[selection.definition]}" if counted else "true"}
              ORDER BY failed_at DESC, attempt_key LIMIT {int(limit)}) latest
            JOIN jobs USING (cluster, attempt_key) ORDER BY failed_at DESC, attempt_key""",
        selection.parameters | {"cause": cause, "domain": domain},
    )
    for column in ("evidence", "alternatives"):
        attempts[column] = attempts[column].map(json.loads)
    return attempts


def check_calibration(store: Store, selection: Selection) -> pd.DataFrame:
    """How often each check fires around the end of attempts, as of the last publish."""
    return store.frame(
        f"""FROM check_calibration WHERE {equal(cluster=selection.cluster)}
           ORDER BY n_failed_hits DESC, signal, severity""",
        {"cluster": selection.cluster},
    )


def failed_sizes(store: Store, selection: Selection) -> pd.DataFrame:
    """Failed attempts by the nodes they ran on: columns cluster, n_nodes, n_attempts."""
    return store.frame(
        f"""WITH {verdicts_of(selection)}
            SELECT cluster, n_nodes, count(*) AS n_attempts FROM chosen
            WHERE n_nodes >= 1 GROUP BY ALL ORDER BY ALL""",
        selection.parameters,
    )


def confusion(store: Store, selection: Selection) -> pd.DataFrame:
    """Causes that the evidence names beside the right ones: columns basis, actual, found, n.

    Right is what `faultline demo` planted (basis planted) or people decided (basis confirmed).
    """
    return store.frame(
        f"""WITH {verdicts_of(selection)}
            SELECT 'planted' AS basis, planted.cause AS actual, planted.domain AS actual_domain,
              derived_cause AS found, derived_domain AS found_domain, has_event, count(*) AS n
            FROM chosen JOIN planted_causes planted USING (cluster, attempt_key) GROUP BY ALL
            UNION ALL
            SELECT 'confirmed', cause, domain, derived_cause, derived_domain, NULL, count(*)
            FROM chosen WHERE method = 'human' GROUP BY ALL ORDER BY ALL""",
        selection.parameters,
    )


def job_attempts(store: Store, cluster: str | None, job_id: str) -> pd.DataFrame:
    """All attempts of a job, an array task or a whole array, with their verdicts; oldest first."""
    return store.frame(
        f"""WITH {VERDICTS}
            SELECT jobs.*, verdict.cause, verdict.domain, verdict.confidence, verdict.method,
              verdict.symptom, verdict.node, verdict.evidence, verdict.alternatives,
              verdict.derived_cause
            FROM jobs LEFT JOIN verdict USING (cluster, attempt_key)
            WHERE (jobs.job_id = $job OR jobs.array_job_id = $job)
              AND {_OF_CLUSTER.where(Selection(cluster))}
            ORDER BY jobs.cluster, jobs.job_id, jobs.attempt LIMIT 1000""",
        {"job": job_id, "cluster": cluster},
    )


def log_lines(store: Store, cluster: str, attempt_key: str, limit: int = 2000) -> pd.DataFrame:
    """Lines of an attempt's log: columns file, line_no, logged_at, node, rank, text."""
    return store.frame(
        f"""SELECT file, line_no, logged_at, node, rank, text FROM job_logs
            WHERE cluster = $cluster AND attempt_key = $attempt
            ORDER BY file, line_no LIMIT {int(limit)}""",
        {"cluster": cluster, "attempt": attempt_key},
    )


def said_of(store: Store, kind: str, key: str) -> pd.DataFrame:
    """What people said about a target and still holds, of a node under any of its names: columns
    field, value.
    """
    return store.frame(
        f"""WITH {SAID} SELECT field, value FROM said WHERE kind = $kind AND (key = $key OR
              kind = 'node' AND key IN (SELECT cluster || '/' || written FROM node_names
                                        WHERE cluster || '/' || node = $key)) ORDER BY ALL""",
        {"kind": kind, "key": key},
    )


def node_attempts(
    store: Store, cluster: str | None, node: str, selection: Selection
) -> pd.DataFrame:
    """Attempts that ran on a node in the period, with their verdicts, the latest first."""
    return store.frame(
        f"""WITH {VERDICTS}
            SELECT jobs.job_id, jobs.attempt, jobs.state, jobs.start_at, jobs.end_at, jobs.n_gpus,
              jobs.n_nodes, jobs."user", jobs.account, jobs.name, verdict.cause, verdict.domain,
              verdict.node IS NOT DISTINCT FROM $node AND verdict.cause IS NOT NULL AS here,
              attempt_key
            FROM job_nodes JOIN jobs USING (cluster, attempt_key)
            LEFT JOIN verdict USING (cluster, attempt_key)
            WHERE job_nodes.{of_cluster(cluster)} AND job_nodes.node = $node
              AND {_RAN_THERE.where(selection)}
            ORDER BY jobs.start_at DESC, attempt_key LIMIT 5000""",
        selection.parameters | {"cluster": cluster, "node": node},
    )


def node_history(
    store: Store, cluster: str | None, node: str, selection: Selection
) -> pd.DataFrame:
    """What was recorded of a node: columns kind, key, start_at, end_at, what, severity, text."""
    return store.frame(
        f"""SELECT * FROM (
             SELECT 'health_event' AS kind, event_id AS key, observed_at AS start_at,
               CAST(NULL AS TIMESTAMPTZ) AS end_at,
               CASE WHEN xid IS NOT NULL THEN 'xid ' || xid WHEN sxid IS NOT NULL
                 THEN 'sxid ' || sxid ELSE check_name END AS what, severity,
               CASE WHEN n_records > 1 THEN concat_ws(' ', message,
                   '(and ' || (n_records - 1) || ' more like it within a minute)')
                 ELSE message END AS text
             FROM health_events WHERE {of_cluster(cluster)} AND node = $node
             UNION ALL
             SELECT 'node_event', node || ' ' || strftime(start_at, '%Y-%m-%dT%H:%M:%SZ'), start_at,
               end_at, CASE WHEN planned THEN 'planned ' ELSE '' END || coalesce(state, ''), NULL,
               reason
             FROM node_events WHERE {of_cluster(cluster)} AND node = $node
             UNION ALL
             SELECT 'ticket', ticket_id, opened_at, closed_at, component, NULL,
               concat_ws(': ', action,
                 nullif(concat_ws(', ', text, vendor, 'serial ' || serial), ''))
             FROM tickets WHERE {of_cluster(cluster)} AND node = $node
             UNION ALL
             SELECT 'node_failure', failure_key, start_at, end_at, cause, NULL,
               concat_ws(': ', subcause, text)
             FROM node_failures WHERE {of_cluster(cluster)} AND node = $node)
           WHERE {_RECORDED_THEN.where(selection)}
           ORDER BY start_at DESC NULLS LAST, kind, key LIMIT 5000""",
        selection.parameters | {"cluster": cluster, "node": node},
    )


def node_facts(store: Store, cluster: str | None, node: str) -> pd.DataFrame:
    """What is known of a node: rack, pod, GPUs, serial, and facts such as its driver."""
    return store.frame(
        f"""SELECT * FROM (
             SELECT unnest(['rack', 'pod', 'serial', 'role',
                 CASE source WHEN 'observed' THEN 'GPUs, at least' ELSE 'GPUs' END]) AS key,
               unnest([rack, pod, serial, role, CAST(
                 CASE source WHEN 'observed' THEN nullif(gpus, 0) ELSE gpus END AS VARCHAR)])
                 AS value,
               first_seen_at AS from_at, last_seen_at AS to_at
             FROM nodes WHERE {of_cluster(cluster)} AND node = $node
             UNION ALL
             SELECT unnest(['state then', 'reason then', 'GPU model', 'features', 'partitions',
                 'topology', 'CPUs', 'operating system', 'driver']),
               unnest([state, reason, gpu_model, features, partitions, topology,
                 CAST(cpus AS VARCHAR), os, driver]), observed_at, observed_at
             FROM (SELECT * FROM node_inventory WHERE {of_cluster(cluster)} AND node = $node
                   ORDER BY observed_at DESC, source LIMIT 1)
             UNION ALL
             SELECT 'also written', string_agg(written, ', ' ORDER BY written), NULL, NULL
             FROM node_names WHERE {of_cluster(cluster)} AND node = $node AND written <> node
             UNION ALL
             SELECT key || coalesce(' of GPU ' || gpu, ''), value, from_at, to_at FROM node_facts
             WHERE {of_cluster(cluster)} AND node = $node)
           WHERE value IS NOT NULL ORDER BY from_at DESC, key""",
        {"cluster": cluster, "node": node},
    )


def logged_by_cause(store: Store, selection: Selection) -> pd.DataFrame:
    """Failures known without jobs: columns source, cause, subcause, day, n_failures, n_shared (of
    them, those that hit something that is no node).
    """
    return store.frame(
        f"""SELECT source, cause, subcause, CAST({local("start_at")} AS DATE) AS day,
              count(*) AS n_failures, count(hit) AS n_shared
            FROM node_failures JOIN clusters USING (cluster)
            WHERE {node_failures_of(selection)} GROUP BY ALL ORDER BY ALL""",
        selection.parameters,
    )
