"""One row for each cluster: what site.toml states, else what an inventory or the jobs show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.tables import dated

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = ("nodes", *(name for name, *_ in dated()))
WRITES = ("clusters",)
CARRIES = ("clusters",)
INPUTS = ("site.clusters",)


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Fills `clusters`; of a synthetic cluster it keeps what the generator stated."""
    stated = context.site.clusters
    columns = ("gpus_per_node", "gpu_model", "timezone", "scheduler", "gpu_hour_price", "currency")
    parameters = {name: [getattr(cluster, name) for cluster in stated.values()] for name in columns}
    named = "".join(
        f" UNION SELECT cluster FROM {table}" for table in READS if table in context.filled
    )
    connection.execute(_CLUSTERS.format(named=named), parameters | {"cluster": list(stated)})
    connection.execute("DELETE FROM clusters")
    connection.execute("INSERT INTO clusters BY NAME FROM all_clusters")


_CLUSTERS = """
CREATE OR REPLACE TEMP TABLE all_clusters AS
WITH stated AS (
  SELECT unnest(CAST($cluster AS VARCHAR[])) AS cluster,
    unnest(CAST($gpus_per_node AS INTEGER[])) AS gpus_per_node,
    unnest(CAST($gpu_model AS VARCHAR[])) AS gpu_model,
    unnest(CAST($timezone AS VARCHAR[])) AS timezone,
    unnest(CAST($scheduler AS VARCHAR[])) AS scheduler,
    unnest(CAST($gpu_hour_price AS DOUBLE[])) AS gpu_hour_price,
    unnest(CAST($currency AS VARCHAR[])) AS currency),
named AS (
  SELECT cluster FROM stated{named}),
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
WHERE cluster IS NOT NULL ORDER BY cluster
"""
