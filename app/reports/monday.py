"""The Monday card: is the fleet well, what did the week cost, what to do first, what changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from analytics.estimate import CONF_LEVEL
from app.answers.efficiency import ledger, ledger_parts
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet import changed, coverage, overview, targets
from app.answers.fleet.actions import listed
from app.answers.fleet.choices import last_whole
from app.answers.reliability import sight
from app.reports.report import TO_DO, Report, Section, defined, filters_in_words, section
from app.words import numbers
from app.words.periods import Period
from data.errors import DataError
from data.queries import fleet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.answers.content import Answer
    from app.ask import Ask
    from app.reports.kinds import Request
    from app.reports.redaction import Names
    from data.filters import Selection

KIND = {"needs_ledger": True, "weekly": True}
"""About the whole fleet in the last whole week, unless another period is asked for."""
ACTIONS = 3
"""Things to do that are listed."""
WEEK = timedelta(days=7)
LOOKED_BACK = timedelta(days=28)
"""Period of what to do, as on Overview: no node is shown to be a lemon by one week."""


def report(ask: Ask, request: Request, names: Names) -> Report:
    """One page: the verdict, the cost, the first things to do, and what changed."""
    now = request.now or datetime.now(UTC)
    selection = _of_a_week(ask, request.selection, now)
    during = Period(selection.from_at, selection.to_at, request.timezone)
    answer = overview.answer(ask, selection)
    seen = _looked_back(selection)
    seen_during = Period(seen.from_at, seen.to_at, request.timezone)
    to_do = listed.listed(ask, seen, now, timezone=request.timezone, beside=request.beside)
    aimed = targets.answer(ask, selection)
    before = changed.answer(ask, selection, before_is=f"the {_span(selection)} before")
    return Report(
        kind="monday",
        stem="monday",
        title="Monday card" + (f": {selection.cluster}" if selection.cluster else ""),
        during=during,
        filters=filters_in_words(selection, names),
        answer=answer.sentence,
        summary=(_cost(ask, selection),),
        headlines=answer.numbers,
        notes=(*answer.notes, *_recorded(ask, selection), *_whole_days(selection)),
        sections=(
            Section(
                TO_DO,
                (listed.brief(to_do, ACTIONS, seen_during),),
                () if seen == selection else (_looked(selection),),
            ),
            *_targets(ask, selection, aimed),
            section("What changed", before.blocks, before.notes),
        ),
        definitions=defined(answer.numbers, aimed.terms if aimed.blocks else ()),
        missing=ask(coverage.held, selection).missing,
        conf_level=CONF_LEVEL,
        card=True,
    )


def _targets(ask: Ask, selection: Selection, aimed: Answer) -> Iterator[Section]:
    """Whether targets are met, where the site states any."""
    if aimed.blocks:
        shown = targets.brief(ask(targets.measured, selection))
        yield section("Targets", (shown,), (aimed.sentence, *aimed.notes))


def _of_a_week(ask: Ask, selection: Selection, now: datetime) -> Selection:
    """The selection, of the last whole week where no period is asked for."""
    if selection.from_at is not None or selection.to_at is not None:
        return selection
    try:
        from_at, to_at = ask(
            last_whole, "week", selection.cluster, now.replace(minute=0, second=0, microsecond=0)
        )
    except DataError:  # nothing has a time: the card says that nothing ran
        return selection
    return replace(selection, from_at=from_at, to_at=to_at)


def _looked_back(selection: Selection) -> Selection:
    """The selection, of four weeks to its end where it is shorter."""
    if selection.from_at is None or selection.to_at is None:
        return selection
    return replace(selection, from_at=min(selection.from_at, selection.to_at - LOOKED_BACK))


def _looked(selection: Selection) -> str:
    """By how many days what is to do was found."""
    return f"Found by the {LOOKED_BACK.days} days that end with this {_span(selection)}."


def _span(selection: Selection) -> str:
    """What the period is called beside the one before."""
    if selection.from_at is None or selection.to_at is None:
        return "period"
    off = abs(selection.to_at - selection.from_at - WEEK)
    return "week" if off <= timedelta(hours=1) else "period"  # a clock may change in it


def _cost(ask: Ask, selection: Selection) -> str:
    """What failures lost, in money where a price is known, and which cause most."""
    cost = ask(ledger.if_built, selection)
    if cost is None:
        return f"What failures cost is unknown: {ledger_parts.NOT_BUILT}."
    said = ledger.cost_in_words(cost, ask(cause_titles))
    bucket = cost.bucket("lost_work")
    if not said or bucket is None:
        seen = ask(sight.sight, selection)
        if seen.none or seen.jobs_unknown:
            return sight.refused("What failures cost", seen)
        return "No GPU-hour is known to be lost to failures."
    if bucket.cost is None:
        return said
    money = f"{said} That is {numbers.number(bucket.cost)} {cost.currency or ''}".strip()
    return f"{money} of the attempts recorded." if bucket.bounded else f"{money}."


def _recorded(ask: Ask, selection: Selection) -> Iterator[str]:
    """That the records begin or end within the period, or do not reach it."""
    first_at, last_at = ask(fleet.extent)
    if first_at is None or selection.from_at is None or selection.to_at is None:
        return
    if selection.from_at < first_at:
        begin = numbers.moment(first_at, "UTC")
        yield f"The records begin at {begin}: what was before is not known."
    if last_at < selection.to_at:
        end = numbers.moment(last_at, "UTC")
        yield f"The records end at {end}: what came after is not known."


def _whole_days(selection: Selection) -> tuple[str, ...]:
    """That the ledger counts more than the period, where it does."""
    whole = (selection.days.from_at, selection.days.to_at)
    return () if whole == (selection.from_at, selection.to_at) else (ledger.WHOLE_DAYS,)
