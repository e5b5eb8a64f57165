"""Is my fleet good, what changed, what needs me?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.answers.content import Answer, Number
from app.answers.efficiency import ettr, ledger
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet import nodes
from app.answers.reliability import mttf, rate_by_group

if TYPE_CHECKING:
    from app.ask import Ask
    from data.filters import Selection


def answer(ask: Ask, selection: Selection, *, timezone: str = "UTC") -> Answer:
    """How often does the fleet fail, what do large runs get out of it, and which nodes are out?"""
    report = ask(mttf.measured, selection)
    before = ask(mttf.measured_before, selection)
    headlines = mttf.Headlines(report, before, selection)
    fleet = ask(nodes.nodes, selection)
    return Answer(
        mttf.fleet_sentence(report),
        (
            headlines.number(mttf.RATE),
            headlines.largest_jobs(),
            *ettr.large_runs(ask, selection),
            _lost(ask, selection),
            nodes.number(fleet, selection, timezone=timezone),
        ),
        (
            rate_by_group.chart(ask(rate_by_group.rates, selection, "week"), report, "week"),
            nodes.out_of_service(fleet),
        ),
        mttf.notes(report, selection),
    )


def _lost(ask: Ask, selection: Selection) -> Number:
    """What failures cost, and the cause that cost most."""
    cost = ask(ledger.if_built, selection)
    number, first = ledger.lost_to_failures(cost, selection), ledger.costliest_cause(cost)
    if first is None:
        return number
    return replace(number, basis=f"{number.basis}; most by {ask(cause_titles).get(first, first)}")
