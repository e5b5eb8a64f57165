"""Attempts that held GPUs, where their running time went, and the tables that say so."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.efficiency.attempt_days import LOST, Held, daily_rows, lost_rows, own_of_run
from analytics.efficiency.attempt_time import SHOWN, attempt_time
from analytics.efficiency.habits import ONE_NODE, QUANTITIES, SEVERAL_NODES, habits
from analytics.efficiency.training_log import attempt_progress, run_habits
from analytics.reliability.failure_rate import size_label
from data.definitions import INFRASTRUCTURE, UNEXPLAINED
from data.interrupted import RAN_S, WAITED_S, interrupted
from data.interrupted import SEVERAL_NODES as SEVERAL
from data.said import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb
    from numpy.typing import NDArray

    from analytics.arrays import Bools, Floats, Ints
    from analytics.efficiency.habits import Habits
    from data.said import Said
    from data.site import Runs

    Arrays = dict[str, NDArray[Any]]

CHUNK = 500_000
"""Attempts divided at once."""
BY_CHANCE = 0.05
"""Probability from which on chance explains that no attempt ended before the first that did."""


@dataclass(frozen=True)
class AttemptRows:
    """What the attempts of a store held."""

    daily: pd.DataFrame
    """Rows of the ledger: group, day, part, loss and the counts of `daily_rows`."""
    lost: pd.DataFrame
    """One row an attempt that was interrupted, or failed for an unknown reason: its row id and what
    it lost, or would have lost if infrastructure had ended it (`lost_rows`)."""
    parts: pd.DataFrame
    """One row an attempt of a run on several nodes: its row id, seconds of each part, bounds."""
    run_habits: pd.DataFrame
    """Habits of the runs whose training metrics are stored."""
    notes: dict[str, object]
    """What a reader must know: habits taken, attempts that could not be counted."""


def attempt_rows(connection: duckdb.DuckDBPyConnection, runs: Runs, said: Said) -> AttemptRows:
    """Divides the running time of every attempt with GPUs."""
    _windows(connection)
    _losses(connection, said)
    progress, observed = _progress(connection)
    arrays = _attempts(connection, by_run=not observed.empty)
    shown = progress.set_index("id")[list(SHOWN.values())].astype(float).dropna(how="all")
    by_metrics = pd.Index(arrays["id"]).isin(shown.index)
    wasted = _wasted(connection, arrays["id"])
    parts, daily, lost, notes = [], [], [], {}
    for name, assumed in (("several_nodes", SEVERAL_NODES), ("one_node", ONE_NODE)):
        several, stated = name == "several_nodes", getattr(runs, name)
        of_class = observed[observed["several"].eq(several)]
        known = habits(
            of_class,
            stated={quantity: getattr(stated, quantity) for quantity in QUANTITIES},
            assumed=assumed,
            # How often jobs on one node save follows all runs observed, by their size.
            intervals=of_class if several else observed,
        )
        notes[name] = known.record
        together = known.models and not known.costless
        apart = together or (arrays["loss"] >= 0) | by_metrics | (wasted > 0)
        for chosen in _chunks(
            arrays["several"] == several, apart, arrays["run"] if known.models else None
        ):
            held = Held(**{each.name: arrays[each.name][chosen] for each in fields(Held)})
            waste = wasted[chosen] if wasted[chosen].any() else None
            measured = None
            if by_metrics[chosen].any():
                own = shown.reindex(arrays["id"][chosen])
                measured = {column: own[column].to_numpy() for column in SHOWN.values()}
            time = attempt_time(
                held.ran_s, held.loss >= 0, known, measured, waste, n_gpus=held.n_gpus
            )
            of_run = None
            if known.models:
                of_run = own_of_run(
                    arrays["run"][chosen], arrays["lost_to"][chosen], held.n_gpus, time
                )
            daily.append(daily_rows(held, time, of_run))
            ids = arrays["id"][chosen]
            struck = np.flatnonzero(held.loss >= 0)
            if len(struck):
                lost.append(lost_rows(held.of(struck), time.of(struck), ids[struck]))
            rows = time.per_attempt().assign(
                id=arrays["id"][chosen], ran_s=held.ran_s, basis=known.basis,
                measured=by_metrics[chosen],
            )  # fmt: skip
            parts.append(rows[arrays["of_run"][chosen]])
        for chosen in _chunks(arrays["several"] == several, arrays["open"], None):
            open_ = chosen[arrays["open"][chosen]]
            if len(open_):
                lost.append(_if_interrupted(arrays, open_, known, shown, wasted))
    return AttemptRows(
        daily=pd.concat(daily, ignore_index=True),
        lost=pd.concat(lost, ignore_index=True)
        if lost
        else pd.DataFrame(columns=["id", *LOST], dtype=float),
        parts=pd.concat(parts, ignore_index=True),
        run_habits=observed,
        notes=notes | _uncounted(connection),
    )


def _if_interrupted(
    arrays: Arrays, chosen: Ints, known: Habits, shown: pd.DataFrame, wasted: Floats
) -> pd.DataFrame:
    """What attempts would have lost if infrastructure had ended them."""
    held = Held(**{each.name: arrays[each.name][chosen] for each in fields(Held)})
    own = shown.reindex(arrays["id"][chosen])
    measured = {column: own[column].to_numpy() for column in SHOWN.values()}
    struck = np.ones(len(chosen), dtype=bool)
    time = attempt_time(held.ran_s, struck, known, measured, wasted[chosen], n_gpus=held.n_gpus)
    return lost_rows(replace(held, loss=np.zeros_like(held.loss)), time, arrays["id"][chosen])


def _chunks(
    of_class: Bools,
    apart: Bools | bool,
    runs: NDArray[np.uint64] | None,
) -> Iterator[Ints]:
    """Places of a class, those set apart first; a stretch of either at a time, at least one.

    Where codes of runs are given, no stretch cuts a run.
    """
    for rows in (np.flatnonzero(of_class & apart), np.flatnonzero(of_class & ~np.asarray(apart))):
        cuts = np.arange(CHUNK, len(rows), CHUNK)
        if runs is not None and len(cuts):
            rows = rows[np.argsort(runs[rows], kind="stable")]
            cuts = np.unique(np.searchsorted(runs[rows], runs[rows][cuts]))
        yield from np.split(rows, cuts)


def _windows(connection: duckdb.DuckDBPyConnection) -> None:
    """Temporary table ledger_window: the time in which a cluster's records are complete.

    Accounting that begins at a time T lists the attempts that ended since T: before the first end
    others ran that nobody listed. It begins with the cluster's own beginning where the first
    submission lies within an hour before the first end, or where chance explains that every attempt
    that began before it outlasted it: by the lengths of those that began later, in whole minutes,
    the product of the shares that last as long is 5 % or more. Without a later one nothing speaks
    for others. Clusters without GPU-time have none.
    """
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE ledger_window AS
           WITH attempt AS (
             SELECT cluster, epoch_us(least(submit_at, start_at)) // 1000000 AS first_s,
               epoch_us(start_at) // 1000000 AS start_s,
               epoch_us(coalesce(end_at, start_at)) // 1000000 AS ended_s,
               epoch_us(coalesce(end_at, as_of_at)) // 1000000 AS last_s
             FROM jobs JOIN clusters USING (cluster)
             WHERE start_at IS NOT NULL AND basis = 'gpu_time'),
           edge AS (SELECT cluster, min(first_s) AS first_s, min(ended_s) AS first_end_s
                    FROM attempt GROUP BY cluster),
           later AS (
             SELECT cluster, (last_s - start_s) // 60 AS minutes,
               sum(count(*)) OVER (PARTITION BY cluster ORDER BY minutes DESC)
                 / sum(count(*)) OVER (PARTITION BY cluster) AS share
             FROM attempt JOIN edge USING (cluster) WHERE start_s >= first_end_s
             GROUP BY cluster, minutes),
           early AS (
             SELECT cluster, (first_end_s - start_s) // 60 AS minutes, count(*) AS n
             FROM attempt JOIN edge USING (cluster) WHERE start_s < first_end_s
             GROUP BY cluster, minutes),
           chance AS (
             SELECT early.cluster, product(pow(coalesce(share, 0), n)) AS probability
             FROM early ASOF LEFT JOIN later
               ON early.cluster = later.cluster AND early.minutes <= later.minutes
             WHERE early.cluster IN (SELECT cluster FROM later) GROUP BY early.cluster)
           SELECT cluster, CASE WHEN first_end_s - edge.first_s <= 3600
               OR coalesce(probability, 1) >= {BY_CHANCE} THEN edge.first_s
               ELSE first_end_s END AS begin_s, epoch_us(as_of_at) // 1000000 AS end_s,
             gpus_per_node
           FROM clusters JOIN edge USING (cluster) LEFT JOIN chance USING (cluster)"""
    )


def _losses(connection: duckdb.DuckDBPyConnection, said: Said) -> None:
    """Temporary tables: attempt_loss (attempts that were interrupted), ledger_loss (how),
    unknown_attempt (failures of unknown cause, and whether they are unexplained) and open_attempt
    (those of which nobody knows whether they were interrupted)."""
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE interrupted AS WITH {interrupted()} FROM interrupted",
        said.parameters,
    )
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE ledger_loss AS
           SELECT row_number() OVER (ORDER BY bucket, cause) - 1 AS code,
             dense_rank() OVER (ORDER BY bucket) - 1 AS lost_to, * FROM (
             SELECT DISTINCT bucket, cause FROM interrupted)"""
    )
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE attempt_loss AS
           SELECT id, min(code) AS code, arg_min(lost_to, code) AS lost_to
           FROM interrupted JOIN ledger_loss
             ON ledger_loss.bucket = interrupted.bucket
             AND ledger_loss.cause IS NOT DISTINCT FROM interrupted.cause GROUP BY id"""
    )
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE unknown_attempt AS
           WITH {VERDICTS},
           unknown AS (
             SELECT cluster, attempt_key,
               coalesce({UNEXPLAINED} AND NOT {INFRASTRUCTURE}, false) AS unexplained
             FROM verdict WHERE domain = 'unknown')
           SELECT jobs.rowid AS id, unexplained
           FROM unknown JOIN jobs USING (cluster, attempt_key)""",
        said.parameters,
    )
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE open_attempt AS
           SELECT id FROM unknown_attempt WHERE id NOT IN (SELECT id FROM attempt_loss)"""
    )


def _attempts(connection: duckdb.DuckDBPyConnection, *, by_run: bool) -> Arrays:
    """Attempts with GPUs that ran, as arrays; on demand with codes of their runs and losses."""
    codes = """, hash(jobs.cluster, coalesce(run_id, attempt_key)) AS run,
               coalesce(attempt_loss.lost_to, -1) AS lost_to"""
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE ledger_group AS
           SELECT row_number() OVER () - 1 AS code, * FROM (
             SELECT DISTINCT cluster, partition, account, n_gpus FROM jobs
             WHERE start_at IS NOT NULL AND n_gpus > 0 ORDER BY ALL)"""
    )
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE small_of_run AS
           SELECT jobs.rowid FROM jobs JOIN ledger_window USING (cluster)
           SEMI JOIN (
             SELECT cluster, run_id FROM jobs JOIN ledger_window USING (cluster) WHERE {SEVERAL}
           ) USING (cluster, run_id)
           WHERE NOT ({SEVERAL})"""
    )
    found: Arrays = connection.execute(
        f"""SELECT jobs.rowid AS id, epoch_us(start_at) // 1000000 AS start_s, {RAN_S} AS ran_s,
             CAST(jobs.n_gpus AS BIGINT) AS n_gpus, ledger_group.code AS "group",
             coalesce(attempt_loss.code, -1) AS loss, begin_s AS counted_from_s,
             jobs.rowid IN (FROM open_attempt) AS open,
             {SEVERAL} AS several, several OR jobs.rowid IN (FROM small_of_run) AS of_run
             {codes if by_run else ""}
           FROM jobs JOIN ledger_window USING (cluster)
           JOIN ledger_group ON ledger_group.cluster = jobs.cluster
             AND ledger_group.partition IS NOT DISTINCT FROM jobs.partition
             AND ledger_group.account IS NOT DISTINCT FROM jobs.account
             AND ledger_group.n_gpus = jobs.n_gpus
           LEFT JOIN attempt_loss ON attempt_loss.id = jobs.rowid
           WHERE start_at IS NOT NULL"""
    ).fetchnumpy()  # type: ignore[assignment]  # no column is an enum
    return found


def _progress(connection: duckdb.DuckDBPyConnection) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What training metrics show of attempts, and the habits of their runs."""
    steps = connection.execute(
        """SELECT cluster, attempt_key, step, rank, logged_at, step_time_s, checkpoint_event,
             checkpoint_s FROM training_metrics
           WHERE attempt_key IS NOT NULL AND logged_at IS NOT NULL"""
    ).df()
    attempts = connection.execute(
        f"""SELECT jobs.rowid AS id, cluster, attempt_key, run_id, start_at, end_at, n_gpus,
             coalesce({SEVERAL}, false) AS several
           FROM jobs JOIN (SELECT cluster, gpus_per_node FROM clusters) USING (cluster)
           SEMI JOIN (
             SELECT cluster, run_id FROM jobs
             SEMI JOIN (FROM training_metrics WHERE logged_at IS NOT NULL)
               USING (cluster, attempt_key)) USING (cluster, run_id)
           WHERE start_at IS NOT NULL"""
    ).df()
    progress = attempt_progress(steps, attempts)
    of_run = attempts.groupby(["cluster", "run_id"], dropna=False)
    sizes = of_run.agg(several=("several", "any"), n_gpus=("n_gpus", "max"))
    observed = run_habits(progress).merge(sizes.reset_index(), on=["cluster", "run_id"], how="left")
    keys = ["cluster", "attempt_key"]
    return progress.merge(attempts[["id", *keys]], on=keys), observed


def _wasted(connection: duckdb.DuckDBPyConnection, ids: Ints) -> Floats:
    """Share of their time that stragglers waste, of attempts of runs with traces; else 0."""
    found = connection.execute(
        """SELECT jobs.rowid AS id, wasted FROM jobs JOIN (
             SELECT cluster, run_id,
               greatest(0, sum(wasted_ratio * n_steps) / sum(n_steps)) AS wasted
             FROM straggler_traces WHERE wasted_ratio IS NOT NULL AND n_steps > 0
             GROUP BY ALL) traced USING (cluster, run_id)"""
    ).df()
    return found.set_index("id")["wasted"].reindex(ids, fill_value=0.0).to_numpy(dtype=float)


def _uncounted(connection: duckdb.DuckDBPyConnection) -> dict[str, object]:
    """What the ledger leaves out, by cluster and day."""
    found = connection.execute(
        """SELECT cluster, strftime(coalesce(end_at, start_at, submit_at), '%Y-%m-%d') AS day,
             count(*) AS attempts_without_gpus
           FROM jobs JOIN ledger_window USING (cluster)
           WHERE state <> 'REQUEUED' AND n_gpus IS NULL AND start_at IS NOT NULL
           GROUP BY ALL ORDER BY ALL"""
    )
    names = [column for column, *_ in found.description]
    by_day = dict(zip(names, map(list, zip(*found.fetchall(), strict=True)), strict=False))
    without = connection.execute(
        """SELECT cluster FROM clusters
           WHERE basis IS NULL OR basis NOT IN ('gpu_time', 'node_time') ORDER BY cluster"""
    ).fetchall()
    return {
        "clusters_without_jobs": [cluster for (cluster,) in without],
        "uncounted_by_day": by_day,
    }


def write_ledger(
    connection: duckdb.DuckDBPyConnection, held: AttemptRows, rest: pd.DataFrame
) -> None:
    """Fills `gpu_time` with the rows of attempts and of the fleet, by day."""
    sizes = connection.execute("SELECT DISTINCT n_gpus FROM ledger_group").df()
    sizes = sizes.assign(size_class=sizes["n_gpus"].map(size_label))
    connection.register("ledger_size", sizes)
    connection.register("attempt_time", held.daily)
    connection.register("fleet_time", rest)
    connection.execute(
        """INSERT INTO gpu_time BY NAME
           WITH summed AS (
             SELECT day, "group", loss, part, sum(gpu_seconds) AS gpu_seconds,
               sum(lower_gpu_seconds) AS lower_gpu_seconds,
               sum(upper_gpu_seconds) AS upper_gpu_seconds,
               sum(shared_gpu_seconds) AS shared_gpu_seconds,
               sum(habit_gpu_s2) AS habit_gpu_s2,
               sum(variance_gpu_s2) AS variance_gpu_s2, sum(n_attempts) AS n_attempts,
               sum(rule_gpu_seconds) AS rule_gpu_seconds
             FROM attempt_time GROUP BY ALL)
           SELECT DATE '1970-01-01' + CAST(day AS INTEGER) AS day, cluster, partition, account,
             size_class, n_gpus, coalesce(ledger_loss.bucket, part) AS bucket, cause,
             CAST(gpu_seconds AS BIGINT) AS gpu_seconds,
             CAST(lower_gpu_seconds AS BIGINT) AS lower_gpu_seconds,
             CAST(upper_gpu_seconds AS BIGINT) AS upper_gpu_seconds,
             shared_gpu_seconds, habit_gpu_s2, variance_gpu_s2,
             CAST(n_attempts AS BIGINT) AS n_attempts,
             CAST(rule_gpu_seconds AS BIGINT) AS rule_gpu_seconds
           FROM summed JOIN ledger_group ON ledger_group.code = summed.group
           JOIN ledger_size USING (n_gpus)
           LEFT JOIN ledger_loss ON ledger_loss.code = summed.loss
           WHERE gpu_seconds > 0 OR upper_gpu_seconds > 0 OR n_attempts > 0
             OR rule_gpu_seconds IS NOT NULL
           ORDER BY day, cluster"""
    )
    connection.execute(
        """INSERT INTO gpu_time BY NAME
           SELECT DATE '1970-01-01' + CAST(day AS INTEGER) AS day, cluster, bucket, gpu_seconds,
             gpu_seconds AS lower_gpu_seconds, gpu_seconds AS upper_gpu_seconds,
             0.0 AS shared_gpu_seconds, 0.0 AS habit_gpu_s2, 0.0 AS variance_gpu_s2
           FROM fleet_time WHERE gpu_seconds > 0 ORDER BY day, cluster, bucket"""
    )
    for name in ("ledger_size", "attempt_time", "fleet_time"):
        connection.unregister(name)


def write_losses(connection: duckdb.DuckDBPyConnection, held: AttemptRows) -> None:
    """Fills `lost_time` with what attempts that were interrupted, or may have been, lost.

    An attempt that never ran or held no GPU lost nothing. In order of their end, so that a period
    reads its own alone.
    """
    connection.register("lost_of_attempt", held.lost)
    connection.execute(
        """INSERT INTO lost_time BY NAME
           SELECT jobs.cluster, jobs.attempt_key, run_id AS job_run, bucket, cause,
             CASE WHEN jobs.start_at IS NULL OR jobs.n_gpus = 0 THEN 0 ELSE gpu_seconds END
               AS gpu_seconds,
             lower_gpu_seconds, upper_gpu_seconds, shared_gpu_seconds, habit_gpu_seconds,
             variance_gpu_s2, jobs.end_at, jobs.partition, jobs.account, jobs.n_gpus,
             coalesce(unexplained, false) AS unexplained
           FROM (SELECT id, code FROM attempt_loss UNION ALL SELECT id, NULL FROM open_attempt)
           JOIN jobs ON jobs.rowid = id LEFT JOIN ledger_loss USING (code)
           LEFT JOIN lost_of_attempt USING (id) LEFT JOIN unknown_attempt USING (id)
           ORDER BY jobs.end_at, jobs.cluster, jobs.attempt_key"""
    )
    connection.unregister("lost_of_attempt")


def write_runs(connection: duckdb.DuckDBPyConnection, held: AttemptRows) -> None:
    """Fills `job_runs` from jobs and from the parts of their attempts.

    Runs on several nodes are listed, with all their attempts. `queued_s` is the time that attempts
    were eligible and waited, `scheduled_s` the time that they ran; attempts without GPUs have no
    share in the sums. `queued_s` is unknown where an attempt started and nothing says since when
    it waited. A run rests on training metrics where all its attempts that ran do.
    """
    parts = ("startup", "checkpoint", "lost", "productive", "lower_productive", "upper_productive")
    seconds = ", ".join(f"CAST(sum({part}_s) AS BIGINT) AS {part}_s" for part in parts)
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
               parts.* EXCLUDE (id), greatest(0, missing.until_s - missing.from_s) AS unrecorded_s,
               {WAITED_S} AS waited_s
             FROM jobs JOIN ledger_window USING (cluster)
             SEMI JOIN listed USING (cluster, run_id)
             LEFT JOIN attempt_parts parts ON parts.id = jobs.rowid
             LEFT JOIN attempt_loss ON attempt_loss.id = jobs.rowid
             LEFT JOIN ledger_loss USING (code)
             LEFT JOIN (SELECT id, from_s, until_s FROM unrecorded_attempt) missing
               ON missing.id = jobs.rowid),
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
               CAST(sum(ran_s) AS BIGINT) AS scheduled_s, {seconds},
               CAST(coalesce(sum(unrecorded_s), 0) AS BIGINT) AS unrecorded_s,
               sum(shared_productive_s) AS shared_productive_s,
               sum(variance_s2) + pow(sum(own_productive_s), 2) AS variance_productive_s2,
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
