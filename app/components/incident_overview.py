"""Incidents over time and by cost, and what stands where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import loaders
from app.components import empty_state, figure_block, incident_filters, links, table, verbatim
from app.figures.failures import incidents_by_cause

if TYPE_CHECKING:
    from analytics.failures.incident_rate import IncidentSummary
    from app.components.scope import Scope

CARRIERS = ("health_events.", "node_events")
"""Sources without which an incident is a failure alone."""


def figure(summary: IncidentSummary, kind: dict[str, str | None], scope: Scope) -> None:
    """One mark an incident; a click opens it."""
    rows = loaders.incident_rows(scope.selection, limit=table.ROWS_SHOWN, **kind)
    chosen = incident_filters.words(kind)
    chart = incidents_by_cause.figure(
        rows,
        summary.by_cause,
        timezone=scope.timezone,
        total=summary.n_incidents,
        mode=scope.mode,
        note=" · ".join(part for part in (scope.note, chosen) if part),
    )
    data = rows.assign(nodes=rows["nodes"].map(", ".join))
    figure_block.show(
        chart, data, name="incidents_by_cause", scope=scope, opens=links.open_incident
    )


def by_cause(summary: IncidentSummary, scope: Scope) -> None:
    """What the incidents of each cause cost, as a table."""
    table.show(incidents_by_cause.frame(summary.by_cause), name="incident_causes", scope=scope)


def none(kind: dict[str, str | None], scope: Scope) -> None:
    """No incident: because of the filters, the period, or because nothing was collected."""
    chosen = incident_filters.words(kind)
    if chosen and loaders.incidents(scope.selection).n_incidents:
        empty_state.show(
            f"No incident of this kind ({chosen}).",
            remedy="There are others in this selection "
            f"({verbatim.escaped(scope.filters)}): choose all above.",
        )
        return
    held = set(loaders.coverage(scope.selection).sources["source"])
    if not any(source.startswith(CARRIERS) for source in held):
        empty_state.show(
            "No health event and no outage of a node is known in this selection.",
            remedy="Without them only failures with a cause, lost nodes and crash loops become "
            "incidents. These sources bring them:",
            commands=(
                "faultline ingest kernel-log kernel-*.log --cluster NAME",
                "faultline ingest gcm-health health.jsonl --cluster NAME",
                "faultline ingest sacctmgr-events events.txt --cluster NAME",
            ),
        )
        return
    empty_state.show(
        "No job failed by hardware or system software, and no node reported a critical event.",
        remedy=f"Choose a longer period or reset the filters ({verbatim.escaped(scope.filters)}).",
    )
