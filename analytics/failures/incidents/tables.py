"""The tables that hold incidents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class IncidentTables:
    """Incidents and what they consist of."""

    incidents: pd.DataFrame
    """One row an incident, by start: incident_id, cluster, start_at (first seed or outage),
    end_at (last one; an outage counts with its start), cause, domain, n_jobs (failed or preempted
    by a requeue), n_failed_jobs, n_preempted_jobs, n_failures and n_preempted (attempts),
    n_events, nodes (tuple), nodes_named, n_nodes, n_gpus, n_failed_gpus, n_preempted_gpus (sum
    over jobs of their largest attempt: how many distinct GPUs they are is not recorded),
    lost_gpu_seconds, second_order_gpu_seconds (the preempted part of it), n_unmeasured (attempts
    whose loss is not known), loop_failures and loop_requeues (of the longest crash loop, 0 where
    none), summary, superseded_by, retired (see `carry_over`)."""
    members: pd.DataFrame
    """One row a member: incident_id, kind (failure, health_event, node_event, preemption), key
    (attempt_key; burst_id; node@start), at, end_at, node, text, severity, role (seed, context,
    consequence), signal."""
