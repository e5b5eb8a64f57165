"""A source of records is late or silent: what it would show is hidden."""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from analytics.fleet.collecting import (
    REGULAR_DAYS,
    STEPS_STOPPED,
    USUAL_DAYS,
    Attempt,
    late,
    stopped,
)
from analytics.fleet.silences import FEWEST, silences
from app.alerts.past import midnight, reached
from app.alerts.rule import Episode, Found, Rule
from app.answers.fleet.actions import action
from app.answers.fleet.ingests import STALE_HOURS
from app.words import numbers
from data.queries import fleet, source_days

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.arrays import Ints
    from analytics.fleet.collecting import Late, Stopped
    from analytics.fleet.silences import Silence
    from app.alerts.rule import Severity, Watch
    from app.ask import Ask
    from data.queries.source_days import Asked

LOOKED_BACK = timedelta(days=35)
"""Before the watch begins: how often a source is asked is seen there."""
LEAST = timedelta(hours=STALE_HOURS)
BLIND = (
    "cannot be judged: no source is collected by `faultline collect`, files were read on fewer "
    f"than {REGULAR_DAYS} days, and no source has records on more than {FEWEST} days beside "
    "another that goes on"
)


def find(ask: Ask, watch: Watch) -> Found:
    """Times in which a source brought nothing while it was asked, or while others went on, and in
    which nothing at all was read."""
    asked = ask(source_days.asked, watch.selection, watch.from_at - LOOKED_BACK, watch.now)
    silent, can_judge = _silent(ask, watch)
    ingests = None if asked else _stopped(ask, watch)
    collected = list(_collected(asked, watch))
    alone = [
        each
        for source, each in silent
        if not any(covers == source and _meet(each, late) for _, covers, late in collected)
    ]
    is_first = watch.selection.cluster in (None, *ask(fleet.distinct, "cluster")[:1])
    late_ones = [each for cluster, _, each in collected if is_first or cluster is not None]
    is_blind = not asked and ingests is None and not can_judge
    return Found(
        reached([*late_ones, *alone, *(ingests or ())], watch), BLIND if is_blind else None
    )


def _meet(one: Episode, other: Episode) -> bool:
    """Whether two episodes overlap: a source whose collecting is told already is told once."""
    return all(
        a.ended_at is None or a.ended_at > b.since_at for a, b in ((one, other), (other, one))
    )


def _severity(source: str | None) -> Severity:
    """Without the records of jobs nothing else counts."""
    return "critical" if source == "jobs" else "warning"


def _collected(
    asked: Sequence[Asked], watch: Watch
) -> Iterator[tuple[str | None, str | None, Episode]]:
    """Of each source that `faultline collect` asks: its cluster, the source that it brings."""
    for (cluster, source), each in groupby(asked, key=lambda row: row[:2]):
        of_source = list(each)
        attempts = [Attempt(row[2], row[3]) for row in of_source]
        _, _, _, answered, _, n_answers = of_source[0]
        n_before = n_answers - (answered is not None)
        covers = next((row[4] for row in of_source if row[4] is not None), None)
        for found in late(attempts, watch.now, least=LEAST, n_before=n_before):
            yield (
                cluster,
                covers,
                Episode(
                    action.target("source", cluster or "", source, "collect"),
                    found.since_at,
                    found.told_at,
                    found.ended_at,
                    _of_late(cluster, source, found),
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


def _stopped(ask: Ask, watch: Watch) -> list[Episode] | None:
    """Times in which nothing of the cluster was read; None where files never were regularly."""
    if ask(fleet.is_synthetic):
        return None
    found = stopped(ask(source_days.ingested, watch.selection, watch.now), watch.now, least=LEAST)
    cluster = watch.selection.cluster or ""
    return None if found is None else [_of_stopped(cluster, each) for each in found]


def _of_stopped(cluster: str, found: Stopped) -> Episode:
    longest = numbers.duration(found.longest / timedelta(hours=1))
    return Episode(
        action.target("source", cluster, "ingests"),
        found.since_at,
        found.told_at,
        found.ended_at,
        f"No file of {cluster} was read since {numbers.moment(found.since_at, 'UTC')}; usually the "
        f"next came within {longest} (n = {found.n_days:,} days with one): does what runs "
        "`faultline ingest` still run?",
        "data",
        severity="critical",
    )


def _silent(ask: Ask, watch: Watch) -> tuple[list[tuple[str, Episode]], bool]:
    """Silences by records alone, each with its source; and whether any source could show one."""
    held = ask(source_days.of_sources, watch.selection)
    known = held["day"] <= (watch.now - midnight(0)).days
    source, day = held["source"][known].astype(str), held["day"][known].astype(np.int64)
    n_rows = held["n_rows"][known].astype(np.int64)
    names = np.unique(source)
    days = watch.hours_per_false_alarm(max(len(names), 1)) / 24.0
    go_on = _go_on(day, (watch.now - midnight(0)).days)
    found: list[tuple[str, Episode]] = []
    can_judge = False
    for name in names.tolist():
        own = source == name
        others = np.unique(day[~own])
        can_judge |= go_on and bool(len(others)) and int(own.sum()) > FEWEST
        found += [
            (name, _of_silence(watch.selection.cluster or "", name, silence))
            for silence in silences(day[own], n_rows[own], others, days_per_false_alarm=days)
        ]
    return found, can_judge


def _go_on(days: Ints, today: int) -> bool:
    """Whether records still come, by the pauses that all sources made together: where they ended,
    as those of an archive, none goes on beside another."""
    held = np.unique(days)[-USUAL_DAYS:]
    longest = int(np.diff(held).max()) if len(held) > 1 else 1
    return bool(len(held)) and today - int(held[-1]) <= STEPS_STOPPED * longest


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
    "A source that brought records brings none while others go on, `faultline collect` does not "
    "reach it, or no file of a cluster is read any more.",
    "See whether it is still written and collected, and ingest what was missed.",
    "warning",
    find,
    weight=4.0,
    by_time=True,
)
