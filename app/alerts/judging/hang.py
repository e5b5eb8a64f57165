"""A job hangs: its ranks were dumped, and they show who holds it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.alerts.past import reached
from app.alerts.rule import Episode, Found
from app.alerts.runs import over_at
from app.answers.fleet.actions import action
from app.answers.training import hangs
from app.words import numbers
from data.queries import run_owners

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from app.alerts.rule import Watch
    from app.answers.training.hangs import Judged
    from app.ask import Ask
    from data.queries.hangs import DumpedAttempt

HANGS = ("found", "ambiguous")


def found(ask: Ask, watch: Watch, dumped: Sequence[DumpedAttempt]) -> Found:
    """Hangs of attempts that were dumped."""
    judged = (_episode(ask, attempt, watch.now) for attempt in dumped)
    return Found(reached((episode for episode in judged if episode is not None), watch))


def _episode(ask: Ask, attempt: DumpedAttempt, now: datetime) -> Episode | None:
    judged = ask(hangs.of_attempt, attempt)
    if judged.verdict not in HANGS:
        return None
    key = attempt.attempt_key
    known = {} if key is None else ask(run_owners.of_attempts, attempt.cluster, [key])
    run_id, owned = known.get(key or "", (attempt.job_id, None))
    dumped_at = attempt.dumped_at or attempt.start_at or now
    ended_at = over_at(owned, attempt.dumped_at, now)
    return Episode(
        action.target("hang", attempt.cluster, run_id),
        dumped_at,
        dumped_at,
        None if ended_at is None else max(ended_at, dumped_at),
        _sentence(run_id, judged, attempt.n_ranks),
        "runs",
        {"run": run_id, "cluster": attempt.cluster, "runs_tab": "Hangs"},
        incident=None if judged.incident is None else judged.incident[0],
        owner=None if owned is None else owned.user,
    )


def _sentence(run_id: str, judged: Judged, n_ranks: int) -> str:
    said = hangs.answer(judged).sentence.rstrip(".")
    return f"Run {run_id} hangs: {said} (dumps of {numbers.counted(n_ranks, 'rank')})"
