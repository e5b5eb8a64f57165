"""Attempts that held GPUs, and where their running time went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.efficiency.attempt_time import PARTS, AttemptTime, attempt_time
from analytics.efficiency.daily import COUNTS, Held, daily_rows
from analytics.efficiency.habits import ONE_NODE, SEVERAL_NODES, Habits, habits
from analytics.efficiency.training_log import attempt_progress, run_habits
from data.said import VERDICTS

if TYPE_CHECKING:
    import duckdb
    from numpy.typing import NDArray

    from data.said import Said
    from data.site import Runs

    Arrays = dict[str, NDArray[Any]]

CHUNK = 500_000
"""Attempts divided at once."""
SHOWN = ("startup_s", "checkpoint_s", "unsaved_s")
"""What training metrics show of an attempt."""


@dataclass(frozen=True)
class AttemptRows:
    """What the attempts of a store held."""

    daily: pd.DataFrame
    """Rows of the ledger: group, day, part, loss and the counts of `daily_rows`."""
    parts: pd.DataFrame
    """One row an attempt: its row id and the seconds of each part, with bounds."""
    run_habits: pd.DataFrame
    """Habits of the runs whose training metrics are stored."""
    notes: dict[str, object]
    """What a reader must know: habits taken, attempts that could not be counted."""


def attempt_rows(connection: duckdb.DuckDBPyConnection, runs: Runs, said: Said) -> AttemptRows:
    """Divides the running time of every attempt with GPUs."""
    _windows(connection)
    _losses(connection, said)
    arrays = _attempts(connection)
    progress, observed = _progress(connection)
    shown = _shown(arrays["id"], progress)
    parts, daily, notes = [], [], {}
    for name, several in (("several_nodes", True), ("one_node", False)):
        stated = getattr(runs, name)
        known = habits(
            observed[observed["several"].eq(several)],
            stated={q: getattr(stated, q) for q in ("interval_s", "write_s", "restart_s")},
            assumed=SEVERAL_NODES if several else ONE_NODE,
        )
        notes[name] = _told(known)
        rows = np.flatnonzero(arrays["several"] == several)
        for first in range(0, len(rows), CHUNK):
            chosen = rows[first : first + CHUNK]
            held, time, measured = _divided(arrays, chosen, known, shown)
            daily.append(daily_rows(held, time))
            parts.append(_per_attempt(arrays["id"][chosen], held, time, measured=measured)
                         .assign(basis=known.basis))  # fmt: skip
    return AttemptRows(
        daily=_summed(daily),
        parts=pd.concat(parts, ignore_index=True) if parts else _no_parts(),
        run_habits=observed,
        notes=notes | _uncounted(connection),
    )


def _windows(connection: duckdb.DuckDBPyConnection) -> None:
    """Temporary table ledger_window: the time in which a cluster's records are complete.

    Accounting that begins at a time T lists the attempts that ended since T: before the first end
    others ran that nobody listed. Where the first submission lies within an hour before the first
    end, the records begin with the cluster's own beginning. Clusters without GPU-time have none.
    """
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE ledger_window AS
           SELECT cluster, CASE WHEN first_end_s - first_s <= 3600 THEN first_s
               ELSE first_end_s END AS begin_s, epoch_us(as_of_at) // 1000000 AS end_s,
             gpus_per_node
           FROM clusters JOIN (
             SELECT cluster, epoch_us(min(least(submit_at, start_at))) // 1000000 AS first_s,
               epoch_us(min(coalesce(end_at, start_at))) // 1000000 AS first_end_s
             FROM jobs WHERE start_at IS NOT NULL GROUP BY cluster) USING (cluster)
           WHERE basis = 'gpu_time'"""
    )


def _losses(connection: duckdb.DuckDBPyConnection, said: Said) -> None:
    """Temporary tables: attempt_loss (attempts that were interrupted) and ledger_loss (how)."""
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE interrupted AS
            WITH {VERDICTS},
            struck AS (
              SELECT jobs.rowid AS id, 'lost_work' AS bucket, nullif(cause, 'unknown') AS cause
              FROM jobs JOIN (
                FROM verdict WHERE domain IN ('hardware', 'system_software') OR node_lost
              ) counted USING (cluster, attempt_key)),
            made_room AS (
              SELECT incidents.cluster, key AS attempt_key, any_value(cause) AS cause
              FROM incident_members JOIN incidents USING (incident_id)
              WHERE kind = 'preemption' GROUP BY ALL)
            FROM struck
            UNION ALL
            SELECT jobs.rowid,
              CASE state WHEN 'PREEMPTED' THEN 'lost_work_preempted' ELSE 'other' END,
              made_room.cause
            FROM jobs LEFT JOIN made_room USING (cluster, attempt_key)
            WHERE state IN ('PREEMPTED', 'REQUEUED') AND jobs.rowid NOT IN (SELECT id FROM struck)
            """,
        said.parameters,
    )
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE ledger_loss AS
           SELECT row_number() OVER (ORDER BY bucket, cause) - 1 AS code, * FROM (
             SELECT DISTINCT bucket, cause FROM interrupted)"""
    )
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE attempt_loss AS
           SELECT id, min(code) AS code FROM interrupted JOIN ledger_loss
             ON ledger_loss.bucket = interrupted.bucket
             AND ledger_loss.cause IS NOT DISTINCT FROM interrupted.cause GROUP BY id"""
    )


def _attempts(connection: duckdb.DuckDBPyConnection) -> Arrays:
    """Attempts with GPUs that ran, as arrays."""
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE ledger_group AS
           SELECT row_number() OVER () - 1 AS code, * FROM (
             SELECT DISTINCT cluster, partition, account, n_gpus FROM jobs
             WHERE start_at IS NOT NULL AND n_gpus > 0 ORDER BY ALL)"""
    )
    return connection.execute(
        """SELECT jobs.rowid AS id, epoch_us(start_at) // 1000000 AS start_s,
             greatest(least(coalesce(epoch_us(end_at) // 1000000, end_s), end_s)
               - epoch_us(start_at) // 1000000, 0) AS ran_s,
             CAST(jobs.n_gpus AS BIGINT) AS n_gpus, ledger_group.code AS "group",
             coalesce(attempt_loss.code, -1) AS loss, begin_s AS counted_from_s,
             n_nodes > 1 OR jobs.n_gpus > gpus_per_node AS several
           FROM jobs JOIN ledger_window USING (cluster)
           JOIN ledger_group ON ledger_group.cluster = jobs.cluster
             AND ledger_group.partition IS NOT DISTINCT FROM jobs.partition
             AND ledger_group.account IS NOT DISTINCT FROM jobs.account
             AND ledger_group.n_gpus = jobs.n_gpus
           LEFT JOIN attempt_loss ON attempt_loss.id = jobs.rowid
           WHERE start_at IS NOT NULL"""
    ).fetchnumpy()


def _divided(
    arrays: Arrays, chosen: NDArray[np.int64], known: Habits, shown: Arrays | None
) -> tuple[Held, AttemptTime, NDArray[np.bool_]]:
    """Some attempts of one class with the parts of their time, and which metrics show them."""
    held = Held(**{name: arrays[name][chosen] for name in
                   ("start_s", "ran_s", "n_gpus", "group", "loss", "counted_from_s")})  # fmt: skip
    own = None if shown is None else {name: shown[name][chosen] for name in SHOWN}
    time = attempt_time(held.ran_s, held.loss >= 0, known, own)
    measured = np.zeros(len(chosen), dtype=bool) if own is None else ~np.isnan(own["startup_s"])
    return held, time, measured


def _per_attempt(
    ids: NDArray[np.int64], held: Held, time: AttemptTime, *, measured: NDArray[np.bool_]
) -> pd.DataFrame:
    """One row an attempt with the seconds of its parts."""
    return pd.DataFrame(
        {"id": ids, "ran_s": held.ran_s, "interrupted": held.loss >= 0, "measured": measured}
        | {f"{part}_s": time.value[part] for part in PARTS}
        | {
            "lower_productive_s": time.lower["productive"],
            "upper_productive_s": time.upper["productive"],
            "variance_s2": time.variance_s2,
        }
    )


def _no_parts() -> pd.DataFrame:
    """The same of no attempt."""
    names = ("id", "ran_s", "interrupted", "measured", *(f"{part}_s" for part in PARTS),
             "lower_productive_s", "upper_productive_s", "variance_s2", "basis")  # fmt: skip
    return pd.DataFrame({name: pd.Series(dtype="int64") for name in names})


def _summed(daily: list[pd.DataFrame]) -> pd.DataFrame:
    """Rows of all chunks."""
    keys = ["group", "day", "part", "loss"]
    if not daily:
        return pd.DataFrame({name: pd.Series(dtype="int64") for name in (*keys, *COUNTS)})
    return pd.concat(daily, ignore_index=True)


def _progress(connection: duckdb.DuckDBPyConnection) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What training metrics show of attempts, and the habits of their runs."""
    steps = connection.execute(
        """SELECT cluster, attempt_key, step, rank, logged_at, step_time_s, checkpoint_event,
             checkpoint_s FROM training_metrics WHERE attempt_key IS NOT NULL"""
    ).df()
    attempts = connection.execute(
        """SELECT jobs.rowid AS id, cluster, attempt_key, run_id, start_at, end_at, n_nodes
           FROM jobs SEMI JOIN (
             SELECT cluster, run_id FROM jobs SEMI JOIN training_metrics
               USING (cluster, attempt_key)) USING (cluster, run_id)
           WHERE start_at IS NOT NULL"""
    ).df()
    progress = attempt_progress(steps, attempts)
    several = attempts.groupby(["cluster", "run_id"], dropna=False)["n_nodes"].max().gt(1)
    observed = run_habits(progress).merge(
        several.rename("several").reset_index(), on=["cluster", "run_id"], how="left"
    )
    keys = ["cluster", "attempt_key"]
    return progress.merge(attempts[["id", *keys]], on=keys), observed


def _shown(ids: NDArray[np.int64], progress: pd.DataFrame) -> Arrays | None:
    """What metrics show, in the order of the attempts; None where there are no metrics."""
    if progress.empty:
        return None
    places = pd.Index(ids).get_indexer(progress["id"])
    found = {}
    for name in SHOWN:
        values = np.full(len(ids), np.nan)
        values[places[places >= 0]] = progress[name].to_numpy(dtype=float)[places >= 0]
        found[name] = values
    return found


def _told(known: Habits) -> dict[str, object]:
    """Habits as values of JSON."""
    habit, corners = known.central, known.corners
    return {
        "basis": known.basis,
        "n_runs": known.n_runs,
        **{
            name: [getattr(habit, name), min(getattr(c, name) for c in corners),
                   max(getattr(c, name) for c in corners)]
            for name in ("interval_s", "write_s", "restart_s")
        },
    }  # fmt: skip


def _uncounted(connection: duckdb.DuckDBPyConnection) -> dict[str, object]:
    """What the ledger leaves out, or counts although its cause is not known."""
    ((without_gpus, unknown_gpu_seconds, n_unknown),) = connection.execute(
        """SELECT count(*) FILTER (jobs.n_gpus IS NULL AND start_at IS NOT NULL),
             CAST(coalesce(sum(CAST(n_gpus AS BIGINT) * least(1800, greatest(0,
               date_diff('second', start_at, end_at)))) FILTER (unknown), 0) AS BIGINT),
             count(*) FILTER (unknown AND n_gpus > 0)
           FROM jobs JOIN ledger_window USING (cluster)
           LEFT JOIN (SELECT cluster, attempt_key, true AS unknown FROM failures
                      WHERE domain = 'unknown' AND NOT node_lost AND state <> 'REQUEUED')
             USING (cluster, attempt_key)"""
    ).fetchall()
    return {
        "attempts_without_gpus": without_gpus,
        "failures_of_unknown_cause": n_unknown,
        "their_rule_gpu_seconds": unknown_gpu_seconds,
    }
