"""In a line: is the fleet well, what fails most, what did it cost?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analytics.frames import DEFINITION
from app.answers.efficiency import ledger, ledger_parts
from app.answers.failures import summary, verdicts
from app.answers.fleet import overview
from app.answers.reliability.sight import CANNOT
from app.words import numbers

if TYPE_CHECKING:
    from analytics.reliability.fleet_verdict import Verdict
    from app.ask import Ask
    from data.filters import Selection


WITHOUT_UNIT = (numbers.UNKNOWN, ledger_parts.NOT_COMPUTED)


@dataclass(frozen=True)
class InShort:
    """What Overview says, for the head of other pages."""

    verdict: Verdict
    well: str
    """The verdict in words."""
    commonest: str | None
    """The infrastructure cause of most failures; None where none stands out."""
    lost: str
    """GPU-hours lost to failures, as they are printed everywhere, or that they are not known."""


def as_overview(selection: Selection) -> Selection:
    """The selection as Overview has it: it knows no definition, and counts all sizes unless the
    reader chose some."""
    return replace(selection, definition=DEFINITION, min_gpus=selection.by_size_min_gpus or 0)


def in_short(ask: Ask, selection: Selection) -> InShort:
    """The verdict, the commonest cause and the loss of a selection of Overview."""
    judged = overview.judged(ask, selection)
    blind = judged.verdict == "unknown" and judged.report.failures_known is None
    first = summary.commonest(ask(verdicts.summarised, selection))
    lost, *_ = ledger_parts.lost_to_failures(ask(ledger.if_built, selection), selection)
    return InShort(
        judged.verdict,
        CANNOT.capitalize() if blind else overview.WORDS[judged.verdict],
        None if first is None else first.title.partition(" (")[0],
        lost.value if lost.value in WITHOUT_UNIT else f"{lost.value} GPU-h",
    )
