"""Jobs of a size, or a run that is named, get less out of their GPU-time than before."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from analytics.efficiency.buckets import BUCKETS
from analytics.estimate import Estimate
from analytics.reliability.alarms.changes import HOURS, Series, changes, judged_at_end
from app.alerts import figures
from app.alerts.figures import EPOCH, Hours
from app.alerts.rule import Episode, Found, Rule
from app.answers.fleet.actions.action import target
from app.words import numbers
from data.queries import alarms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from analytics.arrays import Floats
    from analytics.frames import Columns
    from analytics.reliability.alarms.changes import Change
    from app.alerts.rule import Watch
    from app.ask import Ask

WHAT = "ETTR"
OF_JOBS = tuple(name for name, kind in BUCKETS.items() if kind.of_jobs)
LOST_BEFORE = timedelta(minutes=30)
"""Work before a failure of a named run that counts as lost: half an hour, as the RSC paper does."""
STALE_DAYS = 3
"""Days by which the ledger may end before the records."""
NOT_BUILT = (
    f"{WHAT} of sizes cannot be judged: the ledger is not built, `faultline ledger` builds it"
)
OLD = f"{WHAT} of sizes cannot be judged now: the ledger ends on {{}}, `faultline ledger` renews it"
TOO_SHORT = f"{WHAT} cannot be judged yet: less than 28 days of it came a week before its last ones"


class Watched(NamedTuple):
    """One whose ETTR is watched, day by day."""

    key: tuple[str, str]
    """Size or run, and which."""
    called: str
    lost: Floats
    """Share of each day that was not productive; NaN on days without any."""
    owner: str | None = None

    @property
    def series(self) -> Series:
        """The same, known at the end of each day."""
        known = np.isfinite(self.lost)
        count, exposure = np.zeros((2, len(self.lost) * HOURS))
        count[HOURS - 1 :: HOURS] = np.where(known, self.lost, 0.0)
        exposure[HOURS - 1 :: HOURS] = known
        return Series(count, exposure, "mean")


def find(ask: Ask, watch: Watch) -> Found:
    """Times at which the productive share of the GPU-time of days was below the interval of the
    quarter before: of classes of size by the ledger, of named runs by their attempts."""
    known, end = figures.ends_at(ask, watch)
    if known is None or end is None:
        return Found(blind=f"{WHAT} {figures.NO_RECORDS}")
    rows = ask(alarms.ledger_days, watch.selection, buckets=OF_JOBS)
    last = int((end - EPOCH) / figures.DAY)
    kept = rows["day"] < last  # the last day is not whole
    rows = {name: column[kept] for name, column in rows.items()}
    first = int(rows["day"].min()) if len(rows["day"]) else last
    runs = [run for name in watch.settings.runs if (run := _run(ask, watch, name, end))]
    first = min([first, *(day for day, _ in runs)])
    watched = [*_sizes(rows, first, last), *(_from(one, day - first) for day, one in runs)]
    looked = Hours(first, max(last - first, 0) * HOURS, end, np.zeros(0))
    told: list[Episode] = []
    for one in watched:
        found = changes(one.series, watch.hours_to_bound(len(watched)))
        told += figures.episodes(found, looked, watch, partial(_episode, watch, looked, one))
    told.sort(key=lambda each: (each.raised_at, each.target))
    return Found(tuple(told), _blind(watched, rows, last))


def _blind(watched: list[Watched], rows: Columns, last: int) -> str | None:
    if not len(rows["day"]):
        return NOT_BUILT
    ends = int(rows["day"].max())
    if ends < last - STALE_DAYS:
        return OLD.format(numbers.day(EPOCH + ends * figures.DAY))
    return None if any(judged_at_end(one.series) for one in watched) else TOO_SHORT


def _sizes(rows: Columns, first: int, last: int) -> Iterator[Watched]:
    """Classes of size of the ledger."""
    for size in np.unique(rows["size_class"].astype(str)).tolist():
        of_size = rows["size_class"] == size
        lost = np.full(last - first, np.nan)
        productive = np.nan_to_num(rows["productive"][of_size])
        lost[rows["day"][of_size].astype(int) - first] = np.clip(
            1.0 - productive / rows["held"][of_size], 0.0, 1.0
        )
        yield Watched(("size", size), f"Jobs of {numbers.job_size(size)}", lost)


def _run(ask: Ask, watch: Watch, name: str, end: datetime) -> tuple[int, Watched] | None:
    """A named run from its first day on: of each whole day of it, the share in which no attempt
    ran, or ran in the half hour before a failure. None where no attempt is of it."""
    rows = ask(alarms.run_attempts, watch.selection, run=name)
    if not len(rows["start_at"]):
        return None
    start, until = (rows[key].astype("datetime64[us]").astype(np.int64) / 3.6e9
                    for key in ("start_at", "end_at"))  # fmt: skip
    kept = np.where(rows["failed"].astype(bool), LOST_BEFORE / figures.HOUR, 0.0)
    kept_until = np.maximum(until - kept, start)
    ends = (end - EPOCH) / figures.HOUR
    last = ends if rows["runs"].any() else min(float(until.max()), ends)
    first_day, last_day = int(np.ceil(start.min() / HOURS)), int(last // HOURS)
    days = np.arange(first_day, max(last_day, first_day))[:, None] * float(HOURS)
    held = np.minimum(kept_until, days + HOURS) - np.maximum(start, days)
    lost = 1.0 - np.clip(np.clip(held, 0.0, None).sum(axis=1) / HOURS, 0.0, 1.0)
    owner = str(rows["user"][-1]) if rows["user"][-1] is not None else None
    return first_day, Watched(("run", name), f"Run {name}", lost, owner)


def _from(one: Watched, days: int) -> Watched:
    """The same, so many days without it before."""
    return one._replace(lost=np.concatenate([np.full(days, np.nan), one.lost]))


def _episode(watch: Watch, looked: Hours, one: Watched, change: Change, **times: Any) -> Episode:
    cluster = watch.selection.cluster or ""
    now, before = (
        figures.share(_productive(each), numbers.counted(each.n, "day"))
        for each in (change.figure, change.usual)
    )
    return Episode(
        target("ettr_down", cluster, *one.key),
        sentence=f"{one.called}: {now} of the GPU-time was productive since "
        f"{numbers.day(times['since_at'])}; in the quarter before {before}",
        page="ettr",
        named=figures.place(watch, times["since_at"], looked.ends_at),
        owner=one.owner,
        **times,
    )


def _productive(lost: Estimate) -> Estimate:
    """What is left of a share that was lost; n are days."""
    value, lower, upper = (
        None if each is None else 1.0 - each for each in (lost.value, lost.upper, lost.lower)
    )
    return Estimate(value, lower, upper, lost.conf_level, lost.n)


RULE = Rule(
    "ettr_down",
    "ETTR down",
    "Of the GPU-time of jobs of a size, or of a run that is watched, less was productive than the "
    "interval of the quarter before allows.",
    "Look in the ledger at where the time goes: lost work, start-up, checkpoints or waiting.",
    "warning",
    find,
    weight=2.0,
)
