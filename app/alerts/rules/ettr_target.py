"""ETTR burns its error budget: less of the GPU-time of jobs is productive than is aimed at."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.efficiency.buckets import BUCKETS
from analytics.reliability.error_budget import DAILY_PAIRS
from analytics.reliability.excess import of_shares
from app.alerts import budgets
from app.alerts.budgets import Course
from app.alerts.rule import Found, Rule
from app.answers.fleet.aims import NO_LEDGER, unproductive
from app.answers.reliability import sight
from data.filters import Selection
from data.queries import efficiency

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.estimate import Estimate
    from app.alerts.rule import Watch
    from app.ask import Ask
    from data.store import Store

DAY = timedelta(days=1)
DAY_HOURS = 24
NOTHING_RAN = "cannot be judged: no job with GPUs ran"


def find(ask: Ask, watch: Watch) -> Found:
    """Times in which less GPU-time was productive than the target asks for."""
    aim, period = budgets.aimed(watch, "ettr"), budgets.period(ask, watch)
    if aim is None or period is None:
        return Found(blind=budgets.NO_AIM if aim is None else budgets.NO_RECORD)
    selection = Selection(watch.selection.cluster, *period)
    seen = ask(sight.sight, selection)
    if seen.without:
        return Found(blind=f"cannot be judged: {sight.why(seen)}")
    rows = ask(of_jobs, selection)
    if rows is None:
        return Found(blind=f"cannot be judged: {NO_LEDGER}")
    rows = rows[rows["at"] + DAY <= period[1]]
    if not rows["gpu_seconds"].sum():
        return Found(blind=NOTHING_RAN)
    return budgets.found(course(rows, aim), watch)


def of_jobs(store: Store, selection: Selection) -> pd.DataFrame | None:
    """Rows of the ledger of the whole days of a period, of time that jobs held; None where no
    ledger is built."""
    if not efficiency.has_ledger(store):
        return None
    rows = efficiency.ledger_rows(store, selection, ("day",))
    rows = rows[[BUCKETS[name].of_jobs for name in rows["bucket"]]]
    return rows.assign(at=pd.to_datetime(rows["day"], utc=True))


def course(rows: pd.DataFrame, aim: float) -> Course:
    """GPU-hours that were not productive, and all of jobs, day by day."""
    start_at: datetime = rows["at"].min().to_pydatetime()
    step = ((rows["at"] - start_at) // DAY).to_numpy(dtype=np.int64)
    n_days = int(step.max()) + 1
    hours = rows["gpu_seconds"].to_numpy(dtype=float) / 3600.0
    total = np.bincount(step, hours, minlength=n_days).astype(float)
    lost = (rows["bucket"] != "productive").to_numpy()
    wrong = np.bincount(step[lost], hours[lost], minlength=n_days).astype(float)

    def wrong_in(begin: int, end: int) -> Estimate:
        return unproductive(rows[(step >= begin) & (step < end)])

    judge = of_shares(wrong, total, 1.0 - aim)
    return Course("ettr", aim, start_at, DAY_HOURS, wrong, total, judge, DAILY_PAIRS, 168,
                  wrong_in)  # fmt: skip


RULE = Rule(
    "ettr_target",
    "ETTR below target",
    "Less of the GPU-time of jobs was productive than the target asks for, and chance does not "
    "explain it.",
    "See in the ledger what it went into, and which cause lost most.",
    "warning",
    find,
    weight=6.0,
    needs="targets.ettr",
)
