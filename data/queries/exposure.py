"""Attempts and failures of a selection, one by one, and the exposure in which they happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from data.queries.kept import kept
from data.said import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from data.queries.selection import Selection
    from data.store import Store

DAY_US = 86_400_000_000

ATTEMPTS = """
attempt AS (
  SELECT jobs.rowid AS id, jobs.cluster, attempt_key,
    coalesce(partition, 'unknown') AS partition, n_nodes,
    CASE WHEN basis = 'gpu_time' THEN n_gpus ELSE n_nodes END AS units,
    epoch_us(greatest(start_at, $from_at)) AS begin_us,
    epoch_us(least(coalesce(end_at, as_of_at), $to_at)) AS end_us
  FROM jobs JOIN clusters USING (cluster)
  WHERE start_at IS NOT NULL AND ($to_at IS NULL OR start_at < $to_at)
    AND ($from_at IS NULL OR end_at IS NULL OR end_at >= $from_at)
    AND ($cluster IS NULL OR jobs.cluster = $cluster)
    AND ($partition IS NULL OR partition = $partition)
    AND ($account IS NULL OR account = $account)
    AND CASE WHEN basis = 'gpu_time' THEN n_gpus >= greatest($min_gpus, 1) ELSE n_nodes > 0 END)
"""
"""Attempts of a selection with their running time cut to the period; units are GPUs or nodes.

One that failed at once, or as the period began, has no running time but is of the selection.
DuckDB's greatest and least ignore NULL, so an open side of the period cuts nothing.
"""

SPANS = f"""
span AS (SELECT *, begin_us // {DAY_US} AS first_day, (end_us - 1) // {DAY_US} AS last_day
         FROM attempt WHERE end_us > begin_us)
"""
"""Attempts that ran, with the days on which they did."""

FAILURES = f"""{VERDICTS},
failure AS (
  SELECT counted.cluster, counted.attempt_key, coalesce(partition, 'unknown') AS partition,
    CASE WHEN basis = 'gpu_time' THEN n_gpus ELSE n_nodes END AS units,
    basis IS DISTINCT FROM 'gpu_time' AS node_time, failed_at, counted.node,
    counted.domain = 'hardware' AS by_hardware, counted.node_lost AS by_lost_node
  FROM (FROM verdict WHERE domain = 'hardware' OR node_lost) counted
  JOIN jobs USING (cluster, attempt_key) JOIN clusters USING (cluster)
  WHERE end_at IS NOT NULL AND ($to_at IS NULL OR end_at < $to_at)
    AND ($from_at IS NULL OR end_at >= $from_at)
    AND ($cluster IS NULL OR counted.cluster = $cluster)
    AND ($partition IS NULL OR partition = $partition)
    AND ($account IS NULL OR account = $account)
    AND CASE WHEN basis = 'gpu_time' THEN n_gpus >= greatest($min_gpus, 1) ELSE true END)
"""
"""Attempts of a selection that count as failed: verdict hardware, or a node lost whatever it is.

They count by their end, which spares reading other periods.
"""

_OF_NODES = """($cluster IS NULL OR cluster = $cluster) AND $partition IS NULL
  AND $account IS NULL AND start_at IS NOT NULL"""
_STARTED = """($from_at IS NULL OR start_at >= $from_at)
  AND ($to_at IS NULL OR start_at < $to_at)"""
_WITHOUT_JOBS = "cluster IN (SELECT cluster FROM clusters WHERE basis = 'node_failures')"

LOGGED = f"{_OF_NODES} AND {_STARTED} AND {_WITHOUT_JOBS}"
"""Condition for the node failures that count: of clusters without jobs, in the period."""

LOGGED_DAYS = f"""
logged_span AS (
  SELECT cluster, coalesce($from_at, min(start_at)) AS begin_at,
    greatest(begin_at, coalesce($to_at, max(start_at))) AS end_at
  FROM node_failures WHERE {_OF_NODES} AND {_WITHOUT_JOBS} GROUP BY cluster),
logged_day AS (
  SELECT cluster, day, greatest(0, least(epoch_us(end_at), (day + 1) * {DAY_US})
    - greatest(epoch_us(begin_at), day * {DAY_US})) / {DAY_US} AS days
  FROM (SELECT *, unnest(range(CAST(begin_at AS DATE) - DATE '1970-01-01',
      CAST(end_at AS DATE) - DATE '1970-01-01' + 1)) AS day FROM logged_span)
  WHERE day * {DAY_US} < epoch_us(end_at) OR begin_at = end_at)
"""
"""The period of clusters whose failures are known without jobs, day by day.

It runs from `from_at`, else the first failure, to `to_at`, else the last one. Days are counted by
the calendar here: DuckDB's // truncates, which before 1970 is the wrong day.
"""


def parameters(selection: Selection, *, min_gpus: int | None = None) -> dict[str, Any]:
    """A selection as bound parameters; of jobs of other sizes where `min_gpus` is given."""
    return {
        "cluster": selection.cluster,
        "from_at": selection.from_at,
        "to_at": selection.to_at,
        "partition": selection.partition,
        "account": selection.account,
        "min_gpus": selection.min_gpus if min_gpus is None else min_gpus,
    }


@kept
def runs(store: Store, selection: Selection, *, by_partition: bool = False) -> pd.DataFrame:
    """Exposure of all sizes by cluster, number of GPUs and day; by partition where asked for.

    Columns partition, n_gpus, node_time, day, running_days, exposure_node_days; the exposure is
    NaN where the GPUs of a node are not known. Attempts are summed by their first and last day
    before they are split into days, of which there are then few.
    """
    partition = "partition" if by_partition else "NULL"
    frame = store.frame(
        f"""WITH {ATTEMPTS}, {SPANS},
            alike AS (
              SELECT cluster, {partition} AS partition, units, first_day, last_day,
                sum(end_us - begin_us) AS whole_us, count(*) * {DAY_US} AS full_us,
                sum((first_day + 1) * {DAY_US} - begin_us) AS head_us,
                sum(end_us - last_day * {DAY_US}) AS tail_us
              FROM span GROUP BY ALL),
            held AS (
              SELECT cluster, partition, units, day, CAST(sum(
                  CASE WHEN first_day = last_day THEN whole_us WHEN day = first_day THEN head_us
                    WHEN day = last_day THEN tail_us ELSE full_us END) AS DOUBLE) / {DAY_US}
                AS running_days
              FROM (SELECT *, unnest(range(first_day, last_day + 1)) AS day FROM alike)
              GROUP BY ALL)
            SELECT partition, units AS n_gpus, basis <> 'gpu_time' AS node_time, day, running_days,
              running_days * units / CASE WHEN basis = 'gpu_time' THEN gpus_per_node ELSE 1 END
                AS exposure_node_days
            FROM held JOIN clusters USING (cluster) ORDER BY cluster, partition, units, day""",
        parameters(selection, min_gpus=0),
    )
    return frame.assign(day=as_day(frame["day"]))


@kept
def job_failures(store: Store, selection: Selection) -> pd.DataFrame:
    """Failed attempts of all sizes, one row each, with the incident that each belongs to."""
    frame = store.frame(
        f"""WITH {FAILURES} SELECT cluster, attempt_key AS key, partition, units AS n_gpus,
              node_time, failed_at, node, incident_id, by_hardware, by_lost_node
            FROM failure LEFT JOIN (
              SELECT incidents.cluster, key AS attempt_key, incident_id
              FROM incident_members JOIN incidents USING (incident_id) WHERE kind = 'failure'
            ) USING (cluster, attempt_key) ORDER BY failed_at, attempt_key""",
        parameters(selection, min_gpus=0),
    )
    return frame.assign(day=frame["failed_at"].dt.floor("D"))


def of_size(rows: pd.DataFrame, min_gpus: int) -> pd.DataFrame:
    """Rows of jobs of that many GPUs and more; where no attempt has GPUs, all of them."""
    return rows[rows["n_gpus"].ge(min_gpus) | rows["node_time"]]


def node_failures(store: Store, selection: Selection) -> pd.DataFrame:
    """Failures of nodes known without jobs, one row each."""
    frame = store.frame(
        f"""SELECT cluster, failure_key AS key, start_at AS failed_at, node, repair_minutes,
              CAST(NULL AS VARCHAR) AS incident_id
            FROM node_failures WHERE {LOGGED} ORDER BY start_at, failure_key""",
        parameters(selection),
    )
    return frame.assign(day=frame["failed_at"].dt.floor("D"))


def node_failure_days(store: Store, selection: Selection) -> pd.DataFrame:
    """Exposure by day of clusters whose failures are known without jobs: known nodes x period.

    It is NaN where no inventory says which nodes there are.
    """
    frame = store.frame(
        f"""WITH {LOGGED_DAYS},
            known AS (SELECT cluster, count(DISTINCT node) AS n_nodes FROM nodes
                      WHERE source = 'inventory' GROUP BY cluster)
            SELECT day, n_nodes * days AS exposure_node_days
            FROM logged_day LEFT JOIN known USING (cluster) ORDER BY cluster, day""",
        parameters(selection),
    )
    return frame.assign(day=as_day(frame["day"]))


def repair_minutes(store: Store, selection: Selection) -> pd.Series:
    """Minutes down of each failure of a node in the period whose repair is known."""
    frame = store.frame(
        f"""SELECT repair_minutes FROM node_failures
            WHERE {_OF_NODES} AND {_STARTED} AND repair_minutes >= 0
            ORDER BY start_at, failure_key""",
        parameters(selection),
    )
    return frame["repair_minutes"]


def stacked(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Frames one above the other; empty ones are left out, since pandas warns of them."""
    filled = [frame for frame in frames if not frame.empty]
    return pd.concat(filled, ignore_index=True) if filled else frames[0]


def as_day(days: pd.Series) -> pd.Series:
    """Days since the epoch as UTC times; of any year, which pandas' own conversion is not."""
    times = days.to_numpy(dtype=np.int64).astype("datetime64[D]").astype("datetime64[us]")
    return pd.Series(times, index=days.index).dt.tz_localize("UTC")
