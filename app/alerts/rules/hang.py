"""A job hangs: its ranks were dumped, and they show who holds it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.alerts.rule import Found, Rule
from app.answers.fleet.actions.action import MOST_RUNS
from data.queries import hangs as queries

if TYPE_CHECKING:
    from app.alerts.rule import Watch
    from app.ask import Ask
    from data.queries.hangs import DumpedAttempt
    from data.store import Store

BLIND = "cannot be judged: no dump of a rank is stored"


def dumped(store: Store, cluster: str | None) -> list[DumpedAttempt]:
    """Attempts of a cluster whose ranks were dumped."""
    return queries.attempts(store, cluster=cluster)


def find(ask: Ask, watch: Watch) -> Found:
    """Hangs of the attempts that dumped last."""
    attempts = ask(dumped, watch.selection.cluster)
    if not attempts:
        return Found(blind=BLIND)
    from app.alerts.judging import hang  # here: hardly any job is dumped

    recent = [
        each for each in attempts if each.dumped_at is None or each.dumped_at >= watch.from_at
    ]
    return hang.found(ask, watch, recent[:MOST_RUNS])


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
