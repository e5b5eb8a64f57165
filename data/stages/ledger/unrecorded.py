"""Attempts that were requeued and of which no record is there: which jobs, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.efficiency.unrecorded import Lives
from analytics.reliability.failure_rate import size_label
from data.interrupted import KEEP_ATTEMPTS, SACCT_ALONE, SEVERAL_NODES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb
    import pandas as pd


def find_lives(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Temporary tables unrecorded_attempt (attempts before which others are missing, by row id in
    jobs) and unrecorded_life (the same, alike ones as one); how many jobs, by cluster.

    An attempt that was requeued r times has r attempts before it; of those that no record shows
    each lay after the first submission of the job and before the submission that is recorded, which
    a requeue sets anew. Ids of jobs count up, so the job was first submitted no earlier than any
    job with a greater id, or than the last one before it, of those that were never requeued.

    Where an attempt that a requeue ended is recorded, the export kept them (`--duplicates`): then
    one is missing only where its job is known to have begun after the records do. Records of sacct
    that do not say how often a job was requeued, and keep none, leave it open of every job: then
    all alike count as one, from the begin of the records.
    """
    ((n_concerned,),) = connection.execute(
        f"""SELECT count(*) FROM jobs WHERE attempt <= restarts
              OR restarts IS NULL AND cluster IN ({SACCT_ALONE})"""
    ).fetchall()
    if not n_concerned:
        connection.execute(
            """CREATE OR REPLACE TEMP TABLE unrecorded_attempt (
                 id BIGINT, from_s BIGINT, until_s BIGINT)"""
        )
        return {}
    connection.execute(f"CREATE OR REPLACE TEMP TABLE unrecorded_attempt AS {_MISSING}")
    connection.execute(f"CREATE OR REPLACE TEMP TABLE unrecorded_life AS {_LIVES}")
    found = connection.execute(
        "SELECT cluster, CAST(sum(n_jobs) AS BIGINT) FROM unrecorded_life GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    return dict(found)


_ATTEMPTS = f"""
ordered AS (
  SELECT jobs.rowid AS id, jobs.cluster, partition, account, jobs.n_gpus, restarts, attempt,
    start_at, end_at, begin_s, window_.end_s, timelimit_s, window_.gpus_per_node,
    coalesce({SEVERAL_NODES}, true) AS several,
    CASE WHEN jobs.n_gpus IS NULL THEN n_nodes * gpus_per_node ELSE jobs.n_gpus END AS gpus,
    epoch_us(coalesce(submit_at, eligible_at, start_at)) // 1000000 AS until_s,
    epoch_us(submit_at) // 1000000 AS submit_s,
    coalesce(TRY_CAST(array_job_id AS BIGINT), TRY_CAST(job_id_raw AS BIGINT),
      TRY_CAST(regexp_extract(job_id, '^[0-9]+') AS BIGINT)) AS number,
    lag(restarts) OVER job AS restarts_before,
    epoch_us(lag(coalesce(end_at, start_at)) OVER job) // 1000000 AS before_s
  FROM jobs JOIN ledger_window window_ USING (cluster)
  WINDOW job AS (PARTITION BY cluster, job_id ORDER BY attempt)),
kept AS ({KEEP_ATTEMPTS}),
told AS ({SACCT_ALONE}),
longer AS (
  SELECT cluster, greatest(0, max(epoch_us(end_at - start_at) // 1000000 - timelimit_s)) AS over_s
  FROM ordered WHERE start_at IS NOT NULL GROUP BY cluster)"""
_MISSING = f"""
WITH {_ATTEMPTS},
submitted AS (
  SELECT cluster, number, min(submit_s) OVER (PARTITION BY cluster ORDER BY number
      ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS since_s
  FROM ordered WHERE restarts = 0 AND number IS NOT NULL AND submit_s IS NOT NULL),
counted AS (
  SELECT *, greatest(0, restarts - coalesce(restarts_before + 1, attempt - 1)) AS n_missing
  FROM ordered WHERE restarts > 0 AND gpus IS DISTINCT FROM 0),
dated AS (
  SELECT counted.*, coalesce(before_s, since_s, begin_s) AS life_s
  FROM (FROM counted WHERE n_missing > 0) counted ASOF LEFT JOIN submitted
    ON counted.cluster = submitted.cluster AND counted.number > submitted.number)
SELECT id, cluster, partition, account, n_gpus, several, greatest(life_s, begin_s) AS from_s,
  least(until_s, end_s) AS until_s, gpus AS most_gpus,
  CAST(n_missing AS DOUBLE) AS attempts, CAST(timelimit_s + coalesce(over_s, 0) AS DOUBLE)
    AS longest_s
FROM dated LEFT JOIN longer USING (cluster)
WHERE life_s > begin_s OR cluster NOT IN (FROM kept)
UNION ALL
SELECT id, cluster, partition, account, n_gpus, several, begin_s, least(until_s, end_s), gpus, NULL,
  NULL
FROM ordered WHERE restarts IS NULL AND gpus IS DISTINCT FROM 0
  AND cluster IN (FROM told) AND cluster NOT IN (FROM kept)
"""
_LIVES = """
SELECT cluster, partition, account, n_gpus, several, from_s, until_s, most_gpus, attempts,
  longest_s, 1 AS n_jobs
FROM unrecorded_attempt WHERE attempts IS NOT NULL
UNION ALL
SELECT cluster, partition, account, n_gpus, several, min(from_s), max(until_s),
  CASE WHEN count(*) = count(most_gpus) THEN sum(most_gpus) END, NULL, NULL, count(*)
FROM unrecorded_attempt WHERE attempts IS NULL
GROUP BY cluster, partition, account, n_gpus, several
"""


@dataclass(frozen=True)
class Jobs:
    """The jobs of a cluster with such attempts."""

    lives: Lives
    groups: pd.DataFrame
    """Partition, account and n_gpus of each group, by its code."""

    def named(self, changes: pd.DataFrame, cluster: str) -> pd.DataFrame:
        """What `unrecorded_time` found, as rows of the table of that name."""
        found = changes.join(self.groups, on="group").assign(cluster=cluster)
        sizes = {n: size_label(int(n)) for n in found["n_gpus"].dropna().unique()}
        return found.assign(size_class=found["n_gpus"].map(sizes))


def jobs_of(
    connection: duckdb.DuckDBPyConnection,
    cluster: str,
    habits: Mapping[str, Any],
    *,
    all_gpus: int,
) -> Jobs:
    """The jobs of a cluster with attempts without a record.

    Parameters
    ----------
    habits
        How jobs on several nodes and on one save and start up, as `Habits.record` says.
    all_gpus
        GPUs of a job of which nobody knows how many it has, at most.
    """
    rows = connection.execute(
        """SELECT * REPLACE (CAST(least(coalesce(most_gpus, $all_gpus), 2000000000) AS BIGINT)
             AS most_gpus), coalesce(n_gpus, 1) AS least_gpus,
             coalesce(n_gpus, most_gpus) AS size
           FROM unrecorded_life WHERE cluster = $cluster AND until_s > from_s""",
        {"cluster": cluster, "all_gpus": all_gpus},
    ).df()
    ((wasted,),) = connection.execute(
        "SELECT greatest(0, max(wasted_ratio)) FROM straggler_traces WHERE cluster = ?", [cluster]
    ).fetchall()
    keys = ["partition", "account", "size"]
    of_group = rows.groupby(keys, dropna=False, sort=True)
    names = of_group.size().reset_index()[keys].rename(columns={"size": "n_gpus"})
    several = rows["several"].to_numpy(dtype=bool)
    greatest = {
        name: np.where(several, *(habits[of][name][2] for of in ("several_nodes", "one_node")))
        for name in ("restart_s", "write_s", "interval_s")
    }
    least_s = np.where(
        several, *(habits[of]["interval_s"][1] for of in ("several_nodes", "one_node"))
    )
    counts = {"from_s": "from_s", "until_s": "until_s", "gpus": "most_gpus", "needs": "least_gpus"}
    lives = Lives(
        **{name: rows[column].to_numpy(dtype=np.int64) for name, column in counts.items()},
        attempts=rows["attempts"].fillna(np.inf).to_numpy(dtype=float),
        longest_s=rows["longest_s"].fillna(np.inf).to_numpy(dtype=float),
        startup_s=greatest["restart_s"].astype(float),
        unsaved_s=greatest["interval_s"].astype(float),
        written=greatest["write_s"] / (least_s + greatest["write_s"]),
        wasted=np.full(len(rows), float(wasted or 0.0)),
        group=np.asarray(of_group.ngroup(), dtype=np.int64),
    )
    return Jobs(lives, names)


def write_unrecorded(connection: duckdb.DuckDBPyConnection, rows: pd.DataFrame) -> None:
    """Fills `unrecorded_time`."""
    if rows.empty:
        return
    connection.register("unrecorded_rows", rows)
    connection.execute(
        """INSERT INTO unrecorded_time BY NAME
           SELECT DATE '1970-01-01' + CAST(day AS INTEGER) AS day, cluster, partition, account,
             size_class, CAST(n_gpus AS INTEGER) AS n_gpus, bucket, least AS least_gpu_seconds,
             most AS most_gpu_seconds
           FROM unrecorded_rows ORDER BY ALL"""
    )
    connection.unregister("unrecorded_rows")
