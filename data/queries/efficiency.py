"""Rows of the ledger and of runs: where GPU-time went, what runs got out of theirs, one run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analytics.frames import DEFINITION
from data import stages
from data.definitions import INFRASTRUCTURE
from data.errors import DataError
from data.filters import Filter
from data.interrupted import ELIGIBLE_S, RAN_S, SEVERAL_NODES, WAITED_S, interrupted
from data.queries.exposure import kept
from data.said import ARRANGED, VERDICTS
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from analytics.frames import Columns, LedgerGroup
    from data.filters import Selection
    from data.store import Store

_COUNTS = """CAST(sum(gpu_seconds) AS BIGINT) AS gpu_seconds,
  CAST(sum(lower_gpu_seconds) AS BIGINT) AS lower_gpu_seconds,
  CAST(sum(upper_gpu_seconds) AS BIGINT) AS upper_gpu_seconds,
  coalesce(sum(shared_gpu_seconds), 0.0) AS shared_gpu_seconds,
  coalesce(sum(habit_gpu_s2), 0.0) AS habit_gpu_s2,
  coalesce(sum(variance_gpu_s2), 0.0) AS variance_gpu_s2,
  CAST(sum(n_attempts) AS BIGINT) AS n_attempts,
  CAST(sum(rule_gpu_seconds) AS BIGINT) AS rule_gpu_seconds"""
_OF_AN_ATTEMPT = ("gpu_seconds", "lower_gpu_seconds", "upper_gpu_seconds", "shared_gpu_seconds",
                  "habit_gpu_seconds", "variance_gpu_s2")  # fmt: skip
"""What one attempt lost, in `lost_time`."""
_LOST = Filter(within="end_at")
_OF_DAY = Filter(within="day", n_gpus="n_gpus")
_INTERRUPTED = Filter(of="jobs", within="end_at", n_gpus="jobs.n_gpus")
_RAN = Filter(
    overlaps=(
        "first_start_at",
        """coalesce(last_end_at, (
             SELECT as_of_at FROM clusters WHERE clusters.cluster = job_runs.cluster))""",
    ),
    n_gpus="n_gpus",
)
"""Runs; one that has not ended ran until the records of its cluster end."""


class LedgerMissingError(DataError):
    """The ledger of the present records was not derived yet."""


def has_ledger(store: Store) -> bool:
    """Whether the ledger rests on the records, verdicts and site.toml of now."""
    recorded = dict(store.rows("SELECT stage, fingerprint FROM stage_runs"))
    context = stages.Context(store.root, load_site(store.root), store.said)
    return stages.all_on_demand_hold(recorded, context)


def ledger_notes(store: Store) -> dict[str, Any]:
    """What the ledger takes for granted and leaves out.

    Raises
    ------
    LedgerMissingError
        Where it was not derived, or rests on older verdicts or settings.
    """
    if not has_ledger(store):
        raise LedgerMissingError(
            f"{store.root}: the ledger of these records is not built: `faultline ledger` builds it"
        )
    ((notes,),) = store.rows("SELECT notes FROM stage_runs WHERE stage = 'ledger'")
    return dict(json.loads(notes))


UNCOUNTED = ("attempts_without_gpus",)
"""Keys of the notes that hold what the ledger leaves out, by day."""


def notes_of(notes: dict[str, Any], selection: Selection) -> dict[str, Any]:
    """The notes on the clusters and the days of a selection, of jobs of any kind."""
    days, cluster = selection.days, selection.cluster
    first, last = (None if at is None else f"{at:%Y-%m-%d}" for at in (days.from_at, days.to_at))
    by_day = notes["uncounted_by_day"]
    places = [
        place
        for place, (of, day) in enumerate(
            zip(by_day.get("cluster", ()), by_day.get("day", ()), strict=True)
        )
        if (cluster in (None, of))
        and (first is None or (day or "") >= first)
        and (last is None or (day or last) < last)
    ]
    sums = {name: sum(by_day.get(name, [])[place] for place in places) for name in UNCOUNTED}
    without = [each for each in notes["clusters_without_jobs"] if cluster in (None, each)]
    return notes | sums | {"clusters_without_jobs": without}


def unexplained_losses(store: Store, selection: Selection) -> Columns:
    """What unexplained failures with GPUs would have lost if infrastructure had ended them: the
    counts of `gpu_time`, in one row.

    The failures are those of MTTF, over the whole days of UTC that the period touches.
    """
    days = replace(selection.days, definition=DEFINITION)
    return _unexplained_losses(store, days, min_gpus=days.min_gpus)


@kept
def _unexplained_losses(store: Store, selection: Selection, *, min_gpus: int) -> Columns:
    """The same of jobs of so many GPUs and more: every page that says what failures cost asks.

    `habit_gpu_s2` adds up over runs, within which attempts deviate together; an attempt of no run
    is one of its own.
    """
    days = replace(selection, min_gpus=min_gpus)
    lost = ", ".join(f"coalesce({name}, 0) AS {name}" for name in _OF_AN_ATTEMPT)
    sums = ", ".join(
        f"coalesce(sum({name}), 0) AS {name}"
        for name in _OF_AN_ATTEMPT
        if name != "habit_gpu_seconds"
    )
    return store.columns(
        f"""WITH lost AS NOT MATERIALIZED (
              SELECT cluster, job_run, attempt_key, {lost}
              FROM lost_time JOIN clusters USING (cluster)
              WHERE unexplained AND basis = 'gpu_time' AND n_gpus >= greatest($min_gpus, 1)
                AND end_at IS NOT NULL AND {_LOST.where(days)}),
            of_run AS (
              SELECT pow(sum(habit_gpu_seconds), 2) AS habit_gpu_s2 FROM lost
              WHERE habit_gpu_seconds <> 0 GROUP BY cluster, coalesce(job_run, attempt_key))
            SELECT {sums}, count(*) AS n_attempts,
              (SELECT coalesce(sum(habit_gpu_s2), 0.0) FROM of_run) AS habit_gpu_s2 FROM lost""",
        days.parameters,
    )


def ledger_rows(store: Store, selection: Selection, by: Sequence[LedgerGroup] = ()) -> pd.DataFrame:
    """GPU-time by cluster, bucket and cause, and by what else is asked for.

    The period counts in whole days of UTC: every day that it touches.
    """
    names, days = "".join(f"{name}, " for name in by), selection.days
    return store.frame(
        f"""SELECT {names}cluster, bucket, cause, {_COUNTS} FROM gpu_time
            WHERE {_OF_DAY.where(days)} GROUP BY ALL ORDER BY {names}cluster, bucket, cause""",
        days.parameters,
    )


def unrecorded_rows(store: Store, selection: Selection) -> pd.DataFrame:
    """What attempts without a record may change, by cluster and bucket; `whole`: of the whole
    cluster, not of a group of jobs.
    """
    days = selection.days
    return store.frame(
        f"""SELECT cluster, bucket, n_gpus IS NULL AS whole,
              CAST(sum(least_gpu_seconds) AS BIGINT) AS least,
              CAST(sum(most_gpu_seconds) AS BIGINT) AS most
            FROM unrecorded_time WHERE {_OF_DAY.where(days)} GROUP BY ALL ORDER BY ALL""",
        days.parameters,
    )


def bucket_rows(
    store: Store, selection: Selection, *, bucket: str, limit: int = 10_000
) -> pd.DataFrame:
    """The rows behind a bucket, the largest first."""
    return store.frame(
        f"""SELECT day, cluster, partition, account, size_class, n_gpus, cause,
              gpu_seconds / 3600 AS gpu_hours, lower_gpu_seconds / 3600 AS lower_gpu_hours,
              upper_gpu_seconds / 3600 AS upper_gpu_hours, n_attempts
            FROM gpu_time WHERE {_OF_DAY.where(selection.days)} AND bucket = $bucket
            ORDER BY gpu_seconds DESC, day, cluster, partition, account, n_gpus, cause
            LIMIT $limit""",
        selection.days.parameters | {"bucket": bucket, "limit": limit},
    )


def lost_attempts(store: Store, selection: Selection, *, limit: int = 10_000) -> pd.DataFrame:
    """Attempts that infrastructure ended, those that lost most first; `lost_gpu_hours` is NULL
    where nobody knows it."""
    return store.frame(
        f"""WITH {VERDICTS}
            SELECT jobs.job_id, jobs.attempt, jobs.cluster, verdict.cause, verdict.domain,
              jobs.state, jobs.name, jobs."user", jobs.account, jobs.partition, jobs.n_gpus,
              jobs.start_at, jobs.end_at, verdict.node,
              gpu_seconds / 3600.0 AS lost_gpu_hours, jobs.attempt_key
            FROM verdict JOIN jobs USING (cluster, attempt_key)
            LEFT JOIN (
              SELECT cluster, attempt_key, gpu_seconds FROM lost_time WHERE bucket = 'lost_work'
            ) USING (cluster, attempt_key)
            WHERE {INFRASTRUCTURE} AND jobs.n_gpus > 0 AND {_INTERRUPTED.where(selection.days)}
            ORDER BY lost_gpu_hours DESC NULLS LAST, end_at DESC LIMIT $limit""",
        selection.days.parameters | {"limit": limit},
    )


def run_rows(
    store: Store,
    selection: Selection,
    columns: Sequence[str] = ("*",),
    *,
    user: str | None = None,
) -> pd.DataFrame:
    """Runs on several nodes that ran in the period, each whole, by name; of one user or of all."""
    whose = "true" if user is None else '"user" = $user'
    return store.frame(
        f"""SELECT {", ".join(columns)} FROM job_runs
            WHERE n_nodes > 1 AND scheduled_s > 0 AND n_gpus > 0 AND {whose}
              AND {_RAN.where(selection)}
            ORDER BY run_id, cluster""",
        selection.parameters | {"user": user},
    )


def runs_named(store: Store, runs: pd.DataFrame) -> pd.DataFrame:
    """All columns of the runs of a frame with cluster and run_id."""
    return store.frame(
        """SELECT job_runs.* FROM job_runs SEMI JOIN (
             SELECT unnest($clusters) AS cluster, unnest($runs) AS run_id)
             USING (cluster, run_id)""",
        {"clusters": runs["cluster"].tolist(), "runs": runs["run_id"].tolist()},
    )


def prices(store: Store) -> dict[str, tuple[float, str]]:
    """Price of a GPU-hour and its currency, of the clusters that state one."""
    return {
        cluster: (stated.gpu_hour_price, stated.currency or "")
        for cluster, stated in load_site(store.root).clusters.items()
        if stated.gpu_hour_price is not None
    }


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
    rows = store.rows(
        """SELECT DISTINCT cluster, run_id FROM jobs
           WHERE job_id = $job AND run_id IS NOT NULL ORDER BY ALL""",
        {"job": job_id},
    )
    return [(cluster, run) for cluster, run in rows]


def attempts_of(store: Store, cluster: str, run_id: str) -> pd.DataFrame:
    """Attempts of a run in order of time, with their verdicts and living incidents.

    Beside columns of `jobs`: `eligible_s`, `start_s` (seconds since the epoch), `waited_s`, `ran_s`
    (NULL without GPUs), `several`, `interrupted`, `bucket` (of what an interruption lost), `cause`,
    `domain`, `node`, `incident_id`.
    """
    return store.frame(
        f"""WITH {ARRANGED}, {interrupted(_JOBS)},
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
    """Logged steps of the attempts of a run, what tells its progress; each states a time."""
    return store.frame(
        f"""SELECT cluster, attempt_key, step, rank, logged_at, step_time_s, checkpoint_event,
              checkpoint_s
            FROM (FROM training_metrics WHERE logged_at IS NOT NULL)
            SEMI JOIN (FROM jobs WHERE {_RUN}) USING (cluster, attempt_key)""",
        _of(cluster, run_id),
    )


def _of(cluster: str, run_id: str) -> dict[str, str]:
    return {"cluster": cluster, "run": run_id}
