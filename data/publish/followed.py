"""Rows that follow from pods, queues and nodes of Kubernetes and from samples of XIDs, made as they
merge.

Of each job, or node, that a merge concerned, all that follows is made anew from all of its records:
so attempts of jobs, intervals out of service and XIDs depend on the set of records alone.
"""

from __future__ import annotations

import hashlib
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from analytics.fleet.inventory import Seen, outages
from analytics.fleet.pod_attempts import PodRun, QueueChange, attempts, end_of, queue_attempts
from data.metric_kinds import XID_GAUGE
from data.tables import records, tables
from data.tables.node_events import CONDITIONS as SOURCE
from data.tables.table import NODE_AS_WRITTEN, UNNAMED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    import duckdb

    from analytics.fleet.inventory import Outage
    from analytics.fleet.pod_attempts import Attempt
    from data.publish.merge import Touched

_JOB_COLUMNS = (
    "attempt_key", "account", "partition", "qos", "name", "state", "state_raw", "exit_code",
    "exit_signal", "reason", "failed_node", "submit_at", "start_at", "end_at", "timelimit_s",
    "n_nodes", "n_gpus", "node_list",
)  # fmt: skip
_RUN_COLUMNS = (
    *PodRun._fields, "namespace", "queue", "priority_class", "name", "state_raw", "exit_code",
    "exit_signal", "reason", "timelimit_s",
)  # fmt: skip
_JOB_NODES = ("cluster", "attempt_key", "node", "n_gpus", "start_at", "end_at")
_EVENT_STATE = {"Ready": "DOWN", "Schedulable": "DRAIN", "NetworkAvailable": "DOWN"}
_KEPT = 20_000
"""Of more jobs or nodes at once the table that follows counts as changed in whole."""


def follow(
    connection: duckdb.DuckDBPyConnection, table: str, top: int, touched: Touched | None
) -> dict[str, int]:
    """Makes anew what follows from the rows of a table above row id `top`; rows changed by table.

    Call it in the transaction that merged them.
    """
    if table not in _FOLLOWS:
        return {}
    target, group, where, make = _FOLLOWS[table]
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE concerned AS
            SELECT DISTINCT cluster, {group} FROM {table} WHERE rowid > {top} AND {where}"""
    )
    ((n_concerned,),) = connection.execute("SELECT count(*) FROM concerned").fetchall()
    if n_concerned == 0:
        return {}
    if touched is not None and n_concerned > _KEPT:
        touched.forget({target})
    return make(connection, touched)


def _jobs(connection: duckdb.DuckDBPyConnection, touched: Touched | None) -> dict[str, int]:
    """Attempts of the jobs concerned, with their nodes: of their pods, else as their queue says."""
    rows = connection.execute(
        f"""SELECT cluster, job_id, {", ".join(_RUN_COLUMNS)}
            FROM pod_runs SEMI JOIN concerned USING (cluster, job_id) ORDER BY cluster, job_id"""
    ).fetchall()
    queued = _queued(connection)
    found: list[tuple[Any, ...]] = []
    nodes: list[tuple[Any, ...]] = []
    n_fields = len(PodRun._fields)
    for (cluster, job_id), of_job in groupby(rows, key=lambda row: row[:2]):
        changes = queued.pop((cluster, job_id), [])
        runs = {row[2:4]: _as_queue_says(row[2:], changes) for row in of_job}
        for one in attempts(PodRun(*list(run.values())[:n_fields]) for run in runs.values()):
            told = runs[one.telling[:2]]
            values = _job(cluster, job_id, one, told)
            found.append((cluster, job_id, *values))
            nodes += [
                (cluster, values[0], host, n_gpus, one.start_at, one.end_at)
                for host, n_gpus in one.gpus.items()
            ]
    for (cluster, job_id), changes in queued.items():
        found += [(cluster, job_id, *values) for values in _jobs_of_queue(cluster, job_id, changes)]
    columns = ("cluster", "job_id", *_JOB_COLUMNS)
    _register(connection, "jobs", columns, found, run_id="job_id")
    of_jobs = "(cluster, job_id) IN (SELECT cluster, job_id FROM concerned)"
    n_jobs = _replace(connection, "jobs", of_jobs, touched)
    connection.execute(
        """DELETE FROM job_nodes WHERE (cluster, attempt_key) IN (
             SELECT cluster, attempt_key FROM gone UNION SELECT cluster, attempt_key FROM came)"""
    )
    _register(connection, "job_nodes", _JOB_NODES, nodes)
    ((n_nodes,),) = connection.execute(
        """INSERT INTO job_nodes BY NAME
           SELECT * FROM followed SEMI JOIN came USING (cluster, attempt_key)"""
    ).fetchall()
    return {"jobs": n_jobs, "job_nodes": n_nodes}


class _Told(NamedTuple):
    """What a queue did with a job; columns of `queue_changes`."""

    change: str
    changed_at: datetime
    state: str | None
    reason: str | None
    namespace: str | None
    name: str | None
    queue: str | None
    priority_class: str | None
    n_gpus: int | None
    timelimit_s: int | None

    def as_change(self) -> QueueChange:
        """What attempts follow from."""
        return QueueChange(self.change, self.changed_at, self.state, self.reason)


def _queued(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], list[_Told]]:
    """What queues did with the jobs concerned, the latest version of each object last."""
    rows = connection.execute(
        f"""SELECT cluster, job_id, {", ".join(_Told._fields)}
            FROM queue_changes SEMI JOIN concerned USING (cluster, job_id)
            ORDER BY cluster, job_id, version, object_uid, changed_at, change"""
    ).fetchall()
    return {
        key: [_Told(*row[2:]) for row in of_job]
        for key, of_job in groupby(rows, key=lambda row: row[:2])
    }


def _latest(told: list[_Told], name: str) -> Any:
    """What the latest version that states it says."""
    stated = (getattr(one, name) for one in reversed(told))
    return next((value for value in stated if value is not None), None)


def _as_queue_says(row: tuple[Any, ...], told: list[_Told]) -> dict[str, Any]:
    """A run of a pod, with what its job's queue says of it: queue, priority and why it ended."""
    run = dict(zip(_RUN_COLUMNS, row, strict=True))
    if not told:
        return run
    for name in ("queue", "priority_class"):
        run[name] = run[name] or _latest(told, name)
    end = end_of(PodRun(*row[: len(PodRun._fields)]), map(_Told.as_change, told))
    if end is not None:
        run |= {"is_over": True, "end_at": run["end_at"] or end.changed_at, "state": end.state,
                "state_raw": f"{run['state_raw']}/{end.change}", "reason": end.reason}  # fmt: skip
    return run


def _jobs_of_queue(cluster: str, job_id: str, told: list[_Told]) -> Iterator[tuple[Any, ...]]:
    """Attempts of a job without pods as rows of `jobs`, from their key on; of nodes unknown."""
    for one in queue_attempts(map(_Told.as_change, told)):
        key = f"queue|{cluster}|{job_id}|{one.submit_at}|{one.start_at}"
        yield (
            hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()[:20],
            *(_latest(told, name) for name in ("namespace", "queue", "priority_class", "name")),
            one.state,
            one.state,
            None,
            None,
            one.reason,
            None,
            one.submit_at,
            one.start_at,
            one.end_at,
            _latest(told, "timelimit_s"),
            None,
            _latest(told, "n_gpus"),
            None,
        )


def _job(cluster: str, job_id: str, one: Attempt, told: dict[str, Any]) -> tuple[Any, ...]:
    """An attempt as a row of `jobs`, from its key on."""
    key = f"pod|{cluster}|{job_id}|{one.first.pod_uid}|{one.first.run}"
    ended = one.state == one.telling.state
    return (
        hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()[:20],
        told["namespace"],
        told["queue"],
        told["priority_class"],
        told["name"],
        one.state,
        told["state_raw"],
        told["exit_code"] if ended else None,
        told["exit_signal"] if ended else None,
        told["reason"],
        one.telling.host if one.state == "NODE_FAIL" else None,
        one.submit_at,
        one.start_at,
        one.end_at,
        told["timelimit_s"],
        len(one.gpus) or None,
        one.n_gpus,
        ",".join(one.gpus) or None,
    )


def _node_events(connection: duckdb.DuckDBPyConnection, touched: Touched | None) -> dict[str, int]:
    """Intervals out of service of the nodes concerned."""
    rows = connection.execute(
        """SELECT cluster, host, condition, since_at, holds, reason
           FROM node_conditions SEMI JOIN concerned USING (cluster, host) ORDER BY 1, 2, 3"""
    ).fetchall()
    found: dict[tuple[Any, ...], Outage] = {}
    states: dict[tuple[Any, ...], str] = {}
    for (cluster, host, condition), seen in groupby(rows, key=lambda row: row[:3]):
        for one in outages(Seen(*row[3:]) for row in seen):
            key = (cluster, host, one.start_at)
            longest = found.get(key)
            if longest is None or (
                longest.end_at and not (one.end_at and one.end_at <= longest.end_at)
            ):
                found[key], states[key] = one, _EVENT_STATE[condition]
    columns = ("cluster", "node", "start_at", "end_at", "state", "reason", "source")
    events = [(*key, one.end_at, states[key], one.reason, SOURCE) for key, one in found.items()]
    _register(connection, "node_events", columns, events)
    return {"node_events": _replace(connection, "node_events", _OF_CONDITIONS, touched)}


_OF_CONDITIONS = f"""source = '{SOURCE}' AND (cluster, coalesce(node_written, node)) IN (
  SELECT cluster, host FROM concerned)"""


def _xids(connection: duckdb.DuckDBPyConnection, touched: Touched | None) -> dict[str, int]:
    """XIDs of the nodes concerned: an event where the gauge of the last XID changes.

    The gauge repeats its value until the next XID, so an XID that comes twice running shows once.
    One that stood there at the first sample happened at an unknown time. Events older than the
    first sample stay, for retention removed the samples that they follow from; where the gauge
    still shows the last of them, nothing new happened.
    """
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE gauge AS
            SELECT cluster, {NODE_AS_WRITTEN} AS host, gpu, observed_at, max(reading) AS xid,
              max(cluster_from) AS cluster_from
            FROM node_metrics WHERE metric = '{XID_GAUGE}'
              AND (cluster, {NODE_AS_WRITTEN}) IN (SELECT cluster, node FROM concerned)
            GROUP BY ALL"""
    )
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE first_sample AS
           SELECT cluster, host, gpu, min(observed_at) AS first_at FROM gauge GROUP BY ALL"""
    )
    rows = connection.execute(
        f"""WITH kept AS (
              SELECT cluster, {NODE_AS_WRITTEN} AS host, gpu, max_by(xid, observed_at) AS xid
              FROM health_events WHERE {_SHOWN_BY_GAUGE} AND NOT {_OF_SAMPLES} GROUP BY ALL),
            followed AS (
              SELECT gauge.*, lag(observed_at) OVER of_gpu AS before_at,
                coalesce(lag(gauge.xid) OVER of_gpu, kept.xid) AS before
              FROM gauge LEFT JOIN kept ON kept.cluster = gauge.cluster AND kept.host = gauge.host
                AND kept.gpu IS NOT DISTINCT FROM gauge.gpu
              WINDOW of_gpu AS (
                PARTITION BY gauge.cluster, gauge.host, gauge.gpu ORDER BY observed_at))
            SELECT cluster, host, gpu, observed_at, xid, before_at, cluster_from FROM followed
            WHERE xid BETWEEN 1 AND 9999 AND xid = floor(xid) AND xid IS DISTINCT FROM before
            ORDER BY ALL"""
    ).fetchall()
    found = []
    for cluster, host, gpu, seen_at, xid, before_at, told_by in rows:
        stated = UNNAMED if told_by else cluster
        key = f"{XID_GAUGE}|{stated}|{host}|{gpu}|{seen_at.timestamp()}|{xid:.0f}"
        since = f"not yet at {before_at:{_TIME}}" if before_at else "since when is unknown"
        found.append((
            cluster, hashlib.sha256(key.encode()).hexdigest()[:24], host, gpu,
            seen_at if before_at else None, "dcgm", "xid", int(xid),
            f"{XID_GAUGE} {xid:.0f} at {seen_at:{_TIME}}, {since}", told_by,
        ))  # fmt: skip
    _register(connection, "health_events", _XID_COLUMNS, found)
    return {"health_events": _replace(connection, "health_events", _OF_GAUGE, touched)}


def follow_placed(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Makes anew what follows from samples that were given another cluster; the tables it changed.

    Samples without a cluster show no event until a cluster knows their host.
    """
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE concerned AS
            SELECT DISTINCT cluster, {NODE_AS_WRITTEN} AS node FROM node_metrics
            WHERE metric = '{XID_GAUGE}' AND cluster_from IS NOT NULL"""
    )
    return {table for table, n_rows in _xids(connection, None).items() if n_rows}


_TIME = "%Y-%m-%d %H:%M:%S"
_XID_COLUMNS = (
    "cluster", "event_id", "node", "gpu", "observed_at", "source", "check_name", "xid", "message",
    "cluster_from",
)  # fmt: skip
_SHOWN_BY_GAUGE = f"""source = 'dcgm' AND starts_with(message, '{XID_GAUGE}')
  AND (cluster, {NODE_AS_WRITTEN}) IN (SELECT cluster, node FROM concerned)"""
_OF_SAMPLES = f"""coalesce(observed_at >= (
    SELECT first_at FROM first_sample WHERE first_sample.cluster = health_events.cluster
      AND first_sample.host = {NODE_AS_WRITTEN}
      AND first_sample.gpu IS NOT DISTINCT FROM health_events.gpu), observed_at IS NULL)"""
"""Condition of an event that follows from samples which are there."""
_OF_GAUGE = f"{_SHOWN_BY_GAUGE} AND {_OF_SAMPLES}"


def _register(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: Iterable[str],
    rows: list[tuple[Any, ...]],
    **copies: str,
) -> None:
    """Temporary table `followed`: rows with the types that the table's columns have."""
    import pyarrow as pa

    declared, names = tables()[table].columns, list(columns)
    values = list(zip(*rows, strict=True)) or [() for _ in names]
    arrays = {name: pa.array(column) for name, column in zip(names, values, strict=True)}
    typed = [f'CAST("{name}" AS {declared[name].type}) AS "{name}"' for name in names]
    typed += [f"{column} AS {name}" for name, column in copies.items()]
    connection.register("following", pa.table(arrays))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE followed AS SELECT {', '.join(typed)} FROM following"
    )
    connection.unregister("following")


def _replace(
    connection: duckdb.DuckDBPyConnection, table: str, old: str, touched: Touched | None
) -> int:
    """Puts the rows of `followed` in place of old ones, of which those alike stay; how many differ.

    Temporary tables `gone` and `came` hold which rows did.
    """
    rule = records()[table]
    connection.execute(f"CREATE OR REPLACE TEMP TABLE wanted AS FROM {table} LIMIT 0")
    connection.execute("INSERT INTO wanted BY NAME FROM followed")
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE gone AS SELECT rowid AS id, * FROM {table}
            WHERE {old} AND {rule.content} NOT IN (SELECT {rule.content} FROM wanted)"""
    )
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE came AS FROM wanted
            WHERE {rule.content} NOT IN (SELECT {rule.content} FROM {table} WHERE {old})"""
    )
    if touched is not None:
        touched.keep(table, "rowid IN (SELECT id FROM gone)", gone=True)
    connection.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT id FROM gone)")
    ((top,),) = connection.execute(f"SELECT coalesce(max(rowid), -1) FROM {table}").fetchall()
    connection.execute(f"INSERT INTO {table} BY NAME FROM came")
    if touched is not None:
        touched.keep(table, f"rowid > {top}", gone=False)
    ((n_changed,),) = connection.execute(
        "SELECT greatest((SELECT count(*) FROM came), (SELECT count(*) FROM gone))"
    ).fetchall()
    return int(n_changed)


_Make: TypeAlias = "Callable[[duckdb.DuckDBPyConnection, Touched | None], dict[str, int]]"
_FOLLOWS: dict[str, tuple[str, str, str, _Make]] = {
    "pod_runs": ("jobs", "job_id", "true", _jobs),
    "queue_changes": ("jobs", "job_id", "true", _jobs),
    "node_conditions": ("node_events", "host", "true", _node_events),
    "node_metrics": ("health_events", "node", f"metric = '{XID_GAUGE}'", _xids),
}
"""Table -> the table that follows from it, the column that says which records belong together,
those from which anything follows, and what makes its rows."""
