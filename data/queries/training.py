"""What training runs logged: which runs, their steps, and what happened on their nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.filters import Filter

if TYPE_CHECKING:
    import pandas as pd

    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store

RUN = "coalesce(run_id, job_id)"
"""A run; where the store does not know the job of its rows, the job is one by itself."""
_LOGGED = Filter(columns=("cluster",), within="logged_at", undated=True)
_DUMPED = Filter(columns=("cluster",), within="dumped_at", undated=True)
_NUMBERS = ("loss", "grad_norm", "step_time_s", "throughput", "learning_rate", "loss_scale")
_OF_RUN = f"cluster = $cluster AND {RUN} = $run"
MOST_RUNS = 10_000
"""Most rows of the list of runs."""


def runs(store: Store, selection: Selection) -> pd.DataFrame:
    """Runs that logged steps or dumped their ranks in a selection, the last to do so first.

    Columns cluster, run_id, n_rows, n_attempts, first_step, last_step, first_at, last_at, n_ranks,
    last_loss, n_<series> a number column (rows that hold it), n_dumps.
    """
    counts = ", ".join(f"count({name}) AS n_{name}" for name in _NUMBERS)
    return store.frame(
        f"""WITH logged AS (
              SELECT cluster, {RUN} AS run_id, count(*) AS n_rows,
                count(DISTINCT attempt_key) AS n_attempts, count(DISTINCT rank) AS n_ranks,
                min(step) AS first_step, max(step) AS last_step,
                min(logged_at) AS first_at, max(logged_at) AS last_at,
                arg_max(loss, step) AS last_loss, {counts}
              FROM training_metrics WHERE {_LOGGED.where(selection)} GROUP BY ALL),
            dump AS (
              SELECT cluster, job_id, dumped_at, rank FROM flight_dumps
              UNION ALL SELECT cluster, job_id, dumped_at, rank FROM rank_stacks),
            named AS (
              SELECT cluster, job_id, max(run_id) AS run_id FROM jobs
              SEMI JOIN dump USING (cluster, job_id) GROUP BY ALL),
            dumped AS (
              SELECT cluster, {RUN} AS run_id, count(*) AS n_dumps, max(dumped_at) AS dumped_at
              FROM dump LEFT JOIN named USING (cluster, job_id)
              WHERE {_DUMPED.where(selection)} GROUP BY ALL)
            SELECT * EXCLUDE (dumped_at) REPLACE (
                greatest(last_at, dumped_at) AS last_at, coalesce(n_rows, 0) AS n_rows,
                coalesce(n_ranks, 0) AS n_ranks, coalesce(n_dumps, 0) AS n_dumps)
            FROM logged FULL JOIN dumped USING (cluster, run_id)
            ORDER BY last_at DESC NULLS LAST, run_id, cluster LIMIT {MOST_RUNS}""",
        selection.parameters,
    )


def further_series(store: Store, cluster: str, run_id: str) -> list[str]:
    """Names of the further series of a run, in order."""
    rows = store.rows(
        f"""SELECT DISTINCT unnest(json_keys(series)) AS name FROM training_metrics
            WHERE {_OF_RUN} AND series IS NOT NULL ORDER BY name""",
        _named(cluster, run_id),
    )
    return [name for (name,) in rows]


def n_ranks(store: Store, cluster: str, run_id: str) -> int:
    """Ranks that logged steps of a run; rows that name none are one."""
    ((n,),) = store.rows(
        f"""SELECT count(DISTINCT coalesce(rank, -1)) FROM training_metrics
            WHERE {_OF_RUN} AND checkpoint_event IS NULL""",
        _named(cluster, run_id),
    )
    return int(n)


def steps(store: Store, cluster: str, run_id: str, further: tuple[str, ...] = ()) -> Columns:
    """Logged steps of a run in the order of their times: of the rank that logged most of them.

    Logs without times follow each other by their first and last steps.

    Columns step, logged_at (seconds since 1970), event (0 a step, 1 a save, 2 a load), the numbers
    and the further series. Numbers are NaN where the row holds none, infinite where it says NaN.
    """
    named = {f"series_{place}": name for place, name in enumerate(further)}
    asked = "".join(
        f""", {_told(f"TRY_CAST(json_extract_string(series, '$.' || $series_{place}) AS DOUBLE)")}
            AS "{name.replace('"', '""')}\""""
        for place, name in enumerate(further)
    )
    numbers = ", ".join(f"{_told(name)} AS {name}" for name in _NUMBERS)
    return store.columns(
        f"""WITH of_run AS (
              SELECT *, coalesce(logged_at, last_value(logged_at IGNORE NULLS) OVER (
                  ORDER BY step, logged_at NULLS LAST)) AS placed_at,
                CASE WHEN log_id IS NOT NULL THEN min(step) OVER (PARTITION BY log_id) END
                  AS first_of_log,
                CASE WHEN log_id IS NOT NULL THEN max(step) OVER (PARTITION BY log_id) END
                  AS last_of_log
              FROM training_metrics WHERE {_OF_RUN}),
            chosen AS (
              SELECT rank FROM of_run WHERE checkpoint_event IS NULL
              GROUP BY rank ORDER BY count(*) DESC, rank NULLS FIRST LIMIT 1)
            SELECT coalesce(step, -1) AS step, epoch_us(logged_at) / 1e6 AS logged_at,
              CASE checkpoint_event WHEN 'saved' THEN 1 WHEN 'loaded' THEN 2 ELSE 0 END AS event,
              {numbers}{asked}
            FROM of_run WHERE checkpoint_event IS NOT NULL
              OR rank IS NOT DISTINCT FROM (SELECT rank FROM chosen)
            ORDER BY placed_at NULLS FIRST, first_of_log, last_of_log, log_id,
              line_no NULLS FIRST, step""",
        _named(cluster, run_id) | {key: f'"{name}"' for key, name in named.items()},
    )


def attempts(store: Store, cluster: str, run_id: str) -> pd.DataFrame:
    """The attempts of a run, in order: job, state, verdict, incident, start, end and until when
    records tell of it."""
    return store.frame(
        f"""SELECT jobs.cluster, jobs.job_id, jobs.attempt, jobs.attempt_key, jobs.state,
              jobs.start_at, jobs.end_at, coalesce(jobs.end_at, as_of_at) AS until_at,
              jobs.n_gpus, jobs.n_nodes, failures.cause, failures.domain, failures.node,
              told.incident_id
            FROM jobs
            LEFT JOIN (SELECT cluster, as_of_at FROM clusters) USING (cluster)
            LEFT JOIN failures USING (cluster, attempt_key)
            LEFT JOIN (
              SELECT key AS attempt_key, min(incident_id) AS incident_id FROM incident_members
              WHERE kind = 'attempt' GROUP BY key) AS told USING (attempt_key)
            WHERE jobs.cluster = $cluster AND jobs.start_at IS NOT NULL
              AND ({RUN.replace("run_id", "jobs.run_id").replace("job_id", "jobs.job_id")} = $run
                OR jobs.attempt_key IN (
                  SELECT attempt_key FROM training_metrics WHERE {_OF_RUN}))
            ORDER BY jobs.start_at, jobs.attempt_key""",
        _named(cluster, run_id),
    )


def events(store: Store, cluster: str, run_id: str) -> pd.DataFrame:
    """What was observed on nodes of a run while its attempts ran there, in order of time.

    What is told several times within a minute stands there once, with its first time and its least
    message, so that a storm is no more than it says, whether or not it was reduced before it came.

    Columns node, gpu, observed_at, source, check_name, severity, xid, message.
    """
    return store.frame(
        f"""WITH ran AS (
              SELECT attempt_key, start_at, coalesce(end_at, TIMESTAMPTZ 'infinity') AS end_at
              FROM jobs WHERE cluster = $cluster AND start_at IS NOT NULL
                AND (coalesce(run_id, job_id) = $run OR attempt_key IN (
                  SELECT attempt_key FROM training_metrics WHERE {_OF_RUN})))
            SELECT event.node, event.gpu, min(event.observed_at) AS observed_at, event.source,
              event.check_name, event.severity, event.xid, min(event.message) AS message
            FROM ran
            JOIN job_nodes AS held ON held.cluster = $cluster
              AND held.attempt_key = ran.attempt_key
            JOIN health_events AS event ON event.cluster = $cluster AND event.node = held.node
              AND event.observed_at >= ran.start_at AND event.observed_at < ran.end_at
            GROUP BY event.node, event.gpu, event.source, event.check_name, event.severity,
              event.xid, date_trunc('minute', event.observed_at)
            ORDER BY observed_at, event.node, event.gpu, event.check_name, event.xid""",
        _named(cluster, run_id),
    )


def _told(number: str) -> str:
    """A number; infinite where the row says NaN, so that it is told from one that it lacks."""
    return f"CASE WHEN isnan({number}) THEN CAST('inf' AS DOUBLE) ELSE {number} END"


def _named(cluster: str, run_id: str) -> dict[str, Any]:
    return {"cluster": cluster, "run": run_id}
