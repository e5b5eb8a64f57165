"""A training run diverges, is NaN, or has lost its loss scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from analytics.training.stability.judged import DIVERGED_ROWS, Stability, stability
from app.alerts.past import of_seconds, reached
from app.alerts.rule import Episode, Found, Rule
from app.alerts.runs import looked_at
from app.answers.fleet.actions import rows
from app.answers.training import logged
from app.answers.training.stability import SERIES, TITLES
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from analytics.training.stability import judged
    from analytics.training.stability.course import Logged
    from app.alerts.rule import Watch
    from app.alerts.runs import Run
    from app.ask import Ask
    from data.store import Store

BLIND = "cannot be judged: no step of a training run is stored"
NOTHING_LOGGED = "cannot be judged: no run logs its loss or its gradient norm often enough"
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


def of_run(store: Store, cluster: str, run_id: str) -> Judged:
    """What the loss, the gradient norm and the loss scale of a run show."""
    log = logged.of_store(store, cluster, run_id, plain=True).logged
    return Judged(log, stability(log))


def find(ask: Ask, watch: Watch) -> Found:
    """Times in which one of the runs that logged last was beyond recovering by itself."""
    seen = [run for run in looked_at(ask, watch) if run.n_rows]
    if not seen:
        return Found(blind=BLIND)
    found: list[Episode] = []
    can_judge = False
    for run in seen:
        judged = ask(of_run, run.cluster, run.run_id)
        can_judge |= bool(judged.found.n_judged)
        found += _episodes(run, judged, watch)
    if not found and not can_judge:
        return Found(blind=NOTHING_LOGGED)
    return Found(reached(found, watch))


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
            rows.target("run", run.cluster, run.run_id),
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


RULE = Rule(
    "run_diverges",
    "Run diverges",
    "The loss or the gradient norm of a training run rose and did not come back, is NaN, or its "
    "loss scale collapsed: what it computes since is lost.",
    "Set the run back to the checkpoint that its page advises, and skip the data of those steps.",
    "critical",
    find,
    told="owner",
)
