"""The questions of app.questions, cached for the dashboard.

Answers are keyed by the store's snapshot and all arguments. CURRENT is read again on every run,
so a new snapshot is followed without a restart.
"""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import streamlit as st

from app import questions
from app.reports import kinds
from data.current import read_current
from data.errors import DataError
from data.queries.parameters import Parameter
from data.queries.selection import MTTF_MIN_GPUS, Selection
from data.sandbox import QueryResult, RunningQuery, keep_spares
from data.saved_queries import SavedQueries, SavedQuery
from data.state import Annotation, State
from data.store import Store, require_current

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from analytics.failures.companions import Companion
    from analytics.failures.confusion import ConfusionMatrix
    from analytics.failures.incident_rate import IncidentSummary
    from analytics.failures.summary import FailureSummary
    from analytics.failures.taxonomy import Taxonomy
    from analytics.reliability.mttf import GroupRate, MttfReport
    from app.reports.content import Report
    from app.reports.kinds import Kind
    from data.queries.reliability import Grouping

__all__ = [
    "MTTF_MIN_GPUS", "Annotation", "DataError", "Parameter", "QueryResult", "RunningQuery",
    "SavedQuery", "Selection",
]  # fmt: skip

ANSWERS_KEPT = 256
"""Answers held for all sessions together."""

ROWS_KEPT = 1000
"""Rows up to which a table is kept; what a download asks for is not."""

SPARE_QUERIES = 2
"""Processes kept ready for ad hoc queries, once somebody opened the page."""

SQL_LIMITS = questions.PAGE_LIMITS
parameters, sql_examples = questions.parameters, questions.sql_examples

P = ParamSpec("P")
R = TypeVar("R")


def store_root() -> Path:
    """Directory of the store that the dashboard shows."""
    return Path(os.environ.get("FAULTLINE_STORE", "store"))


def snapshot() -> int:
    """Number of the published snapshot; 0 where nothing was published yet."""
    current = read_current(store_root())
    return 0 if current is None else current.snapshot


def said_version() -> str:
    """Changes with every annotation: what people say counts at once."""
    return State(store_root()).version()


def choices() -> questions.Choices | None:
    """What the filters can be set to; None where nothing was published yet."""
    return _answer(questions.choices) if snapshot() else None


def mttf(selection: Selection) -> MttfReport:
    """Failure rate and MTTF."""
    return _answer(questions.mttf, selection)


def mttf_before(selection: Selection) -> MttfReport | None:
    """The same of the preceding period of equal length; None where it holds no data."""
    return _answer(questions.mttf_before, selection)


def rates_by(selection: Selection, by: Grouping) -> tuple[GroupRate, ...]:
    """Failure rate by week, partition, rack or age of the node."""
    return _answer(questions.rates_by, selection, by)


def failure_rows(selection: Selection, limit: int) -> pd.DataFrame:
    """The failures behind a rate."""
    return _rows(questions.failure_rows, selection, limit=limit)


def attempt_rows(selection: Selection, *, gpus: tuple[int, int], limit: int) -> pd.DataFrame:
    """The attempts behind the MTTF of a class of sizes (first and last number of GPUs)."""
    return _rows(questions.attempt_rows, selection, gpus=gpus, limit=limit)


def fleet(selection: Selection) -> questions.Fleet:
    """Nodes, and which of them are out of service."""
    return _answer(questions.fleet, selection)


def coverage(selection: Selection) -> questions.Coverage:
    """Which source covers which days, and which was never collected."""
    return _answer(questions.coverage, selection)


def projection(
    rate_per_1000_node_days: float, gpus: Sequence[int], *, gpus_per_node: int = 8
) -> list[float | None]:
    """MTTF in hours that a given rate projects for jobs of these sizes; needs no store."""
    projected = questions.projection(rate_per_1000_node_days, gpus, gpus_per_node=gpus_per_node)
    return [projection.mttf_hours.value for projection in projected]


def taxonomy() -> Taxonomy:
    """Causes and symptoms that this site tells apart."""
    return _answer(questions.taxonomy)


def cause_titles() -> dict[str, str]:
    """Title of every cause, by its name."""
    return {name: cause.title for name, cause in taxonomy().causes.items()}


def failures(selection: Selection) -> FailureSummary:
    """What fails, how often, whose fault it is."""
    return _answer(questions.failures, selection)


def verdict_rows(
    selection: Selection,
    *,
    cause: str | None = None,
    domain: str | None = None,
    counted: bool = False,
    limit: int,
) -> pd.DataFrame:
    """Failed attempts with their verdicts; `counted`: those that the failure rate counts."""
    return _rows(
        questions.verdict_rows,
        selection,
        cause=cause,
        domain=domain,
        counted=counted,
        limit=limit,
    )


def check_calibration(selection: Selection) -> pd.DataFrame:
    """How often each check fires around the end of successful jobs."""
    return _answer(questions.check_calibration, selection)


def confusion(selection: Selection) -> dict[str, ConfusionMatrix]:
    """Verdicts beside the right causes, by where these come from: planted, confirmed."""
    return _answer(questions.confusion_matrices, selection)


def job(job_id: str, cluster: str | None) -> questions.Job:
    """All attempts of a job."""
    return _answer(questions.job, job_id, cluster=cluster)


def log_lines(cluster: str, attempt_key: str, limit: int) -> pd.DataFrame:
    """Lines of an attempt's log."""
    return _rows(questions.log_lines, cluster, attempt_key, limit=limit)


def node(name: str, selection: Selection) -> questions.Node:
    """What was recorded of a node; the selection names its cluster where several have it."""
    return _answer(questions.node, name, selection, cluster=selection.cluster)


def incidents(selection: Selection, **kind: str | None) -> IncidentSummary:
    """How many incidents, how often, at what cost; `kind` is domain, cause and status."""
    return _answer(questions.incidents, selection, **kind)


def incident_rows(selection: Selection, *, limit: int, **kind: str | None) -> pd.DataFrame:
    """Incidents, the latest first."""
    return _rows(questions.incident_rows, selection, limit=limit, **kind)


def signals_of_incidents(selection: Selection, **kind: str | None) -> tuple[Companion, ...]:
    """Which checks and codes come together."""
    return _answer(questions.signals_of_incidents, selection, **kind)


def incident(incident_id: str) -> questions.Incident:
    """One incident with everything it consists of."""
    return _answer(questions.incident, incident_id)


def incidents_of_attempt(cluster: str, attempt_key: str) -> pd.DataFrame:
    """The incident that an attempt belongs to."""
    return _answer(questions.incidents_of_attempt, cluster, attempt_key)


def incidents_of_node(cluster: str, node: str) -> pd.DataFrame:
    """Incidents in which a node is named, the latest first."""
    return _answer(questions.incidents_of_node, cluster, node)


def incident_report(incident_id: str) -> Report:
    """The same as a report."""
    return report("incident", Selection(), about=incident_id)


def report(kind: Kind, selection: Selection, *, about: str = "", redact: bool = False) -> Report:
    """A report; `about` is the id of its incident or the name of its node."""
    key = _key()
    return _reported(_open(*key), key, kind, selection, about=about, redact=redact)


def said(target: str) -> list[Annotation]:
    """All that people said of an attempt, an incident or a node; newest first, never cached."""
    return State(store_root()).history(target)


def time_of(annotation: Annotation) -> datetime:
    """When an annotation was made."""
    return datetime.fromisoformat(annotation.made_at)


def schema() -> questions.StoreSchema:
    """Tables and columns, and what they mean."""
    return _answer(questions.schema_of)


def sample_rows(table: str) -> pd.DataFrame:
    """The first rows of a table."""
    return _answer(questions.sample_rows, table)


def published_at() -> datetime | None:
    """When the snapshot was published; None where nothing was."""
    current = read_current(store_root())
    return None if current is None else datetime.fromisoformat(current.published_at)


def ask_sql(sql: str, selection: Selection) -> RunningQuery:
    """Starts an ad hoc query of the published snapshot; never cached."""
    return questions.ask_sql(store_root() / require_current(store_root()).file, sql, selection)


def prepare_sql() -> None:
    """Processes start ahead of the queries that they will run."""
    keep_spares(SPARE_QUERIES)


def kept_queries() -> SavedQueries:
    """Queries that people saved, and the last ones that each asked; never cached."""
    return SavedQueries(store_root())


def ingests() -> pd.DataFrame:
    """What was read into the store."""
    return _answer(questions.ingests)


def rejected_rows(ingest_id: str | None, limit: int) -> pd.DataFrame:
    """Records that could not be read."""
    return _rows(questions.rejected_rows, ingest_id, limit=limit)


def _answer(question: Callable[Concatenate[Store, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The answer to a question about the present snapshot, from the cache where it was asked."""
    key = _key()
    answer: R = _cached(_open(*key), key, question.__name__, args, kwargs)
    return answer


def _key() -> tuple[str, int, str]:
    """What answers are about: the store, its snapshot, and what people had said by then."""
    return str(store_root()), snapshot(), said_version()


def _rows(
    question: Callable[..., pd.DataFrame], *args: Any, limit: int, **kwargs: Any
) -> pd.DataFrame:
    """At most `limit` rows; from the cache where they are few."""
    if limit <= ROWS_KEPT:
        return _answer(question, *args, limit=limit, **kwargs)
    with contextlib.closing(Store.open(store_root())) as store:
        return question(store, *args, limit=limit, **kwargs)


@st.cache_resource(max_entries=2, show_spinner=False)
def _open(root: str, snapshot: int, said: str) -> Store:  # noqa: ARG001 - the cache's key
    """The store, open at a snapshot, with what people had said by then."""
    return Store.open(Path(root))


@st.cache_data(max_entries=ANSWERS_KEPT, show_spinner="Reading the store")
def _cached(
    _store: Store,
    key: tuple[str, int, str],  # noqa: ARG001 - part of the cache's key
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """One place for all answers: Streamlit tells cached functions apart by their source."""
    return getattr(questions, name)(_store, *args, **kwargs)


@st.cache_data(max_entries=ANSWERS_KEPT, show_spinner="Writing the report")
def _reported(
    _store: Store,
    key: tuple[str, int, str],  # noqa: ARG001 - part of the cache's key
    kind: Kind,
    selection: Selection,
    *,
    about: str,
    redact: bool,
) -> Report:
    """Reports of all kinds."""
    return kinds.report(_store, kind, selection, about=about, redact=redact)
