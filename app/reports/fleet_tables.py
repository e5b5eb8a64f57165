"""The tables of the fleet report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from app.figures import numbers
from app.figures.failures import domains
from app.reports.cells import Column
from app.reports.content import Table, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.failures.incident_rate import IncidentSummary
    from analytics.failures.summary import FailureSummary
    from analytics.reliability.mttf import GroupRate, MttfReport
    from app.questions import Fleet
    from app.reports.redaction import Names

INCIDENTS = 20
"""Incidents listed, the costliest."""
NODES = 40
"""Nodes out of service that are listed, the latest."""
_RATE = "per 1,000 node-days"


def by_week(weeks: Sequence[GroupRate]) -> Table:
    """Failures, exposure and rate of each week."""
    return Table(
        "rate_by_week",
        "Failure rate by week",
        (
            Column("week", "Week beginning (UTC)"),
            Column("failures", "Failures", "count"),
            Column("exposure_node_days", "Exposure (node-days)", "number"),
            Column("rate_per_1000_node_days", "Failures per 1,000 node-days", "rate"),
        ),
        tuple(
            (week.group, week.estimate.failures, week.estimate.exposure,
             week.estimate.rate_per_1000_node_days)
            for week in weeks
        ),
        "Nothing ran in the period.",
    )  # fmt: skip


def by_domain(summary: FailureSummary) -> Table:
    """Failed attempts of each domain."""
    return Table(
        "domains",
        "Whose fault: domains of failure",
        (
            Column("domain", "Domain"),
            Column("attempts", "Failed attempts", "count"),
            Column("share", "Share of failed", "share"),
            Column("gpu_hours", "GPU-hours", "number"),
            Column("rate_per_1000_node_days", f"Failed {_RATE}", "rate"),
        ),
        tuple(
            (domains.TITLES.get(one.domain, one.domain), one.n_attempts, one.share, one.gpu_hours,
             one.rate_per_1000_node_days)
            for one in summary.by_domain
            if summary.n_failed
        ),
        "No attempt failed.",
    )  # fmt: skip


def by_cause(summary: FailureSummary) -> Table:
    """Failed attempts of each cause, the most frequent first, and who acts."""
    return Table(
        "causes",
        "All causes",
        (
            Column("cause", "Cause"),
            Column("domain", "Domain"),
            Column("attempts", "Failed attempts", "count"),
            Column("gpu_hours", "GPU-hours", "number"),
            Column("rate_per_1000_node_days", f"Failed {_RATE}", "rate"),
            Column("who_acts", "Who acts"),
        ),
        tuple(
            (one.title, domains.TITLES.get(one.domain, one.domain), one.n_attempts,
             one.gpu_hours, one.rate_per_1000_node_days, one.owner)
            for one in summary.by_cause
        ),
        "No attempt failed.",
    )  # fmt: skip


def by_state(summary: FailureSummary) -> Table:
    """How attempts ended."""
    return Table(
        "states",
        "How attempts ended",
        (
            Column("state", "State"),
            Column("attempts", "Attempts", "count"),
            Column("share", "Share of ended", "share"),
            Column("gpu_hours", "GPU-hours", "number"),
            Column("gpu_time_share", "Share of GPU-time", "ratio"),
        ),
        tuple(
            (one.state, one.n_attempts, one.share, one.gpu_hours, one.gpu_time_share)
            for one in summary.by_state
        ),
        "No attempt ended in the period.",
    )


def costliest(rows: pd.DataFrame, total: int) -> Table:
    """Incidents with the largest loss; `total`: how many incidents there are."""
    return Table(
        "incidents",
        "Incidents with the largest loss",
        (
            Column("incident_id", "Incident"),
            Column("start_at", "Began (UTC)", "time"),
            Column("summary", "What happened"),
            Column("failed_jobs", "Failed jobs", "count"),
            Column("lost_gpu_hours", "GPU-hours lost", "number"),
            Column("status", "Status"),
        ),
        tuple(
            (row["incident_id"], row["start_at"], one_line(str(row["summary"])),
             row["n_failed_jobs"], _known(row["lost_gpu_hours"]), row["status"])
            for row in rows.to_dict("records")
        ),
        "No incident touches the period.",
        f"{len(rows):,} of {numbers.counted(total, 'incident')}." if len(rows) < total else "",
    )  # fmt: skip


def incident_causes(summary: IncidentSummary) -> Table:
    """Number and loss of incidents of each cause."""
    return Table(
        "incident_causes",
        "Incidents by cause",
        (
            Column("cause", "Cause"),
            Column("domain", "Domain"),
            Column("incidents", "Incidents", "count"),
            Column("jobs", "Jobs hit", "count"),
            Column("lost_gpu_hours", "GPU-hours lost", "number"),
        ),
        tuple(
            (one.title, domains.TITLES.get(one.domain, one.domain), one.n_incidents, one.n_jobs,
             one.lost_gpu_hours)
            for one in summary.by_cause
        ),
        "No incident touches the period.",
    )  # fmt: skip


def by_size(mttf: MttfReport) -> Table:
    """Measured MTTF of each class of sizes."""
    return Table(
        "mttf_by_size",
        "Measured MTTF by job size",
        (
            Column("job_size", "Job size"),
            Column("failures", "Failures", "count"),
            Column("running_hours", "Running time (h)", "count"),
            Column("mttf_hours", "MTTF", "mttf", "h"),
        ),
        tuple(
            (numbers.gpus(size.gpus_from, size.gpus_to), size.mttf_hours.n, size.running_hours,
             size.mttf_hours)
            for size in mttf.by_size
        ),
        "No job with GPUs ran.",
    )  # fmt: skip


def projection(mttf: MttfReport) -> Table:
    """MTTF that the rate implies for each size."""
    return Table(
        "mttf_projection",
        "MTTF that the failure rate projects",
        (Column("job_size", "Job size"), Column("mttf_hours", "MTTF", "mttf", "h")),
        tuple(
            (f"{point.gpus:,} GPUs", point.mttf_hours)
            for point in mttf.projection
            if point.mttf_hours.lower is not None
        ),
        "Unknown: the rate, or the number of GPUs in a node, is.",
    )


def out_of_service(fleet: Fleet, names: Names) -> Table:
    """Nodes out of service, the latest first."""
    nothing = "None."
    if fleet.n_out_of_service is None:
        nothing = "No source says which nodes are out of service."
    elif fleet.without_states:
        nothing = f"None known; no record says it of {', '.join(fleet.without_states)}."
    rows = names.frame(fleet.out_of_service)
    shown = rows.head(NODES)
    return Table(
        "nodes_out_of_service",
        "Nodes out of service at the end of the period",
        (
            Column("node", "Node"),
            Column("state", "State"),
            Column("since_at", "Since (UTC)", "time"),
            Column("reason", "Reason"),
        ),
        tuple(
            (_text(row["node"]), _text(row["state"]), row["since_at"], _text(row["reason"]))
            for row in shown.to_dict("records")
        ),
        nothing,
        f"The latest {len(shown):,} of {len(rows):,}." if len(shown) < len(rows) else "",
    )


def _text(value: object) -> str:
    """What a record says; nothing where it is null."""
    return one_line(value) if isinstance(value, str) else ""


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)
