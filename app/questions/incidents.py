"""What happened, what did it hit, and what now?"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from analytics.failures.co_occurrence import co_occurrence
from analytics.failures.companions import Companion, companions
from analytics.failures.incident_rate import IncidentSummary, incident_summary
from analytics.failures.incidents.timeline import Timeline, timeline
from data.errors import DataError
from data.queries import incidents as incident_queries
from data.queries import reliability as reliability_queries
from data.site import load_site
from data.state import State

if TYPE_CHECKING:
    from analytics.failures.taxonomy import Cause
    from data.queries.selection import Selection
    from data.state import Annotation
    from data.store import Store

EVERYTHING = 1_000_000
"""Incidents counted at most."""


@dataclass(frozen=True)
class Incident:
    """One incident, with everything it consists of."""

    row: dict[str, object]
    """Its columns in the table `incidents`, with status and note; nodes as a list."""
    members: pd.DataFrame
    """In order of time: kind, key, start_at, end_at, node, text, severity, role, signal, and of
    failures and preemptions job_id, attempt, state, n_gpus, cause, domain, confidence."""
    cause: Cause
    """Its leading cause: title, owner, action."""
    asked_id: str
    """The id asked for, where that one was merged into this."""
    verdicts: pd.DataFrame
    """Of its failed attempts: job_id, attempt_key, failed_at, cause, confidence, method, evidence
    and alternatives (lists)."""
    confidence: float | None
    """Of its cause: the largest of the verdicts that name it; 1 where a person said it, None where
    no verdict does."""

    @property
    def timeline(self) -> Timeline:
        """Its members and the lines of logs that count, on one axis."""
        return timeline(self.members, _log_lines(self.verdicts))


def incidents(
    store: Store,
    selection: Selection,
    *,
    domain: str | None = None,
    cause: str | None = None,
    status: str | None = None,
    conf_level: float = 0.90,
) -> IncidentSummary:
    """How many incidents, how often, and what did they cost?"""
    counts = reliability_queries.failure_counts(store, selection)
    exposure = float(counts.by_day["exposure_node_days"].sum()) if counts.exposure_known else None
    rows = incident_rows(
        store, selection, domain=domain, cause=cause, status=status, limit=EVERYTHING
    )
    causes = load_site(store.root).causes.causes
    return incident_summary(rows, exposure, causes=causes, conf_level=conf_level)


def incident_rows(
    store: Store,
    selection: Selection,
    *,
    domain: str | None = None,
    cause: str | None = None,
    status: str | None = None,
    first: str = "latest",
    limit: int = 10_000,
) -> pd.DataFrame:
    """Which incidents were there, the latest or the largest first?"""
    rows = incident_queries.incident_rows(
        store, selection, domain=domain, cause=cause, status=status, first=first, limit=limit
    )
    return _listed(rows)


def incident(store: Store, incident_id: str) -> Incident:
    """What happened here, why, what now?

    An id that was merged into another answers with that one; `latest` and `largest` stand for
    the last to begin and the one that lost most GPU-time.

    Raises
    ------
    DataError
        Where no incident has this id.
    """
    if incident_id in incident_queries.FIRST_BY:
        incident_id = incident_queries.first_by(store, incident_id) or incident_id
    found = incident_queries.incident(store, incident_id)
    if found.empty:
        near = incident_queries.near_ids(store, incident_id[:4]) if incident_id else []
        raise DataError(
            f"incident {incident_id!r} is not in the store: "
            + (f"did you mean {near[0]}?" if near else "`faultline incidents` lists them")
        )
    row = _listed(found).iloc[0].to_dict()
    heir = row["superseded_by"]
    if isinstance(heir, str):
        return replace(incident(store, heir), asked_id=incident_id)
    causes = load_site(store.root).causes.causes
    verdicts = incident_queries.verdicts(store, incident_id)
    for column in ("evidence", "alternatives"):
        verdicts[column] = verdicts[column].map(json.loads)
    return Incident(
        row=row,
        members=incident_queries.members(store, incident_id),
        cause=causes.get(row["cause"], causes["unknown"]),
        asked_id=incident_id,
        verdicts=verdicts,
        confidence=_confidence(row, verdicts),
    )


def signals_of_incidents(
    store: Store,
    selection: Selection,
    *,
    domain: str | None = None,
    cause: str | None = None,
    status: str | None = None,
    conf_level: float = 0.90,
) -> tuple[Companion, ...]:
    """Which checks and codes come together in incidents, and how often?

    An incident counts once, however many events or jobs it holds.
    """
    rows = incident_queries.incident_rows(
        store, selection, domain=domain, cause=cause, status=status, limit=EVERYTHING
    )
    shown = incident_queries.signal_rows(store, rows["incident_id"].tolist())
    sets = co_occurrence(
        shown.rename(columns={"incident_id": "failure"}), len(rows), conf_level=conf_level
    )
    return companions(sets)


def said(store: Store, target: str) -> list[Annotation]:
    """What did people say of an attempt, an incident or a node, the newest first?"""
    return State(store.root).history(target)


def evidence_of_incidents(
    store: Store, incident_ids: list[str]
) -> dict[str, list[dict[str, object]]]:
    """What do these incidents consist of?"""
    rows = incident_queries.evidence_rows(store, incident_ids)
    plain = rows.astype(object).where(rows.notna(), None)
    found: dict[str, list[dict[str, object]]] = {}
    for row in plain.to_dict("records"):
        found.setdefault(str(row.pop("incident_id")), []).append(row)
    return found


def incidents_of_attempt(store: Store, cluster: str, attempt_key: str) -> pd.DataFrame:
    """Which incident does this attempt belong to?"""
    return incident_queries.of_attempt(store, cluster, attempt_key)


def incidents_of_node(store: Store, cluster: str, node: str) -> pd.DataFrame:
    """In which incidents is this node named?"""
    return _listed(incident_queries.of_node(store, cluster, node))


def _confidence(row: dict[str, object], verdicts: pd.DataFrame) -> float | None:
    """How sure the cause of an incident is."""
    if row["decided"]:
        return 1.0
    found = verdicts.loc[verdicts["cause"].eq(row["cause"]), "confidence"].max()
    return None if pd.isna(found) else float(found)


def _log_lines(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Lines of logs that name a cause: columns job_id, node, at, text, role."""
    lines = [
        {
            "job_id": verdict["job_id"],
            "node": each.get("node"),
            "at": verdict["failed_at"] + pd.Timedelta(seconds=each.get("offset_s") or 0.0),
            "text": each.get("text"),
            "role": each.get("role"),
        }
        for verdict in verdicts.to_dict("records")
        for each in verdict["evidence"]
        if each.get("kind") == "job_log"
    ]
    return pd.DataFrame(lines, columns=["job_id", "node", "at", "text", "role"])


def _listed(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with their nodes as lists, and GPU-hours."""
    return rows.assign(
        nodes=[json.loads(nodes) if isinstance(nodes, str) else [] for nodes in rows["nodes"]],
        lost_gpu_hours=rows["lost_gpu_seconds"] / 3600.0,
    )
