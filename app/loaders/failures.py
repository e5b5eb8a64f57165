"""What fails, why, and what is known of one incident, job or node."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from app import questions
from app.loaders import cached
from data.queries.selection import Selection
from data.state import Annotation, State

if TYPE_CHECKING:
    import pandas as pd

    from analytics.failures.companions import Companion
    from analytics.failures.confusion import ConfusionMatrix
    from analytics.failures.incident_rate import IncidentSummary
    from analytics.failures.summary import FailureSummary
    from analytics.failures.taxonomy import Taxonomy
    from app.reports.content import Report


def taxonomy() -> Taxonomy:
    """Causes and symptoms that this site tells apart."""
    return cached.answer(questions.taxonomy)


def cause_titles() -> dict[str, str]:
    """Title of every cause, by its name."""
    return {name: cause.title for name, cause in taxonomy().causes.items()}


def failures(selection: Selection) -> FailureSummary:
    """What fails, how often, whose fault it is."""
    return cached.answer(questions.failures, selection)


def verdict_rows(
    selection: Selection,
    *,
    cause: str | None = None,
    domain: str | None = None,
    counted: bool = False,
    limit: int,
) -> pd.DataFrame:
    """Failed attempts with their verdicts; `counted`: those that the failure rate counts."""
    return cached.rows(
        questions.verdict_rows,
        selection,
        cause=cause,
        domain=domain,
        counted=counted,
        limit=limit,
    )


def check_calibration(selection: Selection) -> pd.DataFrame:
    """How often each check fires around the end of successful jobs."""
    return cached.answer(questions.check_calibration, selection)


def confusion(selection: Selection) -> dict[str, ConfusionMatrix]:
    """Verdicts beside the right causes, by where these come from: planted, confirmed."""
    return cached.answer(questions.confusion_matrices, selection)


def job(job_id: str, cluster: str | None) -> questions.Job:
    """All attempts of a job."""
    return cached.answer(questions.job, job_id, cluster=cluster)


def log_lines(cluster: str, attempt_key: str, limit: int) -> pd.DataFrame:
    """Lines of an attempt's log."""
    return cached.rows(questions.log_lines, cluster, attempt_key, limit=limit)


def node(name: str, selection: Selection) -> questions.Node:
    """What was recorded of a node; the selection names its cluster where several have it."""
    return cached.answer(questions.node, name, selection, cluster=selection.cluster)


def incidents(selection: Selection, **kind: str | None) -> IncidentSummary:
    """How many incidents, how often, at what cost; `kind` is domain, cause and status."""
    return cached.answer(questions.incidents, selection, **kind)


def incident_rows(selection: Selection, *, limit: int, **kind: str | None) -> pd.DataFrame:
    """Incidents, the latest first."""
    return cached.rows(questions.incident_rows, selection, limit=limit, **kind)


def signals_of_incidents(selection: Selection, **kind: str | None) -> tuple[Companion, ...]:
    """Which checks and codes come together."""
    return cached.answer(questions.signals_of_incidents, selection, **kind)


def incident(incident_id: str) -> questions.Incident:
    """One incident with everything it consists of."""
    return cached.answer(questions.incident, incident_id)


def incidents_of_attempt(cluster: str, attempt_key: str) -> pd.DataFrame:
    """The incident that an attempt belongs to."""
    return cached.answer(questions.incidents_of_attempt, cluster, attempt_key)


def incidents_of_node(cluster: str, node: str) -> pd.DataFrame:
    """Incidents in which a node is named, the latest first."""
    return cached.answer(questions.incidents_of_node, cluster, node)


def incident_report(incident_id: str) -> Report:
    """The same as a report."""
    return cached.report("incident", Selection(), about=incident_id)


def said(target: str) -> list[Annotation]:
    """All that people said of an attempt, an incident or a node; newest first, never cached."""
    return State(cached.store_root()).history(target)


def time_of(annotation: Annotation) -> datetime:
    """When an annotation was made."""
    return datetime.fromisoformat(annotation.made_at)
