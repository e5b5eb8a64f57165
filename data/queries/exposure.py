"""Attempts and failures of a selection, one by one, and the exposure in which they happened."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec
from weakref import WeakKeyDictionary

from analytics.frames import DEFINITION
from data.definitions import FAILED_BY
from data.filters import Filter
from data.queries.whole_days import of_all_time, whole_days
from data.running_time import DAY_US, days_held, local_day, midnight_us
from data.said import ARRANGED, FAILED_ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from analytics.arrays import Bools, Floats
    from analytics.frames import Columns
    from data.filters import Selection
    from data.queries.whole_days import WholeDays
    from data.store import Store

P = ParamSpec("P")

ROWS_KEPT = 1_000_000
"""Rows that are kept of one store: a page asks of a period, of the quarter before it, and of the
sizes and definitions that its lines compare."""
LEAST_ROOM = 1_000
"""Rows that an answer counts as at least: one that has none takes room, too."""
LARGEST_KEPT = 200_000
"""Rows up to which an answer is kept."""
_KEPT: WeakKeyDictionary[Store, dict[tuple[Any, ...], Columns]] = WeakKeyDictionary()


def kept(
    query: Callable[Concatenate[Store, Selection, P], Columns],
) -> Callable[Concatenate[Store, Selection, P], Columns]:
    """The query, run once for what is asked again at once; callers leave its columns unchanged.

    A snapshot never changes. Rate, weeks and partitions rest on the same two queries, which are
    half of what a page costs on four million attempts.
    """

    @wraps(query)
    def answer(
        store: Store, selection: Selection, /, *args: P.args, **options: P.kwargs
    ) -> Columns:
        answers = _KEPT.setdefault(store, {})
        asked = sorted((name, value) for name, value in options.items() if value)
        key = (query.__name__, selection.rows, args, tuple(asked))
        columns = answers.get(key)
        if columns is None:
            columns = query(store, selection, *args, **options)
            if _n_rows(columns) <= LARGEST_KEPT:
                answers[key] = columns
            while sum(map(_room, list(answers.values()))) > ROWS_KEPT:
                for oldest in list(answers)[:1]:
                    answers.pop(oldest, None)  # other sessions share the store
        return columns

    return answer


def _n_rows(columns: Columns) -> int:
    """Rows of an answer."""
    return len(next(iter(columns.values())))


def _room(columns: Columns) -> int:
    """Rows that an answer counts as."""
    return max(LEAST_ROOM, _n_rows(columns))


LEAST_DAYS = 5
"""Whole days from which on running time comes from sums: half of what its rows cost is their
split into days."""
_RAN = Filter(overlaps=("start_at", "end_at"), of="jobs")
_KEPT_OF = Filter(columns=("cluster", "partition"), of="running_time")
_FAILED = Filter(within="failed_at")
_RUN_US = (
    """greatest(0, epoch_us(least(end_at, $to_at)) - epoch_us(greatest(start_at, $from_at)))"""
)
_CHOSEN = Filter(of="jobs")
_CLUSTER = Filter(columns=("cluster",))
_HELD = Filter(columns=("cluster",), overlaps=("start_at", "end_at"))
_OF_NODES = Filter(columns=("cluster",), lacking=("partition", "account"))
_NODES_FAILED = replace(_OF_NODES, within="start_at")
_WITHOUT_JOBS = """start_at IS NOT NULL
  AND cluster IN (SELECT cluster FROM clusters WHERE basis = 'node_failures')"""


def attempts_of(selection: Selection, which: str = "true") -> str:
    """Common table `attempt`: attempts with their running time cut to the period; units are GPUs
    or nodes, of which one node has `of_node`; `runs` of one that has not ended. `which` is a
    further condition.

    One that failed at once, or as the period began, has no running time but is of the selection.
    DuckDB's greatest and least ignore NULL, so an open side of the period cuts nothing.
    """
    return f"""
attempt AS MATERIALIZED (
  SELECT jobs.rowid AS id, jobs.cluster, attempt_key,
    coalesce(partition, 'unknown') AS partition, n_nodes,
    CASE WHEN basis = 'gpu_time' THEN n_gpus ELSE n_nodes END AS units,
    CASE WHEN basis = 'gpu_time' THEN coalesce(node_gpus, gpus_per_node) ELSE 1 END AS of_node,
    epoch_us(greatest(start_at, $from_at)) AS begin_us,
    epoch_us(least(coalesce(end_at, as_of_at), $to_at)) AS end_us, end_at IS NULL AS runs
  FROM jobs JOIN clusters USING (cluster)
  WHERE start_at IS NOT NULL AND {_RAN.where(selection)} AND {which}
    AND CASE WHEN basis = 'gpu_time' THEN n_gpus >= greatest($min_gpus, 1) ELSE n_nodes > 0 END)
"""


OF_RATED_SIZE = """CASE WHEN basis = 'gpu_time' THEN n_gpus >= greatest($min_gpus, 1)
  ELSE true END"""
"""Condition for attempts of a size that is asked for and has exposure."""


def in_the_rate(selection: Selection) -> str:
    """Condition on `failed_attempt` and `clusters` for attempts that can count in a rate: they have
    exposure.

    They count by their end.
    """
    return f"failed_at IS NOT NULL AND {_FAILED.where(selection)} AND {OF_RATED_SIZE}"


def failures_of(selection: Selection) -> str:
    """Common tables up to `failure`: attempts that count as failed by the selection's definition.

    They count by their end, which spares reading other periods.
    """
    return f"""{FAILED_ATTEMPTS},
failure AS (
  SELECT cluster, attempt_key, coalesce(partition, 'unknown') AS partition,
    CASE WHEN basis = 'gpu_time' THEN n_gpus ELSE n_nodes END AS units,
    basis IS DISTINCT FROM 'gpu_time' AS node_time, failed_at, timezone, node, domain,
    node_lost, start_at AS failed_start_at, account AS failed_account
  FROM failed_attempt JOIN clusters USING (cluster)
  WHERE {FAILED_BY[selection.definition]} AND {in_the_rate(selection)})
"""


def node_failures_of(selection: Selection) -> str:
    """Condition for the node failures that count: of clusters without jobs, in the period.

    What hit something that is no node is no lost node: it counts by the default definition alone.
    """
    which = "true" if selection.definition == DEFINITION else "hit IS NULL"
    return f"{_NODES_FAILED.where(selection)} AND {_WITHOUT_JOBS} AND {which}"


def node_days_of(selection: Selection) -> str:
    """Common tables up to `logged_day`: the period of clusters whose failures are known without
    jobs, day by day.

    It runs from `from_at`, else the first failure, to `to_at`, else the last one. Days are counted
    by the calendar here: DuckDB's // truncates, which before 1970 is the wrong day.
    """
    return f"""
logged_span AS (
  SELECT cluster, coalesce($from_at, min(start_at)) AS begin_at,
    greatest(begin_at, coalesce($to_at, max(start_at))) AS end_at
  FROM node_failures WHERE {_OF_NODES.where(selection)} AND {_WITHOUT_JOBS} GROUP BY cluster),
logged_day AS (
  SELECT cluster, day, {midnight_us("day")} AS from_us,
    greatest(0, least(epoch_us(end_at), {midnight_us("day + 1")})
      - greatest(epoch_us(begin_at), from_us)) / {DAY_US} AS days
  FROM (SELECT *, unnest(range({local_day("begin_at")}, {local_day("end_at")} + 1)) AS day
        FROM logged_span JOIN clusters USING (cluster))
  WHERE from_us < epoch_us(end_at) OR begin_at = end_at)
"""


@kept
def runs(store: Store, selection: Selection, *, by_partition: bool = False) -> Columns:
    """Exposure of all sizes by cluster, number of GPUs and day; by partition where asked for.

    Columns cluster, partition, n_gpus, node_time, day, running_days, exposure_node_days; the
    exposure is NaN where the GPUs of a node are not known. Days that lie in the period whole come
    from the sums of `running_time`; those at its ends, attempts that still run, short periods and
    those of an account from rows. Both are whole microseconds.
    """
    whole = whole_days(store, selection, LEAST_DAYS)
    partition = "partition" if by_partition else "NULL"
    columns = store.columns(
        f"""WITH {attempts_of(selection, _beside(whole))},
            {days_held("cluster, partition, units, of_node, runs")},
            part AS (
              SELECT * EXCLUDE (runs) FROM held
              WHERE runs OR day < $first_day OR day >= $until_day
              UNION ALL BY NAME
              SELECT cluster, coalesce(partition, 'unknown') AS partition,
                CASE WHEN basis = 'gpu_time' THEN n_gpus ELSE n_nodes END AS units,
                CASE WHEN basis = 'gpu_time' THEN coalesce(node_gpus, gpus_per_node) ELSE 1 END
                  AS of_node,
                day - DATE '1970-01-01' AS day, running_us
              FROM running_time JOIN clusters USING (cluster)
              WHERE day - DATE '1970-01-01' BETWEEN $first_day AND $until_day - 1 AND units > 0
                AND {_KEPT_OF.where(selection)}),
            summed AS (
              SELECT cluster, {partition} AS partition, units, of_node, day,
                CAST(sum(running_us) AS DOUBLE) / {DAY_US} AS running_days
              FROM part GROUP BY ALL)
            SELECT cluster, partition, units AS n_gpus,
              coalesce(basis <> 'gpu_time', false) AS node_time, day, running_days,
              running_days * units / of_node AS exposure_node_days
            FROM summed JOIN clusters USING (cluster)
            ORDER BY cluster, partition, units, of_node, day""",
        selection.rows.parameters
        | {"first_day": whole.first, "until_day": whole.until}
        | {"begun_at": whole.begun_at, "ended_at": whole.ended_at},
    )
    return {**columns, "day": dates(columns["day"])}


def _beside(days: WholeDays) -> str:
    """Condition for attempts whose time the sums of whole days do not hold alone."""
    if not days.found:
        return "true"
    ends = ["end_at IS NULL"]
    if days.begun_at is not None:
        ends.append("start_at < $begun_at")
    if days.ended_at is not None:
        ends.append("end_at > $ended_at")
    return f"({' OR '.join(ends)})"


def node_hours(store: Store, selection: Selection) -> dict[str, float]:
    """Node-hours that jobs ran, by cluster none of whose jobs states GPUs."""
    ran, hours = runs(store, selection), dict[str, float]()
    nodes = chosen(ran, ran["node_time"].astype(bool))
    for cluster, days in zip(nodes["cluster"], nodes["exposure_node_days"].tolist(), strict=True):
        hours[cluster] = hours.get(cluster, 0.0) + 24.0 * days
    return hours


@kept
def job_failures(store: Store, selection: Selection) -> Columns:
    """Failed attempts of all sizes, one row each, with the incident that each belongs to."""
    columns = store.columns(
        f"""WITH {ARRANGED}, {failures_of(selection)}
            SELECT cluster, attempt_key AS key, partition, units AS n_gpus, node_time, failed_at,
              {local_day("failed_at")} AS day, node, incident_id,
              coalesce(domain, 'unknown') AS domain, coalesce(node_lost, false) AS node_lost
            FROM failure LEFT JOIN (
              SELECT incidents.cluster, key AS attempt_key, incident_id
              FROM incident_members JOIN incidents USING (incident_id) WHERE kind = 'failure'
            ) USING (cluster, attempt_key) ORDER BY failed_at, attempt_key""",
        selection.rows.parameters,
    )
    return {**columns, "day": dates(columns["day"])}


def of_size(rows: Columns, min_gpus: int) -> Columns:
    """Rows of jobs of that many GPUs and more; where no attempt has GPUs, all of them."""
    return chosen(rows, (rows["n_gpus"] >= min_gpus) | rows["node_time"])


def chosen(rows: Columns, which: Bools) -> Columns:
    """Some of the rows."""
    return {name: column[which] for name, column in rows.items()}


@kept
def node_failures(store: Store, selection: Selection) -> Columns:
    """Failures known without jobs, one row each; those that hit one thing, which is no node, within
    one hour are one incident.
    """
    if not store.n_rows("node_failures"):
        return empty(
            **dict.fromkeys(("cluster", "key", "node", "hit", "incident_id"), "O"),
            **dict.fromkeys(("failed_at", "day"), "M8[us]"),
            repair_minutes="f8",
        )
    columns = store.columns(
        f"""SELECT cluster, failure_key AS key, start_at AS failed_at,
              {local_day("start_at")} AS day, node, hit, repair_minutes,
              CASE WHEN node IS NULL THEN hit || ' ' || epoch_us(date_trunc('hour', start_at)) END
                AS incident_id
            FROM node_failures JOIN clusters USING (cluster) WHERE {node_failures_of(selection)}
            ORDER BY start_at, failure_key""",
        selection.parameters,
    )
    return {**columns, "day": dates(columns["day"])}


@kept
def node_failure_days(store: Store, selection: Selection) -> Columns:
    """Exposure by day of clusters whose failures are known without jobs: known nodes x period.

    It is NaN where no inventory says which nodes there are.
    """
    if not store.n_rows("node_failures"):
        return empty(cluster="O", day="M8[us]", exposure_node_days="f8")
    columns = store.columns(
        f"""WITH {node_days_of(selection)},
            known AS (SELECT cluster, count(DISTINCT node) AS n_nodes FROM nodes
                      WHERE source <> 'observed' GROUP BY cluster)
            SELECT cluster, day, n_nodes * days AS exposure_node_days
            FROM logged_day LEFT JOIN known USING (cluster) ORDER BY cluster, day""",
        selection.parameters,
    )
    return {**columns, "day": dates(columns["day"])}


_OF_ROWS = f"""SELECT cluster, node, sum(n_gpus * {_RUN_US}) AS gpu_us, sum({_RUN_US}) AS node_us
              FROM held WHERE end_at IS NOT NULL GROUP BY cluster, node"""
"""Of `node_exposure`: attempts that ended, from rows."""
_OF_TOTALS = "SELECT cluster, node, gpu_us, node_us FROM node_totals WHERE {which}"
"""The same of all time."""
_OF_LOGGED = f"""UNION ALL
              SELECT cluster, node, NULL, CAST(days * {DAY_US} AS BIGINT)
              FROM logged_day JOIN (SELECT DISTINCT cluster, node FROM nodes
                                    WHERE source <> 'observed' AND node IS NOT NULL)
              USING (cluster)"""
"""Of `node_exposure`: time of nodes where failures are known without jobs."""


@kept
def node_exposure(store: Store, selection: Selection) -> Columns:
    """Exposure of each named node in jobs of all sizes, and in the period where failures are known
    without jobs: columns cluster, node, exposure_node_days.

    The time of a node stands beside its name. Clusters and attempts are joined only to what needs
    them: running attempts, GPUs that do not divide evenly, one partition or account. On nine
    million nodes of attempts joins cost four times the sum.
    """
    some = selection.partition is not None or selection.account is not None
    chosen = "SEMI JOIN chosen USING (cluster, attempt_key)" if some else ""
    logged = store.n_rows("node_failures")
    totals = not some and of_all_time(store, selection)
    return store.columns(
        f"""WITH {f"{node_days_of(selection)}," if logged else ""}
            chosen AS (SELECT cluster, attempt_key FROM jobs WHERE {_CHOSEN.where(selection)}),
            held AS NOT MATERIALIZED (
              FROM job_nodes {chosen} WHERE start_at IS NOT NULL AND {_HELD.where(selection)}),
            rest AS (
              SELECT *, {_RUN_US} AS run_us FROM (
                SELECT held.* REPLACE (coalesce(end_at, as_of_at) AS end_at),
                  end_at IS NULL AS runs
                FROM held JOIN clusters USING (cluster)
                WHERE end_at IS NULL OR (held.n_gpus IS NULL AND basis = 'gpu_time'))),
            part AS (
              {(_OF_TOTALS if totals else _OF_ROWS).format(which=_CLUSTER.where(selection))}
              UNION ALL
              SELECT cluster, node, n_gpus * run_us, CASE WHEN runs THEN run_us END
              FROM rest WHERE n_gpus IS NOT NULL
              UNION ALL
              SELECT cluster, node, jobs.n_gpus * run_us // nullif(n_nodes, 0),
                CASE WHEN runs THEN run_us END
              FROM (SELECT * EXCLUDE (n_gpus) FROM rest WHERE n_gpus IS NULL)
              JOIN jobs USING (cluster, attempt_key)
              {_OF_LOGGED if logged else ""}),
            whole AS (
              SELECT cluster, node, sum(gpu_us) AS gpu_us, sum(node_us) AS node_us
              FROM part GROUP BY cluster, node),
            size AS (
              SELECT cluster, node, arg_max(gpus, first_seen_at) AS of_node
              FROM nodes JOIN clusters USING (cluster)
              WHERE source <> 'observed' AND gpus > 0
                AND gpus_per_node_source IS DISTINCT FROM 'site.toml'
              GROUP BY cluster, node)
            SELECT cluster, node, CAST(CASE WHEN basis = 'gpu_time' THEN gpu_us ELSE node_us END
                AS DOUBLE) / {DAY_US}
                / CASE WHEN basis = 'gpu_time' THEN coalesce(of_node, gpus_per_node) ELSE 1 END
                AS exposure_node_days
            FROM whole JOIN clusters USING (cluster) LEFT JOIN size USING (cluster, node)
            WHERE exposure_node_days > 0
            ORDER BY cluster, node""",
        selection.rows.parameters,
    )


def repair_minutes(store: Store, selection: Selection) -> Floats:
    """Minutes down of each failure of a node in the period whose repair is known."""
    if not store.n_rows("node_failures"):
        return empty(repair_minutes="f8")["repair_minutes"]
    columns = store.columns(
        f"""SELECT repair_minutes FROM node_failures
            WHERE {_NODES_FAILED.where(selection)} AND start_at IS NOT NULL AND repair_minutes >= 0
            ORDER BY start_at, failure_key""",
        selection.parameters,
    )
    return columns["repair_minutes"]


def empty(**types: str) -> Columns:
    """Columns without rows, by their types."""
    import numpy as np  # here: whoever has rows gets arrays from the database

    return {name: np.empty(0, dtype=kind) for name, kind in types.items()}


def dates(days: NDArray[Any]) -> NDArray[np.datetime64]:
    """The dates of days, numbers since 1970-01-01."""
    return days.astype("datetime64[D]").astype("datetime64[us]")
