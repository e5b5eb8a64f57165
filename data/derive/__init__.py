"""What is computed anew at every publish: severities, ordinals, nodes, verdicts, coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.derive.attributions import attribute_failures
from data.derive.incidents import group_incidents
from data.derive.log_attempts import join_logs
from data.derive.severities import set_severities
from data.derive.site_model import site_model
from data.derive.straggler_traces import join_traces
from data.derive.training_attempts import join_training
from data.ledger_state import forget_ledger

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb

    from data.site import Site


def derive(
    connection: duckdb.DuckDBPyConnection,
    root: Path,
    site: Site,
    annotations: Sequence[Sequence[str]],
) -> None:
    """Sets every derived table and column of a snapshot of `root` under construction."""
    connection.execute("BEGIN")
    forget_ledger(connection)
    set_severities(connection)
    _ordinals(connection)
    join_logs(connection)
    join_training(connection)
    _observed_nodes(connection)
    _clusters(connection, site)
    connection.execute("DELETE FROM annotations")
    if annotations:
        connection.executemany("INSERT INTO annotations VALUES (?, ?, ?, ?, ?, ?)", annotations)
    attribute_failures(connection, site, site_model(connection, root, site.causes))
    group_incidents(connection, site)
    join_traces(connection, root)
    _coverage(connection)
    connection.execute("COMMIT")


def _ordinals(connection: duckdb.DuckDBPyConnection) -> None:
    """Ordinal of each attempt within its job; only jobs with several attempts are sorted."""
    connection.execute(
        """UPDATE jobs SET attempt = new.place FROM (
             SELECT rowid AS id, row_number() OVER (
               PARTITION BY cluster, job_id
               ORDER BY submit_at NULLS LAST, start_at NULLS LAST, attempt_key) AS place
             FROM jobs WHERE hash(cluster, job_id) IN (
               SELECT hash(cluster, job_id) FROM jobs GROUP BY 1
               HAVING count(*) > 1 OR max(attempt) > 1)) AS new
           WHERE jobs.rowid = new.id AND attempt IS DISTINCT FROM new.place"""
    )
    connection.execute("UPDATE jobs SET attempt = 1 WHERE attempt IS NULL")


def _observed_nodes(connection: duckdb.DuckDBPyConnection) -> None:
    """Nodes that records name and no inventory states: one spell each, first to last record."""
    connection.execute("DELETE FROM nodes WHERE source = 'observed'")
    connection.execute(
        """INSERT INTO nodes (cluster, node, first_seen_at, last_seen_at, source)
           WITH seen AS (
             SELECT cluster, node, min(start_at) AS first_at,
               max(coalesce(end_at, start_at)) AS last_at FROM job_nodes GROUP BY ALL
             UNION ALL SELECT cluster, node, min(start_at), max(coalesce(end_at, start_at))
               FROM node_events GROUP BY ALL
             UNION ALL SELECT cluster, node, min(start_at), max(coalesce(end_at, start_at))
               FROM node_failures GROUP BY ALL
             UNION ALL SELECT cluster, node, min(observed_at), max(observed_at)
               FROM health_events GROUP BY ALL)
           SELECT cluster, node, min(first_at), max(last_at), 'observed' FROM seen
           WHERE node IS NOT NULL AND (cluster, node) NOT IN (
             SELECT cluster, node FROM nodes WHERE cluster IS NOT NULL AND node IS NOT NULL)
           GROUP BY ALL ORDER BY ALL"""
    )


def _clusters(connection: duckdb.DuckDBPyConnection, site: Site) -> None:
    """One row a cluster: what site.toml states, else what an inventory or the jobs show."""
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE stated (cluster VARCHAR, gpus_per_node INTEGER,
           gpu_model VARCHAR, timezone VARCHAR, scheduler VARCHAR, gpu_hour_price DOUBLE,
           currency VARCHAR)"""
    )
    for name, cluster in site.clusters.items():
        connection.execute(
            "INSERT INTO stated VALUES (?, ?, ?, ?, ?, ?, ?)",
            [name, cluster.gpus_per_node, cluster.gpu_model, cluster.timezone,
             cluster.scheduler, cluster.gpu_hour_price, cluster.currency],
        )  # fmt: skip
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE all_clusters AS
           WITH named AS (
             SELECT cluster FROM jobs UNION SELECT cluster FROM nodes
             UNION SELECT cluster FROM node_events UNION SELECT cluster FROM node_failures
             UNION SELECT cluster FROM health_events UNION SELECT cluster FROM stated),
           shown AS (
             SELECT cluster, max(gpus) AS gpus FROM nodes GROUP BY ALL
             UNION ALL
             SELECT cluster, CAST(max(ceil(n_gpus / n_nodes)) AS INTEGER) FROM jobs
             WHERE n_gpus > 0 AND n_nodes > 0 GROUP BY ALL)
           SELECT cluster,
             coalesce(stated.gpus_per_node, observed.gpus) AS gpus_per_node,
             coalesce(stated.gpu_model, old.gpu_model) AS gpu_model,
             coalesce(stated.timezone, old.timezone, 'UTC') AS timezone,
             coalesce(stated.scheduler, old.scheduler,
               CASE WHEN cluster IN (SELECT cluster FROM jobs) THEN 'slurm' END) AS scheduler,
             stated.gpu_hour_price, stated.currency, coalesce(old.synthetic, false) AS synthetic,
             CASE WHEN ran.with_gpus > 0 THEN 'gpu_time' WHEN ran.n > 0 THEN 'node_time'
               WHEN cluster IN (SELECT cluster FROM node_failures) THEN 'node_failures'
             END AS basis, ran.as_of_at
           FROM named LEFT JOIN stated USING (cluster)
           LEFT JOIN (FROM clusters WHERE synthetic) old USING (cluster)
           LEFT JOIN (SELECT cluster, max(gpus) AS gpus FROM shown GROUP BY ALL) observed
             USING (cluster)
           LEFT JOIN (
             SELECT cluster, count(*) FILTER (start_at IS NOT NULL) AS n,
               count(*) FILTER (start_at IS NOT NULL AND n_gpus > 0) AS with_gpus,
               max(greatest(submit_at, start_at, end_at,
                 CASE WHEN end_at IS NULL THEN start_at + to_seconds(elapsed_s) END)) AS as_of_at
             FROM jobs GROUP BY ALL) ran USING (cluster)
           WHERE cluster IS NOT NULL ORDER BY cluster"""
    )
    connection.execute("DELETE FROM clusters")
    connection.execute("INSERT INTO clusters BY NAME FROM all_clusters")


def _coverage(connection: duckdb.DuckDBPyConnection) -> None:
    """Rows of each source by day."""
    connection.execute("DELETE FROM coverage")
    for source, table, column in (
        ("'jobs'", "jobs", "coalesce(end_at, start_at, submit_at)"),
        ("'node_events'", "node_events", "start_at"),
        ("'node_failures'", "node_failures", "start_at"),
        ("'health_events.' || source", "health_events", "observed_at"),
        ("'tickets'", "tickets", "opened_at"),
        ("'job_logs'", "job_logs", "logged_at"),
        ("'training_metrics'", "training_metrics", "logged_at"),
        ("'straggler_traces'", "timed_traces", "traced_at"),
    ):
        connection.execute(
            f"""INSERT INTO coverage SELECT cluster, {source}, CAST({column} AS DATE), count(*)
                FROM {table} GROUP BY ALL ORDER BY ALL"""
        )
