"""The plan report: what would help a job like the largest run, and what to decide on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.answers.content import Chart, Missing, Table
from app.answers.efficiency import ettr
from app.answers.fleet import coverage
from app.answers.recovery import policies, reconfigure, sites, spares, target
from app.reports.report import Report, defined, filters_in_words, rests_on, section
from app.words.addresses import Place
from app.words.periods import Period

if TYPE_CHECKING:
    from app.answers.content import Answer
    from app.ask import Ask
    from app.reports.kinds import Request
    from app.reports.redaction import Names
    from app.reports.report import Section

KIND = {"needs_ledger": True}
"""About a job like the largest run: it has no option of its own."""
POLICIES = 15
"""Policies that a document lists, the best."""


def report(ask: Ask, request: Request, names: Names) -> Report:
    """What a target takes, policies ranked, spares, and what a failure now would cost."""
    selection, level = request.selection, request.conf_level
    known = target.of_store(ask, selection)
    if isinstance(known, Missing):
        wanted = target.unknown(known)
    else:
        wanted = target.answer(*known, told=ettr.assumptions(ask, selection))
    ranked = policies.answer(sites.of_store(ask, selection), conf_level=level, seed=request.seed)
    kept = spares.answer(ask, selection, conf_level=level, seed=request.seed)
    now = reconfigure.answer(reconfigure.of_store(ask, selection))
    held = coverage.answer(ask, selection)
    numbers = (*wanted.numbers, *ranked.numbers, *kept.numbers, *now.numbers)
    return Report(
        kind="plan",
        stem="plan",
        title="Recovery plan",
        during=Period(selection.from_at, selection.to_at, request.timezone),
        filters=filters_in_words(selection, names),
        answer=wanted.sentence,
        summary=(ranked.sentence, kept.sentence, now.sentence),
        headlines=(*wanted.numbers, *ranked.numbers),
        notes=(),
        sections=(
            _section("What a target takes", "A target", wanted),
            _section("Recovery policies", "Policies", ranked),
            _section("Spares", "Spares", kept),
            _section("A failure right now", "Right now", now),
            rests_on(held),
        ),
        definitions=defined(numbers, ()),
        missing=held.record["missing"],
        conf_level=level,
    )  # fmt: skip


def _section(title: str, tab: str, answer: Answer) -> Section:
    """An answer on paper: its tables, the longest cut short; its charts stand on the page."""
    shown = [
        block.first(POLICIES) if isinstance(block, Table) else block
        for block in answer.blocks
        if not isinstance(block, Chart)
    ]
    place = Place("planner", {"planner_tab": tab})
    return section(title, shown, (answer.sentence, *answer.notes), shown_on=place)
