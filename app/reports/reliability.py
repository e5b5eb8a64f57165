"""Sections of the fleet report on how long nodes live, whether it gets better, and what comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.answers.content import Chart, Missing, Table
from app.answers.reliability import availability, forecast, lifetimes, trend
from app.reports.report import section
from app.words.addresses import Place
from app.words.cells import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answers.content import Answer, Number
    from app.ask import Ask
    from app.reports.report import Section
    from data.filters import Selection

NODES = 10
"""Nodes that a document lists, the least available."""
NUMBERS = (
    Column("quantity", "Quantity"),
    Column("value", "Value"),
    Column("interval", "Interval"),
    Column("basis", "Rests on", wide=True),
)


def sections(ask: Ask, selection: Selection, **chance: Any) -> tuple[Section, ...]:
    """Trend with what comes, availability, lifetimes; `chance` holds conf_level and seed.

    Facts of nodes, which may name people, stay on the page.
    """
    trends = trend.answer(ask, selection, **chance)
    coming = forecast.answer(ask, selection, **chance)
    nodes = availability.answer(ask, selection, **chance)
    level = {"conf_level": chance["conf_level"]} if "conf_level" in chance else {}
    lives = lifetimes.in_jobs(ask, selection, **level)
    return (
        _section("Trend", trends, ("tests",), Place("trend")),
        _section("What comes next", coming, ("forecast_by_cause",), Place("trend")),
        _section("Availability", nodes, ("by_node", "repairs", "capacity"), Place("availability")),
        _section("How long nodes run in jobs", lives, ("survival", "families"), Place("mttf")),
    )


def _section(title: str, answer: Answer, keys: Sequence[str], place: Place) -> Section:
    """An answer on paper: its sentence, its numbers, and some of its charts and tables."""
    if any(isinstance(block, Missing) for block in answer.blocks[:1]):
        return section(title, (), (answer.sentence,), shown_on=place)
    shown = [
        block.first(NODES) if isinstance(block, Table) else block
        for block in answer.blocks
        if isinstance(block, Table | Chart) and block.key in keys
    ]
    return section(
        title,
        (_numbers(title, answer.numbers), *shown),
        (answer.sentence, *answer.notes),
        shown_on=place,
    )


def _numbers(title: str, numbers: Sequence[Number]) -> Table:
    """Headline numbers as a table."""
    rows = [
        (each.term.label, each.value, each.says or each.interval, each.basis) for each in numbers
    ]
    return Table(title.lower().replace(" ", "_"), title, NUMBERS, rows)
