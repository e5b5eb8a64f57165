"""What is the history of this job, or of this node?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.questions.fleet import choices
from data.errors import DataError
from data.queries import failures as failure_queries
from data.queries import targets

if TYPE_CHECKING:
    import pandas as pd

    from data.queries.selection import Selection
    from data.store import Store

URGENT = ("critical", "fatal")
"""Severities of events that call for somebody."""
BY_NODE = ("hardware", "system_software")
"""Domains of failures that a node can end an attempt by."""


@dataclass(frozen=True)
class Job:
    """All attempts of one job."""

    job_id: str
    attempts: pd.DataFrame
    """One row an attempt, oldest first: the columns of `jobs` and those of its verdict; evidence
    and alternatives as lists, NaN where the attempt has no verdict."""


@dataclass(frozen=True)
class Node:
    """What was recorded of one node."""

    cluster: str
    node: str
    facts: pd.DataFrame
    """Columns key, value, from_at, to_at."""
    history: pd.DataFrame
    """Columns kind, key, start_at, end_at, what, severity, text; the latest first."""
    attempts: pd.DataFrame
    """Attempts that ran on it, the latest first; `here`: the verdict names this node."""
    said: pd.DataFrame
    """Columns field, value: what people said of the node."""

    @property
    def outages(self) -> pd.DataFrame:
        """Times out of service, planned ones too."""
        return self.history[self.history["kind"].eq("node_event")]

    @property
    def planned(self) -> pd.DataFrame:
        """Those that somebody had planned."""
        return self.outages[self.outages["what"].fillna("").str.startswith("planned")]

    @property
    def events(self) -> pd.DataFrame:
        """Health events."""
        return self.history[self.history["kind"].eq("health_event")]

    @property
    def urgent(self) -> pd.DataFrame:
        """Critical and fatal ones."""
        return self.events[self.events["severity"].isin(URGENT)]

    @property
    def tickets(self) -> pd.DataFrame:
        """Repair tickets."""
        return self.history[self.history["kind"].eq("ticket")]

    @property
    def failed(self) -> pd.DataFrame:
        """Attempts that failed while they ran here, whoever was at fault."""
        return self.attempts[self.attempts["cause"].notna()]

    @property
    def failed_here(self) -> pd.DataFrame:
        """Attempts that this node ended: the verdict names it, and blames no program of a user."""
        attempts = self.attempts
        here = attempts["here"].fillna(False).astype(bool)
        by_node = attempts["domain"].isin(BY_NODE) | attempts["cause"].eq("node_lost")
        return attempts[here & by_node]


def job(store: Store, job_id: str, *, cluster: str | None = None) -> Job:
    """What happened to this job, attempt by attempt?

    Raises
    ------
    DataError
        Where no cluster has such a job.
    """
    attempts = failure_queries.job_attempts(store, cluster, job_id)
    if attempts.empty:
        near = [] if job_id.isdigit() else targets.nearest(store, "attempt", job_id)
        raise DataError(
            f"job {job_id!r} is not in the store: "
            + (f"did you mean attempt {near[0]}?" if near else "see the list of failures")
        )
    for column in ("evidence", "alternatives"):
        attempts[column] = attempts[column].map(json.loads, na_action="ignore")
    return Job(job_id, attempts)


def log_lines(store: Store, cluster: str, attempt_key: str, *, limit: int = 2000) -> pd.DataFrame:
    """What did its log say?"""
    return failure_queries.log_lines(store, cluster, attempt_key, limit)


def node(store: Store, node: str, selection: Selection, *, cluster: str | None = None) -> Node:
    """What happened on this node in the period?

    Raises
    ------
    DataError
        Where no cluster has such a node, or several have and none is named.
    """
    found = failure_queries.clusters_of_node(store, node)
    if cluster is None and len(found) > 1:
        raise DataError(f"node {node!r} is in {', '.join(found)}: choose one cluster")
    if not found or (cluster is not None and cluster not in found):
        clusters = (cluster,) if cluster is not None else choices(store).clusters
        near = [key for c in clusters for key in targets.nearest(store, "node", f"{c}/{node}")]
        raise DataError(
            f"node {node!r} is not in the store: "
            + (f"did you mean {near[0]}?" if near else "no record names it")
        )
    name = cluster or found[0]
    return Node(
        cluster=name,
        node=node,
        facts=failure_queries.node_facts(store, name, node),
        history=failure_queries.node_history(store, name, node, selection),
        attempts=failure_queries.node_attempts(store, name, node, selection),
        said=failure_queries.said_of(store, "node", f"{name}/{node}"),
    )
