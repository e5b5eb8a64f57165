"""The last minutes of the store's samples of metrics, as one job's machines are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from data.errors import DataError
from data.ingest.readers.metrics.machine_samples import Series, gridded

if TYPE_CHECKING:
    from analytics.nodes.machines.samples import Samples
    from data.store import Store

MINUTES = 30
"""A pull of samples 30 s apart."""
_CLUSTERS = "SELECT DISTINCT cluster FROM node_metrics WHERE cluster IS NOT NULL ORDER BY ALL"
_LAST = """SELECT max(observed_at) AS last_at FROM node_metrics WHERE cluster = $cluster"""
_OF_JOB = """($job_id IS NULL OR node IN (SELECT node FROM job_nodes JOIN jobs
              USING (cluster, attempt_key) WHERE cluster = $cluster AND job_id = $job_id))"""
_NAMES = f"""SELECT DISTINCT metric, node FROM node_metrics
             WHERE cluster = $cluster AND {_OF_JOB}
               AND observed_at > ({_LAST}) - to_minutes($minutes)
             ORDER BY metric, node"""
_SAMPLES = f"""SELECT machine, epoch(observed_at) AS at, avg(reading) AS value
               FROM node_metrics JOIN (
                 SELECT unnest($nodes) AS node, generate_subscripts($nodes, 1) - 1 AS machine
               ) USING (node)
               WHERE cluster = $cluster AND metric = $metric
                 AND observed_at > ({_LAST}) - to_minutes($minutes)
               GROUP BY ALL"""


def last_samples(store: Store, cluster: str | None = None, job_id: str | None = None) -> Samples:
    """Samples of the half hour before the last one, of all nodes of a cluster or those of a job.

    GPUs of a node are averaged, and counters become rates.

    Raises
    ------
    DataError
        Where there are none, or more than fits, or of several clusters none is named.
    """
    clusters = [name for (name,) in store.rows(_CLUSTERS)]
    if cluster is None and len(clusters) > 1:
        raise DataError(
            f"metrics of several clusters: name one by --cluster: {', '.join(clusters)}"
        )
    cluster = cluster or next(iter(clusters), "any cluster")
    asked = {"cluster": cluster, "job_id": job_id, "minutes": MINUTES}
    nodes_of: dict[str, list[str]] = {}
    for metric, node in store.rows(_NAMES, asked):
        nodes_of.setdefault(metric, []).append(node)
    if not nodes_of:
        of = f"of the nodes of job {job_id}" if job_id else f"of nodes of {cluster}"
        raise DataError(f"the store holds no metrics {of}: ingest a DCGM exporter's or Prometheus'")
    series = []
    for metric, nodes in nodes_of.items():
        found = store.columns(
            _SAMPLES,
            {"cluster": cluster, "metric": metric, "nodes": nodes, "minutes": MINUTES},
        )
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
