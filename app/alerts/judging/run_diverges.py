"""A training run diverges, is NaN, or has lost its loss scale."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.training.stability.course import Logged
from analytics.training.stability.judged import DIVERGED_ROWS, Stability, stability
from app.alerts.past import of_seconds, reached
from app.alerts.rule import Episode, Found
from app.answers.fleet.actions import action
from app.answers.training.stability import SERIES, TITLES
from app.words import numbers
from data.queries import run_levels, training

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from analytics.frames import Columns
    from analytics.training.stability import judged
    from app.alerts.rule import Watch
    from app.alerts.runs import Run
    from app.ask import Ask
    from data.store import Store

ROWS: Mapping[str, int] = {
    "divergence": DIVERGED_ROWS,
    "spike": DIVERGED_ROWS,
    "nan": 3,
    "loss_scale_collapse": 1,
}
"""Rows that each kind lasts before it is told: a spike that lasts is a divergence, and one NaN from
which a run recovers is none."""


CALM_ROWS = 8
"""Rows below half of a rise, one after the other, by which it is over after a restart."""


class Lasting(NamedTuple):
    """An event as long as it lasts, restarts in it."""

    event: judged.Event
    n_rows: int
    ends_at: float
    """Seconds since 1970 when it was over; NaN while it goes on, and without times in the log."""
    goes_on: bool
    """To the end of the log."""


class Judged(NamedTuple):
    """A run, and what its log shows."""

    log: Logged
    found: Stability


def of_undated(store: Store, cluster: str, run_id: str) -> Columns:
    """The levels of a run whose log states no times."""
    return training.steps(store, cluster, run_id)


def found(ask: Ask, watch: Watch, seen: Sequence[Run]) -> Found | None:
    """Times in which one of some runs was beyond recovering by itself; None where none can be
    judged."""
    judged = {run: _judged(held) for run, held in _logged(ask, seen)}
    told = [
        episode for run, each in judged.items() for episode in _joined(_episodes(run, each, watch))
    ]
    if not told and not any(each.found.n_judged for each in judged.values()):
        return None
    return Found(reached(told, watch))


def _logged(ask: Ask, seen: Sequence[Run]) -> Iterator[tuple[Run, Columns]]:
    """What each run logged."""
    dated = [run for run in seen if run.last_at is not None]
    for cluster in sorted({run.cluster for run in dated}):
        of_cluster = {run.run_id: run for run in dated if run.cluster == cluster}
        held = ask(run_levels.levels, cluster, sorted(of_cluster))
        yield from ((of_cluster[run_id], columns) for run_id, columns in held.items())
    for run in seen:
        if run.last_at is None:
            yield run, ask(of_undated, run.cluster, run.run_id)


def _judged(held: Columns) -> Judged:
    values = {name: held[name] for name in run_levels.LEVELS if not np.isnan(held[name]).all()}
    log = Logged(held["step"].astype(np.int64), held["logged_at"], values,
                 held["event"].astype(np.int8))  # fmt: skip
    return Judged(log, stability(log))


def _episodes(run: Run, judged: Judged, watch: Watch) -> Iterator[Episode]:
    for episode in judged.found.episodes:
        found = [_lasting(judged.log, event) for event in episode.events]
        lasting = [each for each in found if _lasts(each)]
        if not lasting:
            continue
        raised = [(_seconds(judged.log, each), n) for n, each in enumerate(lasting)]
        at, first = min((each for each in raised if not math.isnan(each[0])), default=raised[0])
        event = lasting[first].event
        ended_at = run.over_at
        if not any(each.goes_on for each in lasting):
            ends = [at for at in (episode.end_at, *(e.ends_at for e in lasting)) if at == at]
            if not ends:
                continue  # over, and nobody knows when
            ended_at = of_seconds(max(ends))
        raised_at = of_seconds(at) if not math.isnan(at) else run.last_at or watch.now
        since_at = raised_at if math.isnan(event.start_at) else of_seconds(event.start_at)
        if ended_at is not None and ended_at <= raised_at:
            ended_at = raised_at
        yield Episode(
            action.target("run", run.cluster, run.run_id),
            since_at,
            raised_at,
            ended_at,
            _sentence(run, lasting[first]),
            "runs",
            run.named,
            owner=run.user,
        )


def _joined(episodes: Iterable[Episode]) -> list[Episode]:
    """Episodes of a run, those that lie in one another as one."""
    found: list[Episode] = []
    for each in sorted(episodes, key=lambda one: one.raised_at):
        last = found[-1] if found else None
        if last is None or (last.ended_at is not None and last.ended_at < each.since_at):
            found.append(each)
        else:
            ends = (last.ended_at, each.ended_at)
            found[-1] = replace(last, ended_at=None if None in ends else max(filter(None, ends)))
    return found


def _lasting(log: Logged, event: judged.Event) -> Lasting:
    """An event, and what followed a restart in it: an attempt that begins with a checkpoint of a
    run that had diverged goes on where that was, and its first rows look like its level.
    """
    whole = Lasting(event, event.n_rows, event.end_at, event.ended == "end of log")
    if event.ended != "restart" or event.kind not in ("spike", "divergence"):
        return whole
    course = log.course(event.series)
    first = course.end_of(event.segment)
    own = course.value[course.row_of(event.segment, event.start_step) : first]
    half = (event.level + float(np.nanmedian(own))) / 2.0
    is_calm = course.value[first:] <= half
    in_a_row = np.cumsum(np.concatenate([np.zeros(CALM_ROWS, int), is_calm]))
    calm = np.flatnonzero(in_a_row[CALM_ROWS:] - in_a_row[:-CALM_ROWS] == CALM_ROWS) - CALM_ROWS + 1
    if not len(calm):
        return Lasting(event, event.n_rows + len(is_calm), math.nan, True)
    back = int(calm[0])
    if not back:
        return whole
    return Lasting(event, event.n_rows + back, float(course.at[first + back]), False)


def _lasts(lasting: Lasting) -> bool:
    """Whether a run does not recover from it at once."""
    event = lasting.event
    if event.kind == "nan" and event.ended != "recovered":
        return True
    return lasting.n_rows >= ROWS.get(event.kind, DIVERGED_ROWS)


def _seconds(log: Logged, lasting: Lasting) -> float:
    """When it had lasted long enough to be told; NaN where the log states no time."""
    event = lasting.event
    if event.series not in log.values:
        return math.nan
    course = log.course(event.series)
    row = course.row_of(event.segment, event.start_step) + min(
        ROWS.get(event.kind, DIVERGED_ROWS), lasting.n_rows
    )
    return float(course.at[min(row, course.n_rows) - 1])


def _sentence(run: Run, lasting: Lasting) -> str:
    event = lasting.event
    kind = "divergence" if event.kind == "spike" else event.kind
    series = SERIES.get(event.series, event.series)
    came = "" if not math.isfinite(event.peak) else f" came to {numbers.number(event.peak)}"
    level = "" if math.isnan(event.level) else f" from {numbers.number(event.level)}"
    end = f"not recovered by step {event.last_step:,}"
    if event.end_step is not None:
        end = f"recovered by step {event.end_step:,}"
    elif event.ended == "restart" and lasting.n_rows > event.n_rows:
        end += ", nor by the restart after it"
    said = f": its {series}{came}{level}" if came else f" in its {series}"
    n_rows = numbers.counted(lasting.n_rows, "row")
    return (
        f"Run {run.run_id}: {TITLES[kind]} since step {event.start_step:,}{said}, {end} ({n_rows})"
    )
