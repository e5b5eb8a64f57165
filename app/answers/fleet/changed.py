"""What changed against the period before?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from analytics.fleet.coverage import silent_sources
from app.answers.content import Answer, Table
from app.answers.efficiency import ledger
from app.answers.failures import incidents
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet import coverage, risen
from app.answers.reliability import mttf, sight
from app.ask import EVERYTHING
from app.words import cells, numbers
from app.words.cells import Column
from app.words.plain import shortened
from data.state import Annotation, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.estimate import Estimate
    from analytics.reliability.sight import Sight
    from app.ask import Ask
    from app.words.cells import Kind
    from data.filters import Selection
    from data.store import Store

NAMED, LONGEST = 3, 80
"""Causes and sources that a sentence names, and letters of each; the others are counted."""
CLEAR, FEWER = ("rose", "fell"), ("fewer", "more")
UNCLEAR, UNKNOWN = "no clear change", "not known"


@dataclass(frozen=True)
class Incidents:
    """Incidents of a period, by what became of them."""

    began: int
    resolved: int
    """Said to be resolved within it, whenever they began."""
    still_open: int
    """Of those that began within it."""


def incidents_of(store: Store, selection: Selection) -> Incidents:
    """How many incidents began, and how many people resolved."""
    touching = incidents.rows(store, selection, incidents.Kind(), limit=EVERYTHING)
    begun = touching
    if selection.from_at is not None:
        begun = touching[touching["start_at"] >= selection.from_at]
    ever = replace(selection, from_at=None, to_at=None)
    done = incidents.rows(store, ever, incidents.Kind(status="resolved"), limit=EVERYTHING)
    targets = {f"incident:{incident_id}" for incident_id in done["incident_id"]}
    from_at, to_at = selection.from_at, selection.to_at
    resolved = 0
    for annotation in (Annotation(*row) for row in State(store.root).annotations()):
        said_at = datetime.fromisoformat(annotation.made_at)
        resolved += (
            (annotation.field, annotation.value) == ("status", "resolved")
            and annotation.target in targets
            and (from_at is None or from_at <= said_at)
            and (to_at is None or said_at < to_at)
        )
    return Incidents(len(begun), resolved, int((begun["status"] != "resolved").sum()))


def silent(store: Store, selection: Selection) -> tuple[str, ...]:
    """Sources that were silent at the end of the period and not at its beginning."""
    if selection.from_at is None:
        return ()
    ends = (selection.from_at, selection.to_at)
    before, now = (
        {
            (row["cluster"], row["source"])
            for row in silent_sources(
                coverage.held(store, replace(selection, from_at=None, to_at=end))
            ).to_dict("records")
        }
        for end in ends
    )
    return tuple(f"{source} of {cluster}" for cluster, source in sorted(now - before))


def answer(ask: Ask, selection: Selection, *, before_is: str = "the period before") -> Answer:
    """What changed against the period of equal length before?

    `before_is` is what that period is called, such as the week before.
    """
    before = preceding(selection)
    if before is not None and not ask(mttf.measured, before).rate.exposure:
        before = None  # nothing ran then
    seen = ask(sight.sight, selection)
    return Answer(
        "",
        blocks=(_table(ask, selection, before, before_is),),
        notes=(
            *_causes(ask, selection, before_is),
            _resolved(ask(incidents_of, selection), seen),
            _silent(ask(silent, selection), before_is, seen),
        ),
    )


def preceding(selection: Selection) -> Selection | None:
    """The period of equal length before; None where there is none."""
    if selection.from_at is None or selection.to_at is None:
        return None
    length = selection.to_at - selection.from_at
    if selection.from_at - mttf.EARLIEST < length:
        return None
    return replace(selection, from_at=selection.from_at - length, to_at=selection.from_at)


def _table(ask: Ask, now: Selection, before: Selection | None, before_is: str) -> Table:
    columns = (
        Column("quantity", "What"),
        Column("now", "Now"),
        Column("before", before_is.removeprefix("the ").capitalize()),
        Column("change", "Change"),
    )
    rows = (*_rates(ask, now, before), *_losses(ask, now, before), _incidents(ask, now, before))
    return Table("changed", "What changed", columns, rows, wrapped=True)


def _rates(ask: Ask, now: Selection, before: Selection | None) -> Iterator[tuple[str, ...]]:
    size = ask(mttf.usual_size, now)
    report = ask(mttf.measured, now)
    was = None if before is None else ask(mttf.measured, before)
    yield _compared(
        "Failures per 1,000 node-days",
        "rate",
        report.rate.rate_per_1000_node_days,
        None if was is None else was.rate.rate_per_1000_node_days,
    )
    if size is not None:
        then = None if was is None else was.mttf_of(size)
        yield _compared(f"MTTF, {size:,} GPUs", "mttf", report.mttf_of(size), then)


def _losses(ask: Ask, now: Selection, before: Selection | None) -> Iterator[tuple[str, ...]]:
    hours = []
    for period in (now, before):
        cost = None if period is None else ask(ledger.if_built, period)
        bucket = None if cost is None else cost.bucket("lost_work")
        hours.append(None if bucket is None else bucket.gpu_hours)
    if hours[0] is not None:
        yield _compared("GPU-hours lost to failures", "rate", hours[0], hours[1])


def _incidents(ask: Ask, now: Selection, before: Selection | None) -> tuple[str, ...]:
    """How many began; not known where none could be seen."""
    counts: list[int | None] = []
    for period in (now, before):
        n = None if period is None else ask(incidents_of, period).began
        unseen = not n and period is not None and ask(sight.sight, period).none
        counts.append(None if unseen else n)
    began, was = counts
    change = UNKNOWN
    if began is not None and was is not None and ask(mttf.measured, now).rate.exposure:
        change = "as many" if began == was else f"{abs(began - was):,} {FEWER[began > was]}"
    shown = (UNKNOWN if n is None else f"{n:,}" for n in counts)
    return ("Incidents that began", *shown, change)


def _compared(
    quantity: str, kind: Kind, now: Estimate, before: Estimate | None
) -> tuple[str, str, str, str]:
    """An estimate of both periods; it changed clearly where the two intervals do not overlap."""
    if before is None:
        return quantity, _written(kind, now), UNKNOWN, UNKNOWN
    known = [(estimate.value, estimate.lower, estimate.upper) for estimate in (now, before)]
    change = UNCLEAR
    if (None, None, None) in known:
        change = UNKNOWN
    elif now.apart_from(before):
        change = CLEAR[before.above(now)]
    elif known[0] == known[1] and not now.has_width:
        change = "the same"
    return quantity, _written(kind, now), _written(kind, before), change


def _written(kind: Kind, value: Estimate) -> str:
    text, interval = cells.estimate(kind, value)
    if interval == numbers.UNKNOWN or (value.value is not None and not value.has_width):
        return text
    n = f"n = {value.n:,}"
    return f"{interval} ({n})" if value.value is None else f"{text} ({interval}, {n})"


def _causes(ask: Ask, selection: Selection, before_is: str) -> Iterator[str]:
    seen = ask(sight.sight, selection)
    if not ask(mttf.measured, selection).rate.exposure:
        yield "Causes are not compared: no job is known to have run."
        return
    if preceding(selection) is None:
        yield "Causes are not compared: no period of equal length came before."
        return
    compared, titles = ask(risen.compared, selection), ask(cause_titles)
    if compared.halves or compared.split_at is None:
        yield f"Causes are not compared: nothing ran in {before_is}."
        return
    rose = [
        f"{titles.get(c.cause, c.cause)} ({c.now:,}, {c.before:,} before)" for c in compared.risen
    ]
    fell = [
        f"{titles.get(c.cause, c.cause)} ({c.before:,}, {c.now:,} before)"
        for c in ask(risen.fallen, selection)
    ]
    if not rose and not fell and seen.none:
        yield sight.refused("Which causes rose or fell", seen)
    elif not rose and not fell:
        yield f"No cause rose or fell beyond chance, of {len(compared.causes):,} compared."
    for verb, causes in (("rose", rose), ("fell", fell)):
        if causes:
            yield f"Causes that {verb}: {_listed(causes)}."
    yield from compared.left_out


def _resolved(counts: Incidents, seen: Sight) -> str:
    n = numbers.counted(counts.resolved, "incident") if counts.resolved else "No incident"
    said = f"{n} {'were' if counts.resolved > 1 else 'was'} said to be resolved"
    if not counts.began:
        return f"{said}; {f'whether any began {sight.BASIS}' if seen.none else 'none began'}."
    if counts.still_open == counts.began > 1:
        return f"{said}; all {counts.began:,} that began are open."
    return f"{said}; of {counts.began:,} that began {counts.still_open:,} are open."


def _silent(sources: Sequence[str], before_is: str, seen: Sight) -> str:
    if not sources and seen.none and (seen.beyond or seen.jobs_unknown):
        return f"No source was heard: {sight.why(seen)}."
    if not sources:
        return f"No source fell silent that was heard in {before_is}."
    return f"Fell silent: {_listed(sources)}."


def _listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
    return "; ".join([*(shortened(name, LONGEST) for name in names[:NAMED]), *more])
