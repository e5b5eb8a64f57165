"""Where the GPU-hours of a period went: the section of the fleet report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.answers.efficiency import ledger
from app.reports.report import Section
from app.words import terms

if TYPE_CHECKING:
    from app.ask import Ask
    from data.filters import Selection

TITLE = "Where the GPU-hours went"
TERMS = (terms.PRODUCTIVE_SHARE, terms.THIRTY_MINUTES)
NOT_BUILT = (
    "The ledger of these records is not built: `faultline ledger` builds it, then this report has "
    "it."
)


def section(ask: Ask, selection: Selection, *, conf_level: float) -> Section:
    """Buckets and losses; only the reason where the ledger is not built or holds nothing."""
    if not ledger.is_built(ask):
        return Section(TITLE, (), (NOT_BUILT,))
    answer = ledger.answer(ask, selection, conf_level=conf_level)
    if not answer.numbers:
        return Section(TITLE, (), (answer.sentence,))
    tables = (answer.table("gpu_hours"), answer.table("lost_work"))
    return Section(TITLE, tables, (*answer.record["notes"], ledger.WHOLE_DAYS))
