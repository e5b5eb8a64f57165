"""The records that incidents are made of, as tables of the store give them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from data.columns import frame_of
from data.definitions import INFRASTRUCTURE, TOLD_TWICE

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

    from analytics.failures.incidents import IncidentOptions
    from analytics.frames import Columns
    from data.site import Site

OF_CHOSEN = f"""SELECT chosen.cluster, chosen.attempt_key, jobs.job_id, cause, domain, chosen.state,
  failed_at, node_lost, {INFRASTRUCTURE} AS counted, jobs.start_at, node, jobs.n_gpus, jobs.n_nodes,
  confidence, following.start_at AS restarted_at
FROM chosen JOIN jobs USING (cluster, attempt_key)
LEFT JOIN (SELECT cluster, job_id, attempt, start_at FROM jobs WHERE attempt > 1) following
  ON following.cluster = jobs.cluster AND following.job_id = jobs.job_id
  AND following.attempt = jobs.attempt + 1
ORDER BY failed_at, chosen.attempt_key"""
"""Rows `chosen` of the table `failures`, each with its job and when that ran again."""
NODE_EVENTS = """
SELECT cluster, node, start_at, end_at, state, reason, planned FROM node_events
WHERE cluster IS NOT NULL AND node IS NOT NULL
"""
PREEMPTED = """
SELECT cluster, attempt_key, job_id, preempted_by, start_at, end_at, n_gpus FROM jobs
WHERE preempted_by IS NOT NULL AND end_at IS NOT NULL
"""
ATTEMPT_NODES = """
SELECT cluster, attempt_key, node FROM job_nodes
SEMI JOIN chosen_failures USING (cluster, attempt_key)
"""
EVENTS = f"""
SELECT cluster, event_id, node, gpu, observed_at, source, check_name, severity, xid, sxid, message,
  n_records
FROM health_events WHERE cluster IS NOT NULL AND observed_at IS NOT NULL AND node IS NOT NULL
  AND NOT {TOLD_TWICE}
"""


def options(site: Site) -> IncidentOptions:
    """What counts as near, and what causes are called, as site.toml says."""
    from analytics.failures.incidents import IncidentOptions

    return IncidentOptions(
        before_minutes=site.attribution.before_minutes,
        after_minutes=site.attribution.after_minutes,
        titles={name: cause.title for name, cause in site.causes.causes.items()},
    )


def bursts_of(
    connection: duckdb.DuckDBPyConnection, events: str, site: Site
) -> pd.DataFrame | Columns:
    """Bursts of the events that a query gives, each with the cause that it names."""
    from analytics.failures.bursts import bursts
    from analytics.failures.evidence import of_events
    from analytics.failures.precedence import weights

    rows = frame_of(connection, events)
    if rows.empty:
        return _no_burst()
    observed = bursts(rows)
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


def listed(nodes: object) -> str:
    """Names of nodes as a JSON array; those of an older derivation are one already."""
    return nodes if isinstance(nodes, str) else json.dumps(list(nodes or ()))  # type: ignore[call-overload]
