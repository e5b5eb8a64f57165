"""Incidents: failures, bursts of events and outages grouped anew under ids that stay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from data.columns import columns_of, frame_of, registered
from data.definitions import INFRASTRUCTURE, TOLD_TWICE

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

    from analytics.frames import Columns
    from data.stages import Context

READS = ("failures", "jobs", "jobs.attempt", "job_nodes", "health_events",
         "health_events.severity", "node_events", "nodes")  # fmt: skip
WRITES = ("incidents", "incident_members")
CARRIES = ("incidents", "incident_members")
INPUTS = ("site.attribution", "site.taxonomy", "analytics.failures", "data.definitions")
NEEDS = ("failures", "health_events")


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Fills `incidents` and `incident_members`."""
    from analytics.failures.incidents import IncidentOptions, carry_over, incidents

    site = context.site
    options = IncidentOptions(
        before_minutes=site.attribution.before_minutes,
        after_minutes=site.attribution.after_minutes,
        titles={name: cause.title for name, cause in site.causes.causes.items()},
    )
    if connection.execute(_SEEDS, {"n": options.loop_failures}).fetchone() is None:
        return
    failures = columns_of(connection.execute(_FAILURES, {"n": options.loop_failures}))
    chosen = {name: failures[name] for name in ("cluster", "attempt_key")}
    with registered(connection, chosen_failures=chosen):
        attempt_nodes = columns_of(connection.execute(_ATTEMPT_NODES))
    grouped = incidents(
        failures,
        attempt_nodes,
        _bursts(connection, context),
        node_events=columns_of(connection.execute(_NODE_EVENTS)),
        nodes=columns_of(connection.execute(_NODES)),
        preempted=columns_of(connection.execute(_PREEMPTED)),
        options=options,
    )
    if "incidents" in context.filled:
        old = connection.execute("FROM incidents").df()
        old_members = connection.execute("FROM incident_members WHERE role = 'seed'").df()
        old_members = old_members.rename(columns={"start_at": "at"})
        grouped = carry_over(grouped.incidents, grouped.members, old, old_members)
    rows, members = grouped.incidents, grouped.members.rename(columns={"at": "start_at"})
    rows = rows.assign(nodes=[_listed(nodes) for nodes in rows["nodes"]])
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
SELECT chosen.cluster, chosen.attempt_key, jobs.job_id, cause, domain, chosen.state, failed_at,
  node_lost, {INFRASTRUCTURE} AS counted, jobs.start_at, node, jobs.n_gpus, jobs.n_nodes,
  confidence, following.start_at AS restarted_at
FROM chosen JOIN jobs USING (cluster, attempt_key)
LEFT JOIN (SELECT cluster, job_id, attempt, start_at FROM jobs WHERE attempt > 1) following
  ON following.cluster = jobs.cluster AND following.job_id = jobs.job_id
  AND following.attempt = jobs.attempt + 1
ORDER BY failed_at, chosen.attempt_key
"""
"""Failures that may be part of an incident: infrastructure's, and of runs that fail often.

A run is all attempts of a job id: a requeue keeps it, while it begins a new SLUID.
"""
_NODE_EVENTS = """
SELECT cluster, node, start_at, end_at, state, reason, planned FROM node_events
WHERE node IS NOT NULL
"""
_NODES = "SELECT cluster, node, rack, pod, last_seen_at FROM nodes WHERE node IS NOT NULL"
_PREEMPTED = """
SELECT cluster, attempt_key, job_id, preempted_by, start_at, end_at, n_gpus FROM jobs
WHERE preempted_by IS NOT NULL AND end_at IS NOT NULL
"""
_ATTEMPT_NODES = """
SELECT cluster, attempt_key, node FROM job_nodes
SEMI JOIN chosen_failures USING (cluster, attempt_key)
"""
_EVENTS = f"""
SELECT cluster, event_id, node, gpu, observed_at, source, check_name, severity, xid, sxid, message
FROM health_events WHERE observed_at IS NOT NULL AND node IS NOT NULL AND NOT {TOLD_TWICE}
"""


def _bursts(connection: duckdb.DuckDBPyConnection, context: Context) -> pd.DataFrame | Columns:
    """Bursts of events, each with the cause that it names."""
    from analytics.failures.bursts import bursts
    from analytics.failures.evidence import of_events
    from analytics.failures.precedence import weights

    if "health_events" not in context.filled:
        return _no_burst()
    observed, site = bursts(frame_of(connection, _EVENTS)), context.site
    table = weights(site.attribution.table, site.causes)
    cause = of_events(observed, table)["cause"]
    domains = {name: one.domain for name, one in site.causes.causes.items()}
    return observed.assign(cause=cause, domain=cause.map(domains))


_TEXTS = ("burst_id", "cluster", "node", "severity", "check_name")


def _no_burst() -> Columns:
    """The columns of bursts where nothing was observed."""
    import numpy as np

    texts = dict.fromkeys(_TEXTS, np.empty(0, dtype=object))
    times = dict.fromkeys(("first_at", "last_at"), np.empty(0, dtype="datetime64[us]"))
    return {**texts, **times, "n": np.empty(0, dtype=np.int64)}


def _listed(nodes: object) -> str:
    """Names of nodes as a JSON array; those of an older derivation are one already."""
    return nodes if isinstance(nodes, str) else json.dumps(list(nodes or ()))  # type: ignore[call-overload]
