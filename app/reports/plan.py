"""The plan report: what would help a job like the largest run, and what to decide on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.answers.content import Answer, Chart, Missing, Table
from app.answers.efficiency import usual_job
from app.answers.fleet import coverage
from app.answers.recovery import policies, reconfigure, sites, spares, target
from app.reports.report import Report, defined, filters_in_words, rests_on, section
from app.words.addresses import Place
from app.words.periods import Period
from data.queries.efficiency import has_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.ask import Ask
    from app.reports.kinds import Request
    from app.reports.redaction import Names
    from app.reports.report import Section

KIND = {"needs_ledger": True}
"""About a job like the largest run: it has no option of its own."""
POLICIES = 15
"""Policies that a document lists, the best."""
MOST_HEADLINES = 6
NOT_BUILT = (
    "What a target takes cannot be judged: the ledger of these records is not built; `faultline "
    "ledger` builds it."
)


def report(ask: Ask, request: Request, names: Names) -> Report:
    """What a target takes, policies ranked, spares, and what a failure now would cost."""
    selection = request.selection
    answers = tuple(_answers(ask, request))
    held = coverage.answer(ask, selection)
    numbers = tuple(number for _, _, answer in answers for number in answer.numbers)
    first, *others = (answer.sentence for _, _, answer in answers)
    return Report(
        kind="plan",
        stem="plan",
        title="Recovery plan",
        during=Period(selection.from_at, selection.to_at, request.timezone),
        filters=filters_in_words(selection, names),
        answer=first,
        summary=tuple(others),
        headlines=numbers[:MOST_HEADLINES],
        notes=(),
        sections=(*(_section(*each) for each in answers), rests_on(held)),
        definitions=defined(numbers, ()),
        missing=held.record["missing"],
        conf_level=request.conf_level,
    )


def _answers(ask: Ask, request: Request) -> Iterator[tuple[str, str, Answer]]:
    """Title, tab of the planner and answer; without the ledger what needs none."""
    selection, level = request.selection, request.conf_level
    kept = spares.answer(ask, selection, conf_level=level, seed=request.seed)
    if not ask(has_ledger):
        yield "What a target takes", "A target", Answer(NOT_BUILT)
        yield "Spares", "Spares", kept
        return
    known = target.of_store(ask, selection, conf_level=level)
    if isinstance(known, Missing):
        yield "What a target takes", "A target", target.unknown(known)
    else:
        told = usual_job.assumptions(ask, selection)
        yield "What a target takes", "A target", target.answer(*known, told=told)
    plan = sites.of_store(ask, selection)
    ranked = policies.answer(plan, conf_level=level, seed=request.seed)
    yield "Recovery policies", "Policies", ranked
    yield "Spares", "Spares", kept
    now = reconfigure.answer(reconfigure.of_store(ask, selection))
    yield "A failure right now", "Right now", now


def _section(title: str, tab: str, answer: Answer) -> Section:
    """An answer on paper: its tables, the longest cut short; its charts stand on the page."""
    shown = [
        block.first(POLICIES) if isinstance(block, Table) else block
        for block in answer.blocks
        if not isinstance(block, Chart)
    ]
    place = Place("planner", {"planner_tab": tab})
    return section(title, shown, (answer.sentence, *answer.notes), shown_on=place)
