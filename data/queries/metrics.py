"""Samples of metrics of nodes, and the last minutes of them, as one job's machines are compared."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from data.errors import DataError
from data.filters import Filter
from data.ingest.readers.metrics.machine_samples import Series, gridded
from data.metric_kinds import XID_GAUGE
from data.queries.kept_samples import lacking, last_reduced_end
from data.reduce.windows import LAST_US

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    import pandas as pd

    from analytics.frames import Columns
    from analytics.nodes.machines.samples import Samples
    from data.filters import Selection
    from data.store import Store


def samples(
    store: Store,
    cluster: str,
    nodes: Collection[str],
    period: tuple[datetime, datetime],
    metrics: Collection[str] | None = None,
) -> Columns:
    """Samples of some nodes in [start, end): columns time, node, gpu, metric, labels, value.

    Ordered by metric, node, gpu, labels and time; of all metrics where none are named. gpu and
    labels are null where a sample is of the node, or nothing else tells its series apart.
    """
    start, end = period
    return store.columns(
        """SELECT observed_at AS time, node, gpu, metric, labels, reading AS value FROM node_metrics
           WHERE cluster = $cluster AND list_contains($nodes, node)
             AND observed_at >= $start AND observed_at < $end
             AND ($metrics IS NULL OR list_contains($metrics, metric))
           ORDER BY metric, node, gpu, labels, observed_at""",
        {
            "cluster": cluster,
            "nodes": sorted(nodes),
            "start": start,
            "end": end,
            "metrics": None if metrics is None else sorted(metrics),
        },
    )


def has_samples(store: Store) -> bool:
    """Whether the store holds any sample."""
    return bool(store.rows("SELECT 1 FROM node_metrics LIMIT 1"))


_HOURS = Filter(columns=("cluster",), within="hour_at")


def of_node(store: Store, cluster: str | None, node: str, selection: Selection) -> pd.DataFrame:
    """Metrics of one node in the period, from its hours: metric, gpu, unit, n, minimum, mean,
    maximum, increase, hour_at (the last hour).

    `increase` is what a counter rose by, NULL of a gauge; series that labels alone tell apart stand
    together.
    """
    return store.frame(
        f"""SELECT metric, gpu, any_value(unit) AS unit, CAST(sum(n) AS BIGINT) AS n,
              min(minimum) AS minimum, sum(n * mean) / sum(n) AS mean, max(maximum) AS maximum,
              sum(increase) AS increase, max(hour_at) AS hour_at
            FROM node_metrics_hourly
            WHERE cluster IS NOT DISTINCT FROM $of AND node = $node
              AND {_HOURS.where(selection)}
            GROUP BY metric, gpu ORDER BY metric, gpu""",
        {"of": cluster, "node": node, **selection.parameters},
    )


MINUTES = LAST_US // 60_000_000
"""A pull of samples 30 s apart."""
_CLUSTERS = """SELECT cluster FROM node_metrics WHERE cluster IS NOT NULL UNION
               SELECT cluster FROM node_metrics_reduced WHERE cluster IS NOT NULL ORDER BY ALL"""
_LAST = """SELECT max(observed_at) AS last_at FROM node_metrics WHERE cluster = $cluster"""
_ATTEMPT = """SELECT start_at, end_at, (SELECT list(DISTINCT node) FROM job_nodes AS held
                WHERE held.cluster = jobs.cluster AND held.attempt_key = jobs.attempt_key)
              FROM jobs WHERE cluster = $cluster AND job_id = $job_id AND start_at <= $last_at
              ORDER BY start_at DESC, attempt_key LIMIT 1"""
_WITHIN = """cluster = $cluster AND observed_at > $from_at AND observed_at <= $to_at"""
_NAMES = f"""SELECT DISTINCT metric, node FROM node_metrics
             WHERE {_WITHIN} AND ($nodes IS NULL OR list_contains($nodes, node))
               AND metric <> '{XID_GAUGE}'
             ORDER BY metric, node"""
"""Without codes, which are no reading; of what was reduced they alone are always kept."""
_SAMPLES = f"""SELECT machine, epoch(observed_at) AS at, avg(reading) AS value
               FROM node_metrics JOIN (
                 SELECT unnest($nodes) AS node, generate_subscripts($nodes, 1) - 1 AS machine
               ) USING (node)
               WHERE {_WITHIN} AND metric = $metric
               GROUP BY ALL ORDER BY ALL"""


class Stretch(NamedTuple):
    """The last half hour of samples of some nodes: (from, to]."""

    nodes: list[str] | None
    """None for all."""
    from_at: datetime
    to_at: datetime
    until_at: datetime
    """Up to which there may be samples of it: later than the last one that is in the store where
    others were reduced."""


def last_stretch(store: Store, cluster: str, job_id: str | None = None) -> Stretch | None:
    """The last half hour of samples of a cluster, or in which the last attempt of a job ran.

    None where there are no samples, or no attempt began before the last of them.
    """
    ((last_at,),) = store.rows(_LAST, {"cluster": cluster})
    reduced_at = last_reduced_end(store, cluster)
    if reduced_at is not None and (last_at is None or last_at < reduced_at - timedelta(hours=1)):
        last_at = reduced_at
    if last_at is None:
        return None
    until_at, begin = max(last_at, reduced_at or last_at), timedelta(minutes=MINUTES)
    if job_id is None:
        return Stretch(None, last_at - begin, last_at, until_at)
    asked = {"cluster": cluster, "job_id": job_id, "last_at": last_at}
    for start_at, end_at, nodes in store.rows(_ATTEMPT, asked):
        to_at = last_at if end_at is None else min(end_at, last_at)
        until_at = until_at if to_at == last_at else to_at
        return Stretch(sorted(nodes or ()), max(to_at - begin, start_at), to_at, until_at)
    return None


def lacking_nodes(store: Store, cluster: str, stretch: Stretch) -> tuple[str, ...]:
    """Nodes of which samples of a stretch were reduced and are not in the store."""
    return lacking(store, cluster, stretch.nodes, (stretch.from_at, stretch.until_at))


def last_samples(store: Store, cluster: str | None = None, job_id: str | None = None) -> Samples:
    """Samples of the last half hour, of all nodes of a cluster or those of a job while it ran.

    GPUs of a node are averaged, and counters become rates.

    Raises
    ------
    DataError
        Where there are none, some were reduced, they are more than fits, or of several clusters
        none is named.
    """
    clusters = [name for (name,) in store.rows(_CLUSTERS)]
    if cluster is None and len(clusters) > 1:
        raise DataError(
            f"metrics of several clusters: name one by --cluster: {', '.join(clusters)}"
        )
    cluster = cluster or next(iter(clusters), "any cluster")
    stretch = last_stretch(store, cluster, job_id)
    of = f"of the nodes of job {job_id}" if job_id else f"of nodes of {cluster}"
    if stretch is not None and (reduced := lacking_nodes(store, cluster, stretch)):
        _refuse_reduced(of, stretch, reduced)
    nodes_of: dict[str, list[str]] = {}
    if stretch is not None:
        asked = {
            "cluster": cluster, "from_at": stretch.from_at, "to_at": stretch.to_at
        }  # fmt: skip
        for metric, node in store.rows(_NAMES, asked | {"nodes": stretch.nodes}):
            nodes_of.setdefault(metric, []).append(node)
    if not nodes_of:
        raise DataError(f"the store holds no metrics {of}: ingest a DCGM exporter's or Prometheus'")
    series = []
    for metric, nodes in nodes_of.items():
        found = store.columns(_SAMPLES, asked | {"metric": metric, "nodes": nodes})
        series.append(
            Series(
                metric,
                nodes,
                np.asarray(found["machine"], dtype=np.int64),
                np.asarray(found["at"], dtype=float),
                np.asarray(found["value"], dtype=float),
            )
        )
    return gridded(series)


def _refuse_reduced(of: str, stretch: Stretch, nodes: Sequence[str]) -> None:
    """Refuses to compare machines by some of their samples."""
    raise DataError(
        f"samples {of} from {stretch.from_at:%Y-%m-%d %H:%M} to {stretch.until_at:%H:%M} UTC were "
        f"reduced and not kept, of {nodes[0]}"
        + (f" and {len(nodes) - 1:,} more" if len(nodes) > 1 else "")
        + ": give the raw ones to `faultline machines FILE`, or reduce them with --jobs"
    )


class Sampled(NamedTuple):
    """An attempt of which the last samples are."""

    attempt_key: str
    job_id: str
    user: str | None
    nodes: tuple[str, ...]
    """Those with samples."""
    from_at: datetime
    to_at: datetime
    """The part of the last half hour of samples in which it ran."""
    runs: bool
    """It had not ended by then."""


def last_sampled(
    store: Store, cluster: str, *, least_nodes: int, least_minutes: float, most: int
) -> list[Sampled]:
    """Attempts that ran on so many nodes, for so long, in the half hour before the last sample of a
    cluster; those on most nodes first."""
    rows = store.rows(
        f"""WITH last AS MATERIALIZED ({_LAST}),
            sampled AS MATERIALIZED (
              SELECT DISTINCT node FROM node_metrics, last
              WHERE cluster = $cluster AND observed_at > last_at - to_minutes({MINUTES})
                AND metric <> '{XID_GAUGE}')
            SELECT attempt_key, any_value(job_id), any_value("user"),
              list(DISTINCT node ORDER BY node) AS nodes,
              max(greatest(held.start_at, last_at - to_minutes({MINUTES}))) AS from_at,
              max(least(coalesce(held.end_at, last_at), last_at)) AS to_at,
              bool_and(held.end_at IS NULL OR held.end_at > last_at) AS runs
            FROM job_nodes AS held SEMI JOIN sampled USING (node)
              JOIN last ON held.start_at <= last_at
                AND (held.end_at IS NULL OR held.end_at > last_at - to_minutes({MINUTES}))
              JOIN jobs USING (cluster, attempt_key)
            WHERE cluster = $cluster GROUP BY attempt_key
            HAVING len(nodes) >= $least_nodes AND to_at - from_at >= to_seconds($least_s)
            ORDER BY len(nodes) DESC, attempt_key LIMIT {int(most)}""",
        {"cluster": cluster, "least_nodes": least_nodes, "least_s": 60.0 * least_minutes},
    )
    return [Sampled(key, job, user, tuple(nodes), *rest) for key, job, user, nodes, *rest in rows]


def samples_of(store: Store, cluster: str, attempt: Sampled) -> Samples:
    """Samples of an attempt in its part of the last half hour; GPUs of a node are averaged."""
    nodes = list(attempt.nodes)
    found = store.columns(
        """SELECT metric, list_position($nodes, node) - 1 AS machine, epoch(observed_at) AS at,
             avg(reading) AS value
           FROM node_metrics
           WHERE cluster = $cluster AND list_contains($nodes, node)
             AND observed_at > $from_at AND observed_at <= $to_at
           GROUP BY ALL ORDER BY ALL""",
        {"cluster": cluster, "nodes": nodes, "from_at": attempt.from_at, "to_at": attempt.to_at},
    )
    metrics, first = np.unique(found["metric"].astype(str), return_index=True)
    bounds = [*first.tolist(), len(found["metric"])]
    return gridded(
        [
            Series(
                metric,
                nodes,
                np.asarray(found["machine"][begin:end], dtype=np.int64),
                np.asarray(found["at"][begin:end], dtype=float),
                np.asarray(found["value"][begin:end], dtype=float),
            )
            for metric, begin, end in zip(metrics.tolist(), bounds, bounds[1:], strict=False)
        ]
    )
