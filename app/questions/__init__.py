"""One question a function: data from a query, through one analysis, to its result.

Views (through app.loaders), the command line and reports all come here, so that one number has
one home.
"""

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
    "Fleet",
    "Info",
    "attempt_rows",
    "choices",
    "coverage",
    "failure_rows",
    "fleet",
    "info",
    "ingests",
    "mttf",
    "mttf_before",
    "projection",
    "rates_by",
    "rejected_rows",
]
