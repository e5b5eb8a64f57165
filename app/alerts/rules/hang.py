"""A job hangs: its ranks were dumped, and they show who holds it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.alerts.past import reached
from app.alerts.rule import Episode, Found, Rule
from app.alerts.runs import over_at
from app.answers.fleet.actions import rows
from app.answers.fleet.actions.training_rows import MOST_RUNS
from app.answers.training import hangs
from app.words import numbers
from data.queries import hangs as queries
from data.queries import run_owners

if TYPE_CHECKING:
    from datetime import datetime

    from app.alerts.rule import Watch
    from app.answers.training.hangs import Judged
    from app.ask import Ask
    from data.queries.hangs import DumpedAttempt
    from data.store import Store

BLIND = "cannot be judged: no dump of a rank is stored"
HANGS = ("found", "ambiguous")


def dumped(store: Store, cluster: str | None) -> list[DumpedAttempt]:
    """Attempts of a cluster whose ranks were dumped."""
    return queries.attempts(store, cluster=cluster)


def find(ask: Ask, watch: Watch) -> Found:
    """Hangs of the attempts that dumped last."""
    attempts = ask(dumped, watch.selection.cluster)
    if not attempts:
        return Found(blind=BLIND)
    recent = [
        each for each in attempts if each.dumped_at is None or each.dumped_at >= watch.from_at
    ][:MOST_RUNS]
    found = [
        episode for attempt in recent if (episode := _episode(ask, attempt, watch.now)) is not None
    ]
    return Found(reached(found, watch))


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
        rows.target("hang", attempt.cluster, run_id),
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


RULE = Rule(
    "hang",
    "Hang",
    "Ranks of a job wait for one that does not come: their dumps show which.",
    "End the job, take the node of that rank out for a test, and start again from the last "
    "checkpoint.",
    "critical",
    find,
    told="owner",
)
