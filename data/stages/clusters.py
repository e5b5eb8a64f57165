"""One row for each cluster: what site.toml states, else what was stated at an ingest (the zone),
else what an inventory or the jobs show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.tables import dated
from data.tables.table import UNNAMED

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = (
    *("nodes", "node_inventory", "node_facts", "ingests"),
    *(name for name, *_ in dated()),
)
WRITES = ("clusters",)
CARRIES = ("clusters",)
INPUTS = ("site.clusters",)


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Fills `clusters`; of a synthetic cluster it keeps what the generator stated."""
    stated = context.site.clusters
    columns = ("gpus_per_node", "gpu_model", "timezone", "scheduler", "gpu_hour_price", "currency")
    parameters = {name: [getattr(cluster, name) for cluster in stated.values()] for name in columns}
    facts = " UNION ALL BY NAME ".join(
        [_STATED, *(fact for table, fact in _FACTS.items() if table in context.filled)]
    )
    (top,) = connection.execute("SELECT coalesce(max(rowid), -1) FROM clusters").fetchall()[0]
    parameters["cluster"] = list(stated)
    connection.execute(_CLUSTERS.format(facts=facts, unnamed=UNNAMED), parameters)
    connection.execute(f"DELETE FROM clusters WHERE rowid <= {top}")


_STATED = """
SELECT unnest(CAST($cluster AS VARCHAR[])) AS cluster,
  unnest(CAST($gpus_per_node AS INTEGER[])) AS gpus_per_node,
  unnest(CAST($gpu_model AS VARCHAR[])) AS gpu_model,
  unnest(CAST($timezone AS VARCHAR[])) AS timezone,
  unnest(CAST($scheduler AS VARCHAR[])) AS scheduler,
  unnest(CAST($gpu_hour_price AS DOUBLE[])) AS gpu_hour_price,
  unnest(CAST($currency AS VARCHAR[])) AS currency,
  NULL::VARCHAR AS old_gpu_model, NULL::VARCHAR AS shown_model, NULL::VARCHAR AS old_timezone,
  NULL::VARCHAR AS old_scheduler, NULL::VARCHAR AS shown_scheduler,
  false AS synthetic, false AS of_ingest, NULL::INTEGER AS gpus, NULL::INTEGER AS listed_gpus,
  0::BIGINT AS n_jobs, 0::BIGINT AS n_ran, 0::BIGINT AS n_with_gpus,
  NULL::TIMESTAMPTZ AS as_of_at, false AS has_failures
"""
"""What site.toml says, and every column of the facts."""
_FACTS = {
    "clusters": """SELECT cluster, gpu_model AS old_gpu_model, timezone AS old_timezone,
        scheduler AS old_scheduler, synthetic
      FROM clusters WHERE synthetic""",
    "ingests": """SELECT key AS cluster, value AS old_timezone, true AS of_ingest
      FROM (
        SELECT key, arg_max(value, place) AS value FROM (
          SELECT max(rowid) AS place, unnest(map_entries(CAST(CAST(zones AS JSON)
            AS MAP(VARCHAR, VARCHAR))), recursive := true)
          FROM ingests WHERE zones IS NOT NULL AND own_zone IS NOT TRUE GROUP BY zones)
        WHERE value IS NOT NULL GROUP BY key)
      UNION ALL BY NAME
      SELECT DISTINCT unnest(string_split(cluster, ',')) AS cluster, CASE
        WHEN source IN ('sacct', 'sacct-json', 'jobcomp', 'reduced-jobs') THEN 'slurm'
        WHEN source IN ('k8s-pods', 'k8s-workloads') THEN 'kubernetes'
        WHEN source IN ('pbs', 'lsf', 'sge') THEN source END AS shown_scheduler, true AS of_ingest
      FROM ingests""",
    "jobs": """SELECT cluster, count(*) AS n_jobs, count(start_at) AS n_ran,
        count(start_at) FILTER (n_gpus > 0) AS n_with_gpus,
        CAST(max(ceil(n_gpus / n_nodes)) FILTER (n_gpus > 0 AND n_nodes > 0) AS INTEGER) AS gpus,
        max(greatest(submit_at, start_at, end_at,
          CASE WHEN end_at IS NULL THEN start_at + to_seconds(elapsed_s) END)) AS as_of_at
      FROM jobs GROUP BY cluster""",
    "nodes": """SELECT cluster, arg_max(gpus, (n, gpus)) FILTER (n > 0) AS listed_gpus FROM (
        SELECT cluster, gpus, count(DISTINCT node) FILTER (gpus > 0 AND source <> 'observed') AS n
        FROM nodes GROUP BY cluster, gpus)
      GROUP BY cluster""",
    "node_inventory": "SELECT DISTINCT cluster, gpu_model AS shown_model FROM node_inventory",
    "node_facts": """SELECT DISTINCT cluster, CASE WHEN key = 'gpu_model' THEN value END
        AS shown_model FROM node_facts""",
    "node_events": "SELECT DISTINCT cluster FROM node_events",
    "node_failures": "SELECT DISTINCT cluster, true AS has_failures FROM node_failures",
    "health_events": "SELECT DISTINCT cluster FROM health_events",
}
"""What each table shows of the clusters that it names."""
_CLUSTERS = """
INSERT INTO clusters BY NAME
SELECT cluster,
  coalesce(max(gpus_per_node), max(listed_gpus), max(gpus)) AS gpus_per_node,
  CASE WHEN max(gpus_per_node) IS NOT NULL THEN 'site.toml'
    WHEN max(listed_gpus) IS NOT NULL THEN 'inventory'
    WHEN max(gpus) IS NOT NULL THEN 'jobs' END AS gpus_per_node_source,
  coalesce(max(gpu_model), max(old_gpu_model), CASE
    WHEN min(lower(shown_model)) = max(lower(shown_model))
      AND NOT contains(max(shown_model), '+') THEN min(shown_model) END) AS gpu_model,
  coalesce(max(timezone), max(old_timezone), 'UTC') AS timezone,
  coalesce(max(scheduler), max(old_scheduler), CASE WHEN min(shown_scheduler) = max(shown_scheduler)
    THEN max(shown_scheduler) END) AS scheduler,
  max(gpu_hour_price) AS gpu_hour_price, max(currency) AS currency,
  coalesce(bool_or(synthetic), false) AS synthetic,
  CASE WHEN sum(n_with_gpus) > 0 THEN 'gpu_time' WHEN sum(n_ran) > 0 THEN 'node_time'
    WHEN bool_or(has_failures) THEN 'node_failures' END AS basis,
  max(as_of_at) AS as_of_at
FROM ({facts}) WHERE cluster IS NOT NULL GROUP BY cluster
HAVING bool_or(synthetic IS NOT TRUE)
QUALIFY cluster <> '{unnamed}' OR bool_or(of_ingest IS NOT TRUE) OR count(*) OVER () = 1
ORDER BY cluster
"""
"""A cluster is there as long as anything but its own row names it; what an ingest alone calls as
long as nobody names one, where there is no other."""
