"""Incidents: failures, bursts of events and outages grouped anew under ids that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.columns import columns_of, registered
from data.definitions import INFRASTRUCTURE
from data.stages.incidents import records

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = ("failures", "jobs", "jobs.attempt", "job_nodes", "health_events",
         "health_events.severity", "node_events", "nodes")  # fmt: skip
WRITES = ("incidents", "incident_members")
CARRIES = ("incidents", "incident_members")
INPUTS = ("site.attribution", "site.taxonomy", "analytics.failures", "data.definitions")
NEEDS = ("failures", "health_events")


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Fills `incidents` and `incident_members`."""
    from analytics.failures.incidents import carry_over, incidents

    options = records.options(context.site)
    if connection.execute(_SEEDS, {"n": options.loop_failures}).fetchone() is None:
        return
    failures = columns_of(connection.execute(_FAILURES, {"n": options.loop_failures}))
    chosen = {name: failures[name] for name in ("cluster", "attempt_key")}
    with registered(connection, chosen_failures=chosen):
        attempt_nodes = columns_of(connection.execute(records.ATTEMPT_NODES))
    grouped = incidents(
        failures,
        attempt_nodes,
        records.bursts_of(connection, records.EVENTS, context.site),
        node_events=columns_of(connection.execute(records.NODE_EVENTS)),
        nodes=columns_of(connection.execute(_NODES)),
        preempted=columns_of(connection.execute(records.PREEMPTED)),
        options=options,
    )
    if "incidents" in context.filled:
        old = connection.execute("FROM incidents").df()
        old_members = connection.execute("FROM incident_members WHERE role = 'seed'").df()
        old_members = old_members.rename(columns={"start_at": "at"})
        grouped = carry_over(grouped.incidents, grouped.members, old, old_members)
    rows, members = grouped.incidents, grouped.members.rename(columns={"at": "start_at"})
    rows = rows.assign(nodes=[records.listed(nodes) for nodes in rows["nodes"]])
    for table, frame in (("incidents", rows), ("incident_members", members)):
        with registered(connection, derived=frame):
            if table in context.filled:
                connection.execute(f"DELETE FROM {table}")
            connection.execute(f"INSERT INTO {table} BY NAME FROM derived")


_SEEDS = f"""
SELECT 1 FROM failures WHERE {INFRASTRUCTURE}
UNION ALL
SELECT 1 FROM jobs WHERE attempt >= $n
UNION ALL
SELECT 1 FROM health_events WHERE severity IN ('critical', 'fatal')
UNION ALL
SELECT 1 FROM incidents LIMIT 1
"""
"""A row where there may be incidents, or were some."""

_FAILURES = f"""
WITH again AS (
  SELECT DISTINCT cluster, job_id FROM jobs WHERE attempt >= $n),
often AS (
  SELECT cluster, attempt_key FROM jobs SEMI JOIN again USING (cluster, job_id)),
chosen AS (
  FROM failures WHERE {INFRASTRUCTURE}
  UNION ALL
  FROM failures SEMI JOIN often USING (cluster, attempt_key) WHERE ({INFRASTRUCTURE}) IS NOT TRUE)
{records.OF_CHOSEN}
"""
"""Failures that may be part of an incident: infrastructure's, and of runs that fail often.

A run is all attempts of a job id: a requeue keeps it, while it begins a new SLUID.
"""
_NODES = "SELECT cluster, node, rack, pod, last_seen_at FROM nodes WHERE node IS NOT NULL"
