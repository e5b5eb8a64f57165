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
    rejected_rows,
)
from app.questions.history import Job, Node, job, log_lines, node
from app.questions.incidents import (
    Incident,
    evidence_of_incidents,
    incident,
    incident_rows,
    incidents,
    incidents_of_attempts,
    incidents_of_node,
    said,
    signals_of_incidents,
)
from app.questions.reliability import (
    attempt_rows,
    failure_rows,
    mttf,
    mttf_before,
    projection,
    rates_by,
)

__all__ = [
    "Choices",
    "Coverage",
    "FileVerdict",
    "Fleet",
    "Incident",
    "Info",
    "Job",
    "Node",
    "TextEvaluation",
    "Trained",
    "attempt_rows",
    "check_calibration",
    "choices",
    "confusion",
    "confusion_matrices",
    "coverage",
    "evaluate_monthly",
    "evaluate_on_file",
    "evidence_of_incidents",
    "failure_rows",
    "failures",
    "fleet",
    "incident",
    "incident_rows",
    "incidents",
    "incidents_of_attempts",
    "incidents_of_node",
    "info",
    "ingests",
    "job",
    "log_file_verdict",
    "log_lines",
    "mttf",
    "mttf_before",
    "node",
    "projection",
    "rates_by",
    "rejected_rows",
    "said",
    "signals_of_incidents",
    "taxonomy",
    "train_on_file",
    "verdict_rows",
]
