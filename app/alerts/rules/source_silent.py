"""A source of records is late or silent: what it would show is hidden."""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from analytics.fleet.collecting import Attempt, late
from analytics.fleet.silences import FEWEST, silences
from app.alerts.past import midnight, reached
from app.alerts.rule import Episode, Found, Rule
from app.answers.fleet.actions import action
from app.answers.fleet.ingests import STALE_HOURS
from app.words import numbers
from data.queries import source_days

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.fleet.collecting import Late
    from analytics.fleet.silences import Silence
    from app.alerts.rule import Severity, Watch
    from app.ask import Ask
    from data.queries.source_days import Asked

LOOKED_BACK = timedelta(days=35)
"""Before the watch begins: how often a source is asked is seen there."""
BLIND = (
    "cannot be judged: no source is collected by `faultline collect`, and none has records on "
    f"more than {FEWEST} days beside another that goes on"
)


def find(ask: Ask, watch: Watch) -> Found:
    """Times in which a source brought nothing while it was asked, or while others went on."""
    asked = ask(source_days.asked, watch.selection, watch.from_at - LOOKED_BACK)
    asked = [row for row in asked if row[2] <= watch.now]
    silent, can_judge = _silent(ask, watch)
    if not asked and not can_judge:
        return Found(blind=BLIND)
    collected = list(_collected(asked, watch))
    alone = [
        each
        for source, each in silent
        if not any(covers == source and _meet(each, late) for covers, late in collected)
    ]
    return Found(reached([*(each for _, each in collected), *alone], watch))


def _meet(one: Episode, other: Episode) -> bool:
    """Whether two episodes overlap: a source whose collecting is told already is told once."""
    return all(
        a.ended_at is None or a.ended_at > b.since_at for a, b in ((one, other), (other, one))
    )


def _severity(source: str | None) -> Severity:
    """Without the records of jobs nothing else counts."""
    return "critical" if source == "jobs" else "warning"


def _collected(asked: Sequence[Asked], watch: Watch) -> Iterator[tuple[str | None, Episode]]:
    """Of each source that `faultline collect` asks, with the source that it brings."""
    for (cluster, source), each in groupby(asked, key=lambda row: row[:2]):
        of_source = list(each)
        attempts = [Attempt(row[2], row[3]) for row in of_source]
        covers = next((row[4] for row in of_source if row[4] is not None), None)
        for found in late(attempts, watch.now, least=timedelta(hours=STALE_HOURS)):
            yield (
                covers,
                Episode(
                    action.target("source", cluster or "", source, "collect"),
                    found.since_at,
                    found.told_at,
                    found.ended_at,
                    _of_late(cluster or watch.selection.cluster, source, found),
                    "data",
                    severity=_severity(covers),
                ),
            )


def _of_late(cluster: str | None, source: str, found: Late) -> str:
    """A source of which nothing new came."""
    whose = f"{source} of {cluster}" if cluster else source
    answers = numbers.counted(found.n_answers, "answer")
    if not found.n_answers:
        return f"{whose} was never collected: its first {_tries(found.n_failed)} failed"
    until = f"{whose} was collected until {numbers.moment(found.since_at, 'UTC')}"
    if found.n_failed:
        return f"{until}, after {answers}; {_tries(found.n_failed)} in a row failed since"
    return f"{until}, after {answers}; nobody asked it again: does `faultline collect` still run?"


def _tries(n: int) -> str:
    return "attempt" if n == 1 else f"{n:,} attempts"


def _silent(ask: Ask, watch: Watch) -> tuple[list[tuple[str, Episode]], bool]:
    """Silences by records alone, each with its source; and whether any source could show one."""
    held = ask(source_days.of_sources, watch.selection)
    known = held["day"] <= (watch.now - midnight(0)).days
    source, day = held["source"][known].astype(str), held["day"][known].astype(np.int64)
    n_rows = held["n_rows"][known].astype(np.int64)
    names = np.unique(source)
    days = watch.hours_per_false_alarm(max(len(names), 1)) / 24.0
    found: list[tuple[str, Episode]] = []
    can_judge = False
    for name in names.tolist():
        own = source == name
        others = np.unique(day[~own])
        can_judge |= bool(len(others)) and int(own.sum()) > FEWEST
        found += [
            (name, _of_silence(watch.selection.cluster or "", name, silence))
            for silence in silences(day[own], n_rows[own], others, days_per_false_alarm=days)
        ]
    return found, can_judge


def _of_silence(cluster: str, source: str, found: Silence) -> Episode:
    what, hidden = action.HIDDEN.get(source, (source.replace("_", " "), "all that it would show"))
    missing = numbers.counted(found.n_missing, "day")
    before = "it never missed a day before"
    if found.longest:
        before = f"it never paused for more than {numbers.counted(found.longest, 'day')} before"
    sentence = (
        f"No {what} of {cluster} since {numbers.day(midnight(found.last_day))}, while others went "
        f"on for {missing}; {before} (n = {found.n_pauses:,}). Hidden: {hidden}"
    )
    return Episode(
        action.target("source", cluster, source),
        midnight(found.last_day + 1),
        midnight(found.told_day + 1),
        None if found.seen_day is None else midnight(found.seen_day),
        sentence,
        "data",
        severity=_severity(source),
    )


RULE = Rule(
    "source_silent",
    "Source late or silent",
    "A source that brought records brings none while others go on, or `faultline collect` does not "
    "reach it.",
    "See whether it is still written and collected, and ingest what was missed.",
    "warning",
    find,
    weight=4.0,
)
