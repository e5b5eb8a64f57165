"""Is my fleet good, what did failures cost, what did large runs get?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.answers.content import Answer, Number
from app.answers.efficiency import ettr, ledger, ledger_numbers
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet import nodes, verdict
from app.answers.reliability import mttf, rate_by_group
from app.words import numbers

if TYPE_CHECKING:
    from app.ask import Ask
    from data.filters import Selection


def answer(
    ask: Ask, selection: Selection, *, reference: str | None = None, gpus: int | None = None
) -> Answer:
    """Is the fleet well beside a reference, and what do failures cost?

    `gpus` is the job size of the MTTF; the largest usual one where none is given.
    """
    shown = verdict.judged(ask, selection, reference)
    report, before = ask(mttf.measured, selection), ask(mttf.measured_before, shown.selection)
    return Answer(
        verdict.sentence(shown),
        (
            mttf.Headlines(shown.report, before, shown.selection).number(mttf.RATE),
            mttf.projected_number(mttf.of_size(ask, selection, gpus)),
            *ettr.large_runs(ask, selection),
            *_lost(ask, selection),
        ),
        (
            rate_by_group.chart(ask(rate_by_group.rates, selection, "week"), report, "week"),
            nodes.unplanned(ask(nodes.nodes, selection)),
        ),
        mttf.notes(shown.report, selection),
    )


def _lost(ask: Ask, selection: Selection) -> tuple[Number, ...]:
    """What failures cost, in money where a price is known, and the cause that cost most; then what
    unexplained failures would add."""
    cost = ask(ledger.if_built, selection)
    (number, *may_be), first = (
        ledger_numbers.lost_to_failures(cost, selection),
        ledger.costliest_cause(cost),
    )
    said = [number.basis]
    bucket = None if cost is None else cost.bucket("lost_work")
    if cost is not None and bucket is not None and bucket.cost is not None:
        said.append(f"{numbers.number(bucket.cost)} {cost.currency or ''}".strip())
    if first is not None:
        said.append(f"most by {ask(cause_titles).get(first, first)}")
    return (replace(number, basis="; ".join(part for part in said if part)), *may_be)
