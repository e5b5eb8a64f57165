"""What happened, what did it hit, and what now?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.failures.incident_rate import IncidentSummary, incident_summary
from data.errors import DataError
from data.queries import incidents as incident_queries
from data.queries import reliability as reliability_queries
from data.site import load_site

if TYPE_CHECKING:
    import pandas as pd

    from analytics.failures.taxonomy import Cause
    from data.queries.selection import Selection
    from data.store import Store


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


def incidents(store: Store, selection: Selection, *, conf_level: float = 0.90) -> IncidentSummary:
    """How many incidents, how often, and what did they cost?"""
    counts = reliability_queries.failure_counts(store, selection)
    exposure = float(counts.by_day["exposure_node_days"].sum()) if counts.exposure_known else None
    rows = incident_rows(store, selection, limit=1_000_000)
    causes = load_site(store.root).causes.causes
    return incident_summary(rows, exposure, causes=causes, conf_level=conf_level)


def incident_rows(
    store: Store,
    selection: Selection,
    *,
    domain: str | None = None,
    cause: str | None = None,
    status: str | None = None,
    limit: int = 10_000,
) -> pd.DataFrame:
    """Which incidents were there?"""
    rows = incident_queries.incident_rows(
        store, selection, domain=domain, cause=cause, status=status, limit=limit
    )
    return _listed(rows)


def incident(store: Store, incident_id: str) -> Incident:
    """What happened here, why, what now?

    An id that was merged into another answers with that one.

    Raises
    ------
    DataError
        Where no incident has this id.
    """
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
        successor = incident(store, heir)
        return Incident(successor.row, successor.members, successor.cause, incident_id)
    causes = load_site(store.root).causes.causes
    return Incident(
        row,
        incident_queries.members(store, incident_id),
        causes.get(row["cause"], causes["unknown"]),
        incident_id,
    )


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


def incidents_of_attempts(store: Store, attempt_keys: list[str]) -> pd.DataFrame:
    """Which incidents do these attempts belong to?"""
    return incident_queries.incidents_of(store, "failure", attempt_keys)


def incidents_of_node(store: Store, cluster: str, node: str) -> pd.DataFrame:
    """In which incidents is this node named?"""
    return _listed(incident_queries.of_node(store, cluster, node))


def _listed(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with their nodes as lists, and GPU-hours."""
    return rows.assign(
        nodes=[json.loads(nodes) if isinstance(nodes, str) else [] for nodes in rows["nodes"]],
        lost_gpu_hours=rows["lost_gpu_seconds"] / 3600.0,
    )
