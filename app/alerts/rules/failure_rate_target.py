"""The failure rate burns its error budget: more fails than the target allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analytics.reliability.error_budget import HOURLY_PAIRS
from analytics.reliability.excess import of_batches
from analytics.reliability.failure_rate import poisson_rate
from app.alerts import budgets
from app.alerts.budgets import Course
from app.alerts.rule import Found, Rule
from app.answers.reliability import sight
from data.filters import Selection
from data.queries import gone_wrong

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.arrays import Floats
    from analytics.estimate import Estimate
    from app.alerts.rule import Watch
    from app.ask import Ask
    from data.queries.gone_wrong import Failures

NODE_DAYS = 1_000.0
NO_EXPOSURE = "cannot be judged: the time that nodes ran is not known"


def find(ask: Ask, watch: Watch) -> Found:
    """Times in which more failed than the target allows."""
    aim, period = budgets.aimed(watch, "failure_rate"), budgets.period(ask, watch)
    if aim is None or period is None:
        return Found(blind=budgets.NO_AIM if aim is None else budgets.NO_RECORD)
    selection = Selection(watch.selection.cluster, *period)
    seen = ask(sight.sight, selection)
    if seen.none:
        return Found(blind=f"cannot be judged: {sight.why(seen)}")
    start_s = int(period[0].timestamp())
    n_hours = int((period[1] - period[0]).total_seconds()) // gone_wrong.HOUR_S
    failed = ask(gone_wrong.by_hour, selection, start_s, n_hours)
    if not failed.node_days.sum():
        return Found(blind=NO_EXPOSURE)
    return budgets.found(course(failed, period[0], aim), watch)


def course(failed: Failures, start_at: datetime, aim: float) -> Course:
    """Failures and thousands of node-days, hour by hour."""
    n_hours = len(failed.node_days)
    hour = np.minimum(failed.failed_s // gone_wrong.HOUR_S, n_hours - 1).astype(np.int64)
    wrong = np.bincount(hour, minlength=n_hours).astype(float)
    exposure = failed.node_days / NODE_DAYS
    first = np.full(int(failed.batch.max(initial=-1)) + 1, n_hours)
    np.minimum.at(first, failed.batch, hour)
    order = np.argsort(first, kind="stable")
    place = np.argsort(order)[failed.batch]

    def marks(look: int) -> Floats:
        return np.bincount(place[hour <= look], minlength=len(order)).astype(float)

    def wrong_in(begin: int, end: int) -> Estimate:
        return poisson_rate(int(wrong[begin:end].sum()), float(exposure[begin:end].sum()))

    judge = of_batches(first[order], marks, exposure, aim, least=1.0)
    return Course("failure_rate", aim, start_at, 1, wrong, exposure, judge, HOURLY_PAIRS, 168,
                  wrong_in)  # fmt: skip


RULE = Rule(
    "failure_rate_target",
    "Failure rate above target",
    "More attempts fail by hardware and system software than the target allows, and chance does "
    "not explain it.",
    "See on Failures which cause and which nodes bring it.",
    "warning",
    find,
    weight=6.0,
    needs="targets.failures_per_1000_node_days",
)
