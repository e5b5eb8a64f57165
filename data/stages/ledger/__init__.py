"""The GPU-hour ledger and the job runs: `gpu_time`, `lost_time`, `unrecorded_time` and `job_runs`,
derived when asked for.

Not at every publish: on millions of attempts they cost seconds, which an hourly ingest need not
pay. They follow records, verdicts of people and site.toml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = (
    *("jobs", "jobs.run_id", "jobs.node_gpus", "run_links", "job_nodes", "clusters", "nodes"),
    *("node_events", "node_inventory", "jobs.attempt", "ingests"),
    *("failures", "incidents", "incident_members", "training_metrics"),
    *("training_metrics.attempt_key", "training_metrics.run_id", "straggler_traces"),
    *("straggler_traces.wasted_ratio", "straggler_traces.n_steps"),
    *("straggler_traces.cluster", "straggler_traces.run_id"),
)
WRITES = ("gpu_time", "lost_time", "unrecorded_time", "job_runs")
INPUTS = (
    *(
        "decided",
        "site.runs",
        "site.clusters",
        "analytics.efficiency",
        "data.definitions",
        "data.interrupted",
    ),
    "data.said",
)
ON_DEMAND = True


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> dict[str, object]:
    """Fills the tables; notes on what they take for granted and leave out."""
    # Imported here: they need pandas and SciPy.
    from data.stages.ledger.attempts import attempt_rows, write_ledger, write_losses, write_runs
    from data.stages.ledger.fleet import fleet_rows
    from data.stages.ledger.unrecorded import write_unrecorded

    context.progress("dividing running time")
    held = attempt_rows(connection, context.site.runs, context.said)
    context.progress("sweeping the fleet")
    rest = fleet_rows(connection, _stated(context), held.notes)
    context.progress("writing the ledger")
    write_ledger(connection, held, rest.daily)
    write_losses(connection, held)
    write_unrecorded(connection, rest.unrecorded)
    context.progress("writing the runs")
    write_runs(connection, held)
    return held.notes | {"excess_gpu_seconds": rest.excess}


def _stated(context: Context) -> dict[str, int]:
    """GPUs of a node of each cluster for which site.toml says it."""
    return {
        name: cluster.gpus_per_node
        for name, cluster in context.site.clusters.items()
        if cluster.gpus_per_node is not None
    }
