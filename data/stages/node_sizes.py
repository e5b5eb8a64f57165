"""GPUs of the nodes of an attempt, where they are not those of most nodes of its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = ("jobs", "job_nodes", "nodes", "clusters")
WRITES = ("jobs.node_gpus",)
NEEDS = ("jobs",)


def run(connection: duckdb.DuckDBPyConnection, _: Context) -> None:
    """Sets it by the inventory of the time when the attempt started; nodes without GPUs and nodes
    that no inventory lists tell nothing. Clusters of which site.toml says the GPUs of a node, or
    whose listed nodes are all alike, are left as they are.
    """
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE unlike AS
           SELECT DISTINCT nodes.cluster, gpus_per_node FROM nodes JOIN clusters USING (cluster)
           WHERE source <> 'observed' AND gpus > 0 AND gpus <> gpus_per_node
             AND gpus_per_node_source IS DISTINCT FROM 'site.toml'"""
    )
    if not connection.execute("SELECT 1 FROM unlike LIMIT 1").fetchall():
        connection.execute("UPDATE jobs SET node_gpus = NULL WHERE node_gpus IS NOT NULL")
        return
    connection.execute(
        """UPDATE jobs SET node_gpus = wanted.node_gpus FROM (
             WITH placed AS (
               SELECT held.cluster, held.attempt_key, gpus, gpus_per_node
               FROM job_nodes held JOIN unlike USING (cluster)
               JOIN nodes spell ON spell.cluster = held.cluster AND spell.node = held.node
                 AND source <> 'observed'
                 AND (first_seen_at IS NULL OR first_seen_at <= held.start_at)
               QUALIFY row_number() OVER (PARTITION BY held.cluster, attempt_key, held.node
                 ORDER BY first_seen_at DESC NULLS LAST, source) = 1),
             meant AS (
               SELECT cluster, attempt_key, nullif(avg(gpus), any_value(gpus_per_node)) AS node_gpus
               FROM placed WHERE gpus > 0 GROUP BY cluster, attempt_key)
             SELECT jobs.rowid AS id, meant.node_gpus
             FROM jobs LEFT JOIN meant USING (cluster, attempt_key)
             WHERE jobs.node_gpus IS NOT NULL OR meant.node_gpus IS NOT NULL) wanted
           WHERE jobs.rowid = id AND jobs.node_gpus IS DISTINCT FROM wanted.node_gpus"""
    )
