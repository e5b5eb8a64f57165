"""Training runs that rules look at: those that logged last, whose they are, when they were over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from app.answers.fleet.actions.action import MOST_RUNS, RECENT
from data.queries import run_levels, run_owners

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from app.alerts.rule import Watch
    from app.ask import Ask

MOST_CLOCKS_APART = timedelta(hours=1)
"""By how much a log may lie after the end of its job."""


@dataclass(frozen=True)
class Run:
    """A run that logged steps."""

    cluster: str
    run_id: str
    n_rows: int
    n_ranks: int
    last_at: datetime | None
    """When it logged last; None where no row states a time."""
    user: str | None
    over_at: datetime | None
    """When it was over; None while it runs, as far as anybody knows."""

    @property
    def named(self) -> Mapping[str, str]:
        """What the address of its page names."""
        return {"run": self.run_id, "cluster": self.cluster}


def looked_at(ask: Ask, watch: Watch) -> list[Run]:
    """The runs that logged last, as many as the list of what to do looks at."""
    found = ask(run_levels.last_runs, watch.selection, watch.from_at, MOST_RUNS)
    owned: dict[tuple[str, str], run_owners.Owned] = {}
    for cluster in {run.cluster for run in found}:
        of_cluster = [run.run_id for run in found if run.cluster == cluster]
        of_runs = ask(run_owners.of_runs, cluster, of_cluster)
        owned |= {(cluster, run_id): each for run_id, each in of_runs.items()}
    return [_run(run, owned.get((run.cluster, run.run_id)), watch.now) for run in found]


def _run(run: run_levels.Logging, owned: run_owners.Owned | None, now: datetime) -> Run:
    user = None if owned is None else owned.user
    return Run(*run, user, over_at(owned, run.last_at, now))


def over_at(
    owned: run_owners.Owned | None, last_at: datetime | None, now: datetime
) -> datetime | None:
    """When a run was over: as the scheduler says, else some days after it logged last."""
    end_at = None if owned is None else owned.end_at
    if end_at is not None and (last_at is None or last_at <= end_at + MOST_CLOCKS_APART):
        return end_at
    if last_at is not None and last_at + RECENT < now:
        return last_at + RECENT
    return None
