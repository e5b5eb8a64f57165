"""A training run diverges, is NaN, or has lost its loss scale."""

from __future__ import annotations

import math
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
    from collections.abc import Iterator, Mapping, Sequence

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
    told = [episode for run, each in judged.items() for episode in _episodes(run, each, watch)]
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
        lasting = [event for event in episode.events if _lasts(event)]
        if not lasting:
            continue
        raised = [(_seconds(judged.log, event), n) for n, event in enumerate(lasting)]
        at, first = min((each for each in raised if not math.isnan(each[0])), default=raised[0])
        event = lasting[first]
        ended_at = run.over_at
        if episode.ended != "end of log":
            if math.isnan(episode.end_at):
                continue  # over, and nobody knows when
            ended_at = of_seconds(episode.end_at)
        raised_at = of_seconds(at) if not math.isnan(at) else run.last_at or watch.now
        since_at = raised_at if math.isnan(event.start_at) else of_seconds(event.start_at)
        if ended_at is not None and ended_at <= raised_at:
            ended_at = raised_at
        yield Episode(
            action.target("run", run.cluster, run.run_id),
            since_at,
            raised_at,
            ended_at,
            _sentence(run, event),
            "runs",
            run.named,
            owner=run.user,
        )


def _lasts(event: judged.Event) -> bool:
    """Whether a run does not recover from it at once."""
    if event.kind == "nan" and event.ended != "recovered":
        return True
    return event.n_rows >= ROWS.get(event.kind, DIVERGED_ROWS)


def _seconds(log: Logged, event: judged.Event) -> float:
    """When it had lasted long enough to be told; NaN where the log states no time."""
    if event.series not in log.values:
        return math.nan
    course = log.course(event.series)
    row = course.row_of(event.segment, event.start_step) + min(
        ROWS.get(event.kind, DIVERGED_ROWS), event.n_rows
    )
    return float(course.at[min(row, course.n_rows) - 1])


def _sentence(run: Run, event: judged.Event) -> str:
    kind = "divergence" if event.kind == "spike" else event.kind
    series = SERIES.get(event.series, event.series)
    came = "" if not math.isfinite(event.peak) else f" came to {numbers.number(event.peak)}"
    level = "" if math.isnan(event.level) else f" from {numbers.number(event.level)}"
    end = (
        f"not recovered by step {event.last_step:,}"
        if event.end_step is None
        else f"recovered by step {event.end_step:,}"
    )
    said = f": its {series}{came}{level}" if came else f" in its {series}"
    n_rows = numbers.counted(event.n_rows, "row")
    return (
        f"Run {run.run_id}: {TITLES[kind]} since step {event.start_step:,}{said}, {end} ({n_rows})"
    )
