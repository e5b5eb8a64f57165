"""Stored straggler traces: their results, the runs that they are of, and who ran where."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from data.errors import DataError
from data.filters import Filter
from data.metrics_files import METRICS

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from data.filters import Selection
    from data.store import Store

_COLUMNS = """trace_id, name, cluster, job_id, run_id, traced_at, n_gpus, n_workers, dp, pp, vpp,
  tp, n_rows, n_steps, n_dropped_steps, slowdown, wasted_ratio, path"""
_TRACED = Filter(columns=("cluster",), within="traced_at", undated=True, n_gpus="n_gpus")
_OF_JOB = Filter(of="jobs", columns=("partition", "account"))
_ERROR = "CAST(json_extract(results, '$.simulation_error_ratio') AS DOUBLE)"
_CAUSE = "coalesce(cause, json_extract_string(results, '$.causes[0].cause'))"


def traces(store: Store, selection: Selection) -> pd.DataFrame:
    """The traces of a selection, newest first, those of unknown time last.

    A trace without a time is in every period, one without a job in no partition or account. Columns
    as of the table, `cause`, `simulation_error_ratio`, and `gpu_hours`: of all attempts of the run,
    divided evenly over its traces; NULL where the store does not know the run.
    """
    job = _OF_JOB.where(selection)
    of_job = f"""EXISTS (
              SELECT 1 FROM jobs
              WHERE jobs.cluster = traced.cluster AND jobs.job_id = traced.job_id AND {job})"""
    return store.frame(
        f"""WITH ran AS (
              SELECT cluster, coalesce(run_id, job_id) AS run_id,
                sum(n_gpus * coalesce(elapsed_s,
                  epoch(coalesce(end_at, as_of_at)) - epoch(start_at))) / 3600 AS gpu_hours
              FROM jobs JOIN (SELECT cluster, as_of_at FROM clusters) USING (cluster)
              WHERE n_gpus > 0 AND start_at IS NOT NULL AND coalesce(run_id, job_id) IN (
                SELECT run_id FROM straggler_traces) GROUP BY ALL),
            traced AS (
              SELECT {_COLUMNS}, {_CAUSE} AS cause, {_ERROR} AS simulation_error_ratio,
                count(*) OVER (PARTITION BY cluster, coalesce(run_id, trace_id)) AS n_of_run
              FROM straggler_traces)
            SELECT traced.* EXCLUDE (n_of_run), gpu_hours / n_of_run AS gpu_hours
            FROM traced LEFT JOIN ran USING (cluster, run_id)
            WHERE {_TRACED.where(selection)} AND {"true" if job == "true" else of_job}
            ORDER BY traced_at DESC NULLS LAST, name, trace_id""",
        selection.parameters,
    )


def n_traces(store: Store) -> int:
    """All traces of the store."""
    ((n,),) = store.rows("SELECT count(*) FROM straggler_traces")
    return int(n)


def traces_of_job(store: Store, cluster: str, job_id: str) -> pd.DataFrame:
    """The traces of a job, newest first; columns trace_id, name, slowdown, cause."""
    return store.frame(
        f"""SELECT trace_id, name, slowdown, {_CAUSE} AS cause FROM straggler_traces
            WHERE cluster = $cluster AND job_id = $job
            ORDER BY traced_at DESC NULLS LAST, name, trace_id""",
        {"cluster": cluster, "job": job_id},
    )


def trace(store: Store, trace_id: str) -> dict[str, Any]:
    """One trace: the columns of the table, and `results`, the record of the what-if.

    Raises
    ------
    DataError
        Where the store has no such trace, or it could not be analysed.
    """
    rows = store.rows(
        f"SELECT {_COLUMNS}, results FROM straggler_traces WHERE trace_id = $trace",
        {"trace": trace_id},
    )
    if not rows:
        raise DataError(
            f"the store holds no trace {trace_id!r}: `faultline stragglers --store {store.root}` "
            "lists those it holds"
        )
    names = [name.strip() for name in f"{_COLUMNS}, results".split(",")]
    row = dict(zip(names, rows[0], strict=True))
    results = json.loads(row["results"] or '{"error": "its file is gone or damaged"}')
    if "error" in results:
        raise DataError(f"the trace {row['name']} cannot be analysed: {results['error']}")
    return row | {"results": results}


def unanalysed(store: Store) -> list[tuple[str, str]]:
    """Name of each trace that could not be analysed, and why."""
    return store.rows(
        """SELECT name, coalesce(json_extract_string(results, '$.error'),
             'its file is gone or damaged') AS error
           FROM straggler_traces WHERE slowdown IS NULL ORDER BY name"""
    )


def file_of(store: Store, path: str) -> Path:
    """The file of a trace."""
    return store.root / METRICS / path


def ranks(store: Store, path: str) -> dict[tuple[int, int], int] | None:
    """Label of each worker (dp_rank, stage); None where the trace has none, or not one each."""
    file = str(file_of(store, path))
    columns = store.rows("SELECT name FROM parquet_schema($file)", {"file": file})
    if ("rank",) not in columns:
        return None
    rows = store.rows(
        """SELECT dp_rank, stage, min(rank), count(DISTINCT rank) FROM read_parquet($file)
           GROUP BY ALL""",
        {"file": file},
    )
    if any(n > 1 for *_, n in rows):
        return None
    return {(dp, stage): rank for dp, stage, rank, _ in rows}


def attempts(store: Store, cluster: str, job_id: str) -> list[dict[str, Any]]:
    """Started attempts of a job, oldest first: attempt, n_gpus, node_list, start_at, end_at."""
    names = ("attempt", "n_gpus", "node_list", "start_at", "end_at")
    rows = store.rows(
        f"""SELECT {", ".join(names)} FROM jobs
            WHERE cluster = $cluster AND job_id = $job AND start_at IS NOT NULL
            ORDER BY start_at, attempt""",
        {"cluster": cluster, "job": job_id},
    )
    return [dict(zip(names, row, strict=True)) for row in rows]
