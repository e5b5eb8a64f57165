"""Is this run stable: spikes, divergence, NaN, shifts, and what to do about them?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.training.stability import published
from analytics.training.stability.judged import LEVELS, PACE, Stability, stability
from analytics.training.stability.outline import Outline, RunCourse, outline
from analytics.training.stability.shifts import paced
from app.answers.content import Answer, Chart, Missing, Table, composed
from app.answers.described import Rows, field
from app.answers.efficiency import run
from app.answers.training import beside, logged
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_stability
from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from analytics.training.stability.course import Logged
    from analytics.training.stability.judged import Episode, Event
    from app.answers.content import Block
    from app.answers.training.beside import Beside
    from app.answers.training.logged import RunLog
    from data.store import Store

TITLES = {
    "spike": "spike",
    "divergence": "divergence",
    "nan": "NaN or infinity",
    "loss_scale_collapse": "loss-scale collapse",
    "shift": "shift",
    "overflow": "overflow",
    "plateau": "plateau",
}
SERIES = {
    "loss": "loss",
    "grad_norm": "gradient norm",
    "step_time_s": "step time",
    "pace": "seconds a step, from the times of rows",
    "loss_scale": "loss scale",
    "throughput": "throughput",
    "learning_rate": "learning rate",
}
ENDED = {
    "recovered": "recovery",
    "restart": "restart",
    "end of log": "the log ends before it",
}
RULES = {
    "zclip": "ZClip, z > 2.5",
    "plain_z": "z > 3 of the last 100 rows",
    "jump": "five times the level",
}
MOST_COMPARED = 200_000
"""Rows for which published rules are tried: ZClip takes them one by one."""
DRAWN = ("loss", "grad_norm", "step_time_s", "loss_scale")
EVENTS = (
    field("kind", "What", of=lambda e: TITLES[e.kind], on=("table", "csv")),
    field("kind", of="kind", on=("json",)),
    field("series", "Series", of=lambda e: SERIES.get(e.series, e.series), on=("table", "csv")),
    field("series", of="series", on=("json",)),
    field("start_step", "From step", "count"),
    field("peak_step", "Peak at", "count"),
    field("last_step", "Last high step", "count"),
    field("end_step", "Over by", "count", none="not before the log ends or starts again"),
    field("level", "Level before", "number"),
    field("peak", "Peak", "number", of=lambda e: _known(e.peak), none="not a number"),
    field("ratio", "Peak over level", "number", of=lambda e: _known(e.ratio)),
    field("z", "z", "number", of=lambda e: _known(e.z), help=of_stability.PEAK_Z.definition,
          none="not of this kind"),
    field("n_rows", "Rows", "count"),
    field("start_at", "Began at", "time", of=lambda e: _moment(e.start_at), none="not logged"),
    field("end_at", "Ended at", "time", of=lambda e: _moment(e.end_at), none="not logged"),
    field("says", "Also", of=lambda e: "; ".join(_says(e)), on=("table", "csv"), none=""),
    field("absent_steps", of=lambda e: [list(each) for each in e.absent_steps], on=("json",)),
    field("ended", of="ended", on=("json",)),
    field("is_jump", of="is_jump", on=("json",)),
    field("context", of=lambda e: list(e.context), on=("json",)),
)  # fmt: skip
EPISODES = (
    field("kind", "What", of=lambda e: TITLES[e.kind], on=("table", "csv")),
    field("kind", of="kind", on=("json",)),
    field("series", "Seen in", of=lambda e: " and ".join(_series(e)), on=("table", "csv")),
    field("series", of=lambda e: list(dict.fromkeys(x.series for x in e.events)), on=("json",)),
    field("start_step", "From step", "count"),
    field("last_step", "Last high step", "count"),
    field("end_step", "Over by", "count", none="not before the log ends or starts again"),
    field("ended", "Ended by", of=lambda e: ENDED[e.ended], on=("table", "csv")),
    field("ended", of="ended", on=("json",)),
    field("lost_steps", "Steps lost", "count", none="none, or not known"),
    field("rewind_step", "Go back to", "count", help=of_stability.REWIND.definition,
          none="nothing to do"),
    field("is_saved", "Save logged", "flag"),
    field("skip", "Skip data of", of=lambda e: _span(e.skip_steps), none="nothing",
          help=of_stability.SKIP.definition, on=("table", "csv")),
    field("skip_steps", of=lambda e: e.skip_steps and list(e.skip_steps), on=("json",)),
    field("start_at", "Began at", "time", of=lambda e: _moment(e.start_at), none="not logged"),
    field("end_at", "Ended at", "time", of=lambda e: _moment(e.end_at), none="not logged"),
)  # fmt: skip
JUDGED = (
    Column("series_title", "Series"),
    Column("n_rows", "Rows logged", "count"),
    Column("n_judged", "Rows judged", "count", help=of_stability.ROWS_JUDGED.definition),
    Column("every", "Steps a row", "count"),
    Column("says", "What it can show"),
    Column("series", "Name", shown=False),
)
COMPARED = (
    Column("rule_title", "Rule"),
    Column("series_title", "Series"),
    Column("n_alarms", "Alarms", "count"),
    Column("per_100k", "In 100,000 rows", "number"),
    Column("rule", "Name", shown=False),
    Column("series", "Series in SQL", shown=False),
)
NO_STEPS = Missing(
    "training_metrics",
    "no step of this run is logged.",
    "Metrics of training are read from CSV, JSON lines, TensorBoard, job logs and others:",
    ("faultline ingest metrics.csv --job-id 4711", "faultline stability metrics.csv"),
)


@dataclass(frozen=True)
class RunStability:
    """A run, judged."""

    found: Stability
    course: RunCourse
    compared: tuple[tuple[str, str, int, int], ...]
    """Rule, series, alarms and rows."""
    cluster: str | None
    run_id: str | None
    further: tuple[str, ...]
    n_ranks: int
    notices: tuple[str, ...]
    beside: Beside | None = None
    """Its attempts and the events of their nodes; None of a file."""


def measured(
    store: Store, cluster: str, run_id: str, further: tuple[str, ...] = ()
) -> RunStability:
    """What the log of a run of the store shows, and what happened on its nodes meanwhile.

    Raises
    ------
    DataError
        Where a further series is asked for that the run does not log.
    """
    log = logged.of_store(store, cluster, run_id)
    found = judged(log, logged.known_series(log, further))
    outlines = (*found.course.outlines, *_ettr(store, cluster, run_id))
    course = replace(found.course, outlines=outlines) if found.course.by_time else found.course
    return replace(found, course=course, beside=beside.measured(store, cluster, run_id))


def _ettr(store: Store, cluster: str, run_id: str) -> Iterator[tuple[str, Outline]]:
    """ETTR of the run up to each moment; none where no ledger is built, or it ran without GPUs."""
    try:
        over_time = run.measured(store, run_id, cluster=cluster).over_time
    except DataError:
        return
    yield "ettr", Outline(over_time.at_s, *[over_time.cumulative] * 3)


def judged(log: RunLog, further: Sequence[str] = ()) -> RunStability:
    """What the log of a run shows."""
    found = stability(log.logged, further)
    return RunStability(
        found,
        _course(log.logged, found, further),
        tuple(_compared(log.logged, found)),
        log.cluster,
        log.run_id,
        log.further,
        log.n_ranks,
        log.notices,
    )


def _course(log: Logged, found: Stability, further: Sequence[str]) -> RunCourse:
    """The outlines of the series that were judged."""
    courses = {name: log.course(name) for name in (*DRAWN, *further) if name in log.values}
    if PACE in [each.series for each in found.series] and courses:
        courses[PACE] = paced(next(iter(courses.values())))
    by_time = bool(len(log.at)) and bool(np.isfinite(log.at).all())
    outlines, restarts = [], np.zeros(0)
    for name, course in courses.items():
        place = course.at if by_time else course.step.astype(float)
        if not restarts.size:
            restarts = place[course.starts[1:]]
        outlines.append((name, outline(course, place)))
    shifts = tuple(event for event in found.notes if event.kind == "shift")
    return RunCourse(tuple(outlines), found.episodes, shifts, by_time, tuple(restarts.tolist()))


def _compared(log: Logged, found: Stability) -> Iterator[tuple[str, str, int, int]]:
    """Alarms of published rules, and ours, on the same rows."""
    for name in LEVELS:
        course = log.course(name) if name in log.values else None
        if course is None or not 0 < course.n_rows <= MOST_COMPARED:
            continue
        told = [e for e in found.events if e.series == name and e.kind in ("spike", "divergence")]
        yield "ours", name, len(told), course.n_rows
        for rule in published.RULES:
            if rule != "zclip" or name == "grad_norm":
                yield rule, name, published.alarms(course, rule), course.n_rows


def answer(found: RunStability, *, stored: bool = True) -> Answer:
    """What the run shows: sentence, episodes, shifts, what could be judged, published rules."""
    state = found.found
    if state.last_step is None:
        return Answer("Cannot be judged: no step of this run is logged.", blocks=(NO_STEPS,))
    episodes, events = Rows(EPISODES, state.episodes), Rows(EVENTS, state.events)
    return Answer(
        _sentence(state),
        tuple(_headlines(state)),
        tuple(_blocks(found, episodes, events)),
        notes=tuple(_notes(found, stored=stored)),
        terms=(of_stability.SPIKE, of_stability.DIVERGENCE, of_stability.STEP_TIME_SHIFT,
               of_stability.LOSS_SCALE_COLLAPSE),
        record={
            "run_id": found.run_id,
            "cluster": found.cluster,
            "first_step": state.first_step,
            "last_step": state.last_step,
            "n_judged": state.n_judged,
            "events": events.records(),
            "episodes": episodes.records(),
            "restarts": [{"last_step": last, "first_step": first}
                         for last, first in state.restarts],
            "repeated_steps": state.repeated_steps,
            "absent_steps": [list(each) for each in state.absent_steps],
            "series": [
                {"series": each.series, "n_rows": each.n_rows, "n_judged": each.n_judged,
                 "every": each.every, "constant": each.is_constant, "mixed": each.is_sorted}
                for each in state.series
            ],
            "not_logged": list(state.not_logged),
            "compared": [
                {"rule": rule, "series": series, "alarms": n, "rows": rows}
                for rule, series, n, rows in found.compared
            ],
        },
        sheet=events.sheet(),
        about=_about(found),
    )  # fmt: skip


def _about(found: RunStability) -> str:
    """Which run, and how much of it is logged."""
    state = found.found
    named = f"Run {found.run_id}" if found.run_id else "Run"
    steps = f"steps {state.first_step:,} to {state.last_step:,}"
    return f"{named} · {steps} · {numbers.counted(state.n_judged, 'row')} judged"


def _sentence(state: Stability) -> str:
    """What stands out, the gravest first."""
    if state.episodes:
        return _of_episodes(state.episodes) + _of_shifts(state)
    if not state.seen:
        return f"Stability cannot be judged: {_unseen(state)}." + _of_shifts(state)
    seen = " and ".join(SERIES[each.series] for each in state.seen)
    rows = numbers.counted(state.n_judged, "judged row")
    blind = [name for name in LEVELS if name not in {each.series for each in state.seen}]
    also = f"; {SERIES[blind[0]]} says nothing" if blind else ""
    if blind and blind[0] in state.not_logged:
        also = f"; {SERIES[blind[0]]} is not logged"
    return f"No spike, divergence or NaN of {seen} in {rows}{also}." + _of_shifts(state)


def _unseen(state: Stability) -> str:
    """Why nothing can be judged."""
    levels = [each for each in state.series if each.series in LEVELS]
    if not levels:
        return "neither loss nor gradient norm is logged"
    if all(each.is_constant for each in levels):
        return "what is logged is one value throughout"
    return "too few rows"


def _of_episodes(episodes: Sequence[Episode]) -> str:
    """How many, and the one that wants something done, else the last."""
    open_ = [each for each in episodes if each.end_step is None]
    named = (open_ or list(episodes))[-1]
    count = numbers.counted(len(episodes), "episode")
    of = f"{count}; the last" if len(episodes) > 1 else "One episode"
    if open_ and len(episodes) > 1:
        of = f"{count}, {len(open_):,} without recovery; the last of these"
    where = f"a {TITLES[named.kind]} from step {named.start_step:,}"
    if named.end_step is not None:
        return f"{of}, {where}, was over by step {named.end_step:,}."
    if named.lost_steps:
        lost = numbers.counted(named.lost_steps, "step")
        return f"{of}, {where}, ended with a restart that did {lost} again."
    advice = f": go back to step {named.rewind_step:,}" if named.rewind_step is not None else ""
    return f"{of}, {where}, has not recovered{advice}."


def _of_shifts(state: Stability) -> str:
    """The step time, where it changed."""
    shifts = [event for event in state.notes if event.kind == "shift" and not event.context]
    if not shifts:
        return ""
    last = shifts[-1]
    until = "on" if last.end_step is None else f"to {last.end_step:,}"
    share = numbers.percent(abs(last.ratio - 1))
    more = "more" if last.ratio > 1 else "less"
    return f" Steps took {share} {more} time from step {last.start_step:,} {until}."


def _headlines(state: Stability) -> Iterator[Any]:
    """Episodes, steps done again, rows judged."""
    n, open_ = len(state.episodes), sum(e.end_step is None for e in state.episodes)
    known = bool(state.seen) or n > 0
    yield composed(
        of_stability.EPISODE,
        numbers.count(n) if known else numbers.UNKNOWN,
        _recovery(n, open_) if known else _unseen(state),
        exact=n if known else None,
    )
    mixed = any(each.is_sorted for each in state.series)
    loads = f"; {numbers.counted(state.n_loads, 'checkpoint')} loaded" if state.n_loads else ""
    restarts = numbers.counted(len(state.restarts), "restart")
    yield composed(
        of_stability.STEPS_AGAIN,
        numbers.UNKNOWN if mixed else numbers.count(state.repeated_steps),
        "rows come mixed" if mixed else f"after {restarts} that went back{loads}",
        exact=None if mixed else state.repeated_steps,
        unit="steps",
    )
    yield composed(
        of_stability.ROWS_JUDGED,
        numbers.count(state.n_judged),
        f"{len(state.not_logged):,} of 4 series not logged" if state.not_logged else "all series",
        exact=state.n_judged,
        unit="rows",
    )


def _recovery(n: int, open_: int) -> str:
    """How many of the episodes have not recovered."""
    return f"{open_:,} without recovery" if n else "none in what could be judged"


def _blocks(found: RunStability, episodes: Rows, events: Rows) -> Iterator[Block]:
    """The course, episodes, events, what could be judged, and what published rules say."""
    state = found.found
    if found.course.outlines:
        yield Chart(
            "training.run_course",
            "How did the run go?",
            "Loss, gradient norm and step time along the run, with what stands out.",
            (found.course, *_strip(found)),
            zoned=found.course.by_time,
            whole=True,
            rows=events,
        )
    none = "None." if state.n_judged else "Cannot be judged."
    yield episodes.table("episodes", "Episodes and what to do", empty=none)
    if found.beside is not None and state.episodes:
        yield beside.table(found.beside, state.episodes)
    yield events.table("stability_events", "Events by series", empty=none)
    rows = [
        (SERIES.get(each.series, each.series), each.n_rows, each.n_judged, each.every,
         _can_show(each), each.series)
        for each in state.series
    ]  # fmt: skip
    missing = [SERIES[name] for name in state.not_logged]
    note = f"Not logged, so not seen: {', '.join(missing)}." if missing else ""
    yield Table("judged_series", "What could be judged", JUDGED, rows, note=note)
    if found.compared:
        yield _beside(found)


def _strip(found: RunStability) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
    """Attempts and events that are drawn below the series."""
    if found.beside is None or not found.course.by_time:
        return None, None
    return found.beside.attempts, found.beside.events


def _can_show(each: Any) -> str:
    """What a series can show, and why not."""
    if each.is_constant:
        return "nothing: it is one value throughout"
    if each.is_sorted:
        return "rows come mixed: put in order of steps, restarts are not seen"
    return "all of it" if each.n_judged else "nothing: too few rows"


def _beside(found: RunStability) -> Table:
    """Alarms of published rules on the same rows."""
    rows = [
        ("here", SERIES[series], n, 1e5 * n / rows, rule, series)
        if rule == "ours"
        else (RULES[rule], SERIES[series], n, 1e5 * n / rows, rule, series)
        for rule, series, n, rows in found.compared
    ]
    note = "On noise alone ZClip's threshold gives about 600 alarms in 100,000 rows."
    return Table("published_rules", "Published rules on the same rows", COMPARED, rows, note=note)


def _notes(found: RunStability, *, stored: bool) -> Iterator[str]:
    """What must be known of it."""
    state = found.found
    yield (
        "A spike proves that the loss rose, not why; a corrupted run may show none: loss alone "
        "misses corruption."
    )
    if state.absent_steps:
        n = len(state.absent_steps)
        first, last = state.absent_steps[0]
        more = f" and {n - 1:,} further stretches" if n > 1 else ""
        yield f"Steps {first:,} to {last:,}{more} are not logged: nothing is known of them."
    if state.n_contradicting:
        again = numbers.counted(state.n_contradicting, "row")
        yield (
            f"{again} repeat a step with another value and are left out: several writers or runs "
            "in one?"
        )
    if found.n_ranks > 1:
        yield f"Of {found.n_ranks:,} ranks that logged, the one with most rows is judged."
    unasked = [name for name in found.further if name not in {e.series for e in state.series}]
    if unasked:
        few = ", ".join(unasked[:4]) + (" and more" if len(unasked) > 4 else "")
        how = "choose them above" if stored else "add --series NAME"
        yield f"Further series are logged ({few}): {how} to look for spikes in them."
    yield from found.notices


def _series(episode: Episode) -> list[str]:
    return list(dict.fromkeys(SERIES.get(e.series, e.series) for e in episode.events))


def _says(event: Event) -> Iterator[str]:
    """What stands beside an event in its row."""
    if event.absent_steps:
        spans = ", ".join(filter(None, (_span(each) for each in event.absent_steps[:3])))
        yield f"steps {spans} are not logged"
    if event.is_jump:
        yield "five times the level"
    yield from event.context


def _span(steps: tuple[int, int] | None) -> str | None:
    return None if steps is None else f"{steps[0]:,} to {steps[1]:,}"


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _moment(seconds: float) -> datetime | None:
    """Seconds since 1970 as a time."""
    return datetime.fromtimestamp(seconds, UTC) if math.isfinite(seconds) else None
