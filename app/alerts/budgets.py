"""Targets as rules see them: times in which a budget burns faster than chance explains."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.reliability.error_budget import PERIOD_HOURS, burning, calm
from analytics.reliability.excess import excesses
from app.alerts.past import EPOCH, reached
from app.alerts.rule import Episode, Found
from app.answers.fleet.actions.action import target
from app.answers.fleet.aims import COUNTED, PAGES, TITLES, aim_of
from app.words import numbers
from data.queries import fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from analytics.arrays import Floats
    from analytics.estimate import Estimate
    from analytics.reliability.error_budget import Pair
    from analytics.reliability.excess import Judge
    from app.alerts.rule import Watch
    from app.answers.fleet.aims import Figure
    from app.ask import Ask

HISTORY = timedelta(hours=2 * PERIOD_HOURS)
"""Before a watch begins: a budget, and what is usual before it."""
NO_AIM = "cannot be judged: site.toml states no target for this cluster"
NO_RECORD = "cannot be judged: nothing is recorded"


@dataclass(frozen=True)
class Course:
    """A figure step by step."""

    figure: Figure
    aim: float
    start_at: datetime
    step_hours: int
    wrong: Floats
    exposure: Floats
    judge: Judge
    pairs: Sequence[Pair]
    calm_hours: int
    """Of these last hours less than allowed was spent: then it is over."""
    wrong_in: Callable[[int, int], Estimate]
    """What went wrong per unit from a step to another, with interval and n."""

    @property
    def allowed(self) -> float:
        """What may go wrong per unit."""
        return self.aim if self.figure == "failure_rate" else 1.0 - self.aim

    def at(self, step: int) -> datetime:
        """The end of a step."""
        return self.start_at + (step + 1) * timedelta(hours=self.step_hours)


def period(ask: Ask, watch: Watch) -> tuple[datetime, datetime] | None:
    """Whole hours from the history before a watch to its end, or that of the records."""
    first_at, last_at = ask(fleet.extent)
    if first_at is None or last_at is None:
        return None
    until_at = min(watch.now, last_at)
    from_at = max(watch.from_at - HISTORY, first_at)
    hour = timedelta(hours=1)
    from_at, until_at = (EPOCH + (at - EPOCH) // hour * hour for at in (from_at, until_at))
    return (from_at, until_at) if until_at > from_at else None


def aimed(watch: Watch, figure: Figure) -> float | None:
    """What the watch's cluster aims at."""
    return aim_of(watch.settings, figure, watch.selection.cluster)


def found(course: Course, watch: Watch) -> Found:
    """Times in which the budget burnt in two windows at once, and chance does not explain it."""
    if not course.allowed > 0:
        return Found(blind="cannot be judged: a target of 100 % has no error budget")
    steps = (course.wrong, course.exposure, course.allowed)
    over = excesses(
        burning(*steps, course.pairs, step_hours=course.step_hours),
        calm(*steps, course.calm_hours, step_hours=course.step_hours),
        course.judge,
        least_steps=watch.hours_to_bound() / course.step_hours,
    )
    cluster = watch.selection.cluster or ""
    rows = [
        Episode(
            target(f"{course.figure}_target", cluster),
            course.at(each.since - 1),
            course.at(each.raised),
            None if each.ended is None else course.at(each.ended),
            _sentence(course, cluster, each.raised),
            PAGES[course.figure],
            {"cluster": cluster},
        )
        for each in over
    ]
    return Found(reached(rows, watch))


def _sentence(course: Course, cluster: str, raised: int) -> str:
    """What the figure was when it was told."""
    n_steps = course.calm_hours // course.step_hours
    first = max(raised + 1 - n_steps, 0)
    wrong = course.wrong_in(first, raised + 1)
    is_rate = course.figure == "failure_rate"
    said = numbers.number if is_rate else numbers.percent
    value, low, high = (
        None if each is None else each if is_rate else 1.0 - each
        for each in (
            (wrong.value, wrong.lower, wrong.upper)
            if is_rate
            else (wrong.value, wrong.upper, wrong.lower)
        )
    )
    lasted = numbers.counted((raised + 1 - first) * course.step_hours, "hour")
    burn = None if wrong.value is None else wrong.value / course.allowed
    n = numbers.counted(wrong.n, COUNTED[course.figure])
    return (
        f"{TITLES[course.figure]} of {cluster} was {said(value)} ({said(low)} to {said(high)}, {n})"
        f" in the {lasted} before {numbers.moment(course.at(raised), 'UTC')}: it spends the error "
        f"budget of the target {said(course.aim)} {numbers.number(burn)} times as fast as allowed"
    )
