"""One question a function: data from a query, through one analysis, to its result.

Views (through app.loaders), the command line and reports all come here, so that one number has
one home.
"""

from app.questions.classification import (
    FileVerdict,
    TextEvaluation,
    Trained,
    evaluate_monthly,
    evaluate_on_file,
    log_file_verdict,
    train_on_file,
)
from app.questions.efficiency import expected_ettr
from app.questions.explore import (
    PAGE_LIMITS,
    StoreSchema,
    ask_sql,
    parameters,
    sample_rows,
    schema_of,
    sql_examples,
)
from app.questions.failures import (
    check_calibration,
    confusion,
    confusion_matrices,
    failures,
    taxonomy,
    verdict_rows,
)
from app.questions.fleet import (
    Choices,
    Coverage,
    Fleet,
    Info,
    choices,
    coverage,
    fleet,
    info,
    ingests,
    last_whole,
    rejected_rows,
)
from app.questions.history import Job, Node, job, log_lines, node
from app.questions.incidents import (
    Incident,
    evidence_of_incidents,
    incident,
    incident_rows,
    incidents,
    incidents_of_attempt,
    incidents_of_node,
    said,
    signals_of_incidents,
)
from app.questions.people import Hidden, hidden
from app.questions.reliability import (
    attempt_rows,
    failure_rows,
    mttf,
    mttf_before,
    projection,
    rates_by,
)

__all__ = [
    "PAGE_LIMITS",
    "Choices",
    "Coverage",
    "FileVerdict",
    "Fleet",
    "Hidden",
    "Incident",
    "Info",
    "Job",
    "Node",
    "StoreSchema",
    "TextEvaluation",
    "Trained",
    "ask_sql",
    "attempt_rows",
    "check_calibration",
    "choices",
    "confusion",
    "confusion_matrices",
    "coverage",
    "evaluate_monthly",
    "evaluate_on_file",
    "evidence_of_incidents",
    "expected_ettr",
    "failure_rows",
    "failures",
    "fleet",
    "hidden",
    "incident",
    "incident_rows",
    "incidents",
    "incidents_of_attempt",
    "incidents_of_node",
    "info",
    "ingests",
    "job",
    "last_whole",
    "log_file_verdict",
    "log_lines",
    "mttf",
    "mttf_before",
    "node",
    "parameters",
    "projection",
    "rates_by",
    "rejected_rows",
    "said",
    "sample_rows",
    "schema_of",
    "signals_of_incidents",
    "sql_examples",
    "taxonomy",
    "train_on_file",
    "verdict_rows",
]
