"""The questions of app.questions, cached for the dashboard: one module a section, one cache."""

from app.loaders.cached import (
    ROWS_KEPT,
    published_at,
    report,
    said_version,
    snapshot,
    store_root,
)
from app.loaders.efficiency import (
    bucket_rows,
    ettr,
    expected_ettr,
    has_ledger,
    ledger,
    ledger_by,
    lost_attempts,
)
from app.loaders.explore import ask_sql, kept_queries, prepare_sql, sample_rows, schema
from app.loaders.failures import (
    cause_titles,
    check_calibration,
    confusion,
    failures,
    incident,
    incident_report,
    incident_rows,
    incidents,
    incidents_of_attempt,
    incidents_of_node,
    job,
    log_lines,
    node,
    said,
    signals_of_incidents,
    taxonomy,
    time_of,
    verdict_rows,
)
from app.loaders.fleet import choices, coverage, fleet, ingests, rejected_rows
from app.loaders.reliability import (
    attempt_rows,
    failure_rows,
    mttf,
    mttf_before,
    projection,
    rates_by,
)
from app.questions import PAGE_LIMITS as SQL_LIMITS
from app.questions import parameters, sql_examples
from data.errors import DataError
from data.queries.parameters import Parameter
from data.queries.selection import MTTF_MIN_GPUS, Selection
from data.sandbox import QueryResult, RunningQuery
from data.saved_queries import SavedQuery
from data.state import Annotation

__all__ = [
    "MTTF_MIN_GPUS",
    "ROWS_KEPT",
    "SQL_LIMITS",
    "Annotation",
    "DataError",
    "Parameter",
    "QueryResult",
    "RunningQuery",
    "SavedQuery",
    "Selection",
    "ask_sql",
    "attempt_rows",
    "bucket_rows",
    "cause_titles",
    "check_calibration",
    "choices",
    "confusion",
    "coverage",
    "ettr",
    "expected_ettr",
    "failure_rows",
    "failures",
    "fleet",
    "has_ledger",
    "incident",
    "incident_report",
    "incident_rows",
    "incidents",
    "incidents_of_attempt",
    "incidents_of_node",
    "ingests",
    "job",
    "kept_queries",
    "ledger",
    "ledger_by",
    "log_lines",
    "lost_attempts",
    "mttf",
    "mttf_before",
    "node",
    "parameters",
    "prepare_sql",
    "projection",
    "published_at",
    "rates_by",
    "rejected_rows",
    "report",
    "said",
    "said_version",
    "sample_rows",
    "schema",
    "signals_of_incidents",
    "snapshot",
    "sql_examples",
    "store_root",
    "taxonomy",
    "time_of",
    "verdict_rows",
]
