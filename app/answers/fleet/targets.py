"""Are the targets of the site met, what of their error budgets is left, how fast is it spent?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.efficiency.buckets import BUCKETS
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.reliability.availability import clipped, ratios
from analytics.reliability.error_budget import (
    DAILY,
    HOURLY,
    PERIOD_HOURS,
    ErrorBudget,
    error_budget,
)
from app.answers.content import Answer
from app.answers.described import CSV, JSON, TABLE, Rows, field
from app.answers.fleet.aims import COUNTED, NO_LEDGER, TITLES, Figure, aim_of, unproductive
from app.answers.reliability import availability, mttf, sight
from app.words import numbers
from app.words.glossary import of_targets
from data.filters import Selection
from data.queries import efficiency, fleet
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from app.answers.content import Table
    from app.ask import Ask
    from data.site_alerts import AlertSettings
    from data.store import Store

WINDOWS: dict[Figure, tuple[int, ...]] = {
    "availability": HOURLY, "ettr": DAILY, "failure_rate": DAILY,
}  # fmt: skip
PERIOD = timedelta(hours=PERIOD_HOURS)
NOTHING_RAN = "no job with GPUs ran in the 28 days"
NO_EXPOSURE = "the time that nodes ran is not known"
NO_RECORD = "nothing is recorded"
NO_STATES = "no record tells when nodes were out of service"
NO_TARGET = "No target is set: [alerts.targets] of site.toml states them."
VERDICTS = {
    "met": "met",
    "missed": "missed",
    "unclear": "too close to the target to say",
    "unknown": "cannot be judged",
}


@dataclass(frozen=True)
class Target:
    """What one cluster is meant to reach, and what it did in the 28 days before a time."""

    figure: Figure
    cluster: str
    aim: float
    until_at: datetime | None
    """End of the period; None where nothing is recorded."""
    budget: ErrorBudget | None = None
    cannot: str | None = None
    """Why it cannot be judged."""

    @property
    def measured(self) -> Estimate:
        """The figure itself."""
        if self.budget is None:
            return unknown(CONF_LEVEL, 0)
        wrong = self.budget.wrong
        return wrong if self.figure == "failure_rate" else _less(wrong)

    @property
    def left(self) -> Estimate:
        """Share of the error budget that is left."""
        return unknown(CONF_LEVEL, 0) if self.budget is None else self.budget.left

    @property
    def verdict(self) -> str:
        """Whether it is met: only where the whole interval says so."""
        left = self.left
        if left.upper is not None and left.upper < 0:
            return "missed"
        if left.value is None:
            return "unknown"
        return "met" if left.lower is not None and left.lower >= 0 else "unclear"

    def burn(self, hours: int) -> Estimate:
        """Burn of the last hours; unknown where the figure is not known of so short a time."""
        burns = {} if self.budget is None else self.budget.burns
        return burns.get(hours, unknown(CONF_LEVEL, 0))

    def in_words(self, value: float | None) -> str:
        """A value of the figure."""
        return numbers.number(value) if self.figure == "failure_rate" else numbers.percent(value)


def settings(store: Store) -> AlertSettings:
    """What site.toml says of alerts and targets."""
    return load_site(store.root).alerts


def measured(store: Store, selection: Selection) -> tuple[Target, ...]:
    """The targets of the selected clusters, at the end of the period or of the records."""
    stated = settings(store)
    if not stated.targets_of and stated.targets == type(stated.targets)():
        return ()
    clusters = [selection.cluster] if selection.cluster else fleet.distinct(store, "cluster")
    last_at = fleet.extent(store)[1]
    until_at = min((at for at in (selection.to_at, last_at) if at is not None), default=None)
    return tuple(
        of_figure(store, figure, cluster, aim, until_at)
        for cluster in clusters
        for figure in TITLES
        if (aim := aim_of(stated, figure, cluster)) is not None
    )


def of_figure(
    store: Store, figure: Figure, cluster: str, aim: float, until_at: datetime | None
) -> Target:
    """One target of a cluster, in the 28 days before a time."""
    if until_at is None:
        return Target(figure, cluster, aim, None, cannot=NO_RECORD)
    whole = Selection(cluster, until_at - PERIOD, until_at)
    of = {"availability": _availability, "ettr": _ettr, "failure_rate": _failure_rate}[figure]
    wrong, windows, cannot = of(store, whole)
    if cannot is not None:
        return Target(figure, cluster, aim, until_at, cannot=cannot)
    allowed = aim if figure == "failure_rate" else 1.0 - aim
    if not allowed > 0:
        return Target(figure, cluster, aim, until_at, cannot="a target of 100 % has no budget")
    return Target(figure, cluster, aim, until_at, error_budget(allowed, wrong, windows))


Measured = tuple[Estimate, dict[int, Estimate], str | None]
"""What went wrong in the period and in each window; or why nobody knows."""


def _less(share: Estimate) -> Estimate:
    """What is left of a whole."""
    value, lower, upper = (
        None if each is None else 1.0 - each for each in (share.value, share.upper, share.lower)
    )
    return Estimate(value, lower, upper, share.conf_level, share.n)


def _none(why: str) -> Measured:
    return unknown(CONF_LEVEL, 0), {}, why


def _availability(store: Store, whole: Selection) -> Measured:
    """Node-hours out of service, per node-hour."""
    found = availability.node_states(store, whole)
    if whole.to_at is None or not len(found.state):
        return _none(NO_STATES)
    until_s = int(whole.to_at.timestamp())
    windows = {
        hours: _less(ratios(clipped(found, until_s - 3600 * hours, until_s)).available)
        for hours in HOURLY
    }
    return _less(ratios(found).available), windows, None


def _failure_rate(store: Store, whole: Selection) -> Measured:
    """Failures per 1,000 node-days, as far as they could be seen."""
    seen = sight.sight(store, whole)
    if seen.none:
        return _none(sight.why(seen))

    of_period = _rate(store, whole, PERIOD_HOURS)
    if of_period.value is None and of_period.lower is None:
        return _none(NO_EXPOSURE)
    return of_period, {hours: _rate(store, whole, hours) for hours in DAILY}, None


def _rate(store: Store, whole: Selection, hours: int) -> Estimate:
    """Failures per 1,000 node-days of the last hours."""
    until_at = whole.to_at
    from_at = None if until_at is None else until_at - timedelta(hours=hours)
    part = Selection(whole.cluster, from_at, until_at)
    return mttf.measured(store, part, by_node=False).rate.rate_per_1000_node_days


def _ettr(store: Store, whole: Selection) -> Measured:
    """GPU-hours of jobs that were not productive, per GPU-hour; whole days of UTC."""
    seen = sight.sight(store, whole)
    if seen.without:
        return _none(sight.why(seen))
    if not efficiency.has_ledger(store):
        return _none(NO_LEDGER)
    rows = efficiency.ledger_rows(store, whole, ("day",))
    rows = rows[[BUCKETS[name].of_jobs for name in rows["bucket"]]]
    days = sorted(rows["day"].unique())
    if not days:
        return _none(NOTHING_RAN)
    windows = {
        hours: unproductive(rows[rows["day"] > days[-1] - timedelta(hours=hours)])
        for hours in DAILY
    }
    return unproductive(rows), windows, None


def _burn(hours: int) -> Callable[[Target], Estimate]:
    return lambda row: row.burn(hours)


def _burn_value(hours: int) -> Callable[[Target], float | None]:
    return lambda row: row.burn(hours).value


def _interval(shown: Target) -> str:
    if not shown.measured.has_width:
        return ""
    words = numbers.interval if shown.figure == "failure_rate" else numbers.percent_interval
    return words(shown.measured)


_WINDOWS = {1: "1 hour", 6: "6 hours", 24: "24 hours", 72: "72 hours", 168: "7 days"}
DESCRIBED = (
    field("figure", "Target", of=lambda row: TITLES[row.figure], on=TABLE),
    field("figure", of="figure", on=(*JSON, *CSV)),
    field("cluster", "Cluster"),
    field("verdict", "Verdict", of=lambda row: VERDICTS[row.verdict], on=TABLE),
    field("aim", "Aim", of=lambda row: row.in_words(row.aim), on=TABLE),
    field("aim", of="aim", on=(*JSON, *CSV)),
    field("measured", "Measured", of=lambda row: row.in_words(row.measured.value), on=TABLE),
    field("interval", "Interval", of=_interval, on=TABLE, none="cannot be judged"),
    field("measured", of="measured", on=JSON),
    field("n", "n", of=lambda row: numbers.counted(row.measured.n, COUNTED[row.figure]), on=TABLE),
    field("left", "Budget left", of=lambda row: numbers.percent(row.left.value), on=TABLE,
          help=of_targets.BUDGET_LEFT.definition),
    field("budget_left", of="left", on=JSON),
    *(
        field(f"burn_{hours}h", f"Burn, {title}", "number", _burn_value(hours),
              on=TABLE, none="not known", help=of_targets.BURN.definition)
        for hours, title in _WINDOWS.items()
    ),
    *(
        field(f"burn_{hours}h", of=_burn(hours), on=JSON)
        for hours in _WINDOWS
    ),
    field("verdict", of="verdict", on=(*JSON, *CSV)),
    field("cannot", "Why not", none="", on=(*TABLE, *JSON)),
)  # fmt: skip


def answer(ask: Ask, selection: Selection) -> Answer:
    """Are the targets met, and what of their budgets is left?"""
    shown = ask(measured, selection)
    rows = Rows(DESCRIBED, shown)
    return Answer(
        sentence(shown),
        blocks=(table(shown),) if shown else (),
        notes=tuple(_notes(shown)),
        terms=(of_targets.TARGET, of_targets.BUDGET_LEFT, of_targets.BURN),
        record={"targets": rows.records()},
        sheet=rows.sheet(),
    )


def table(shown: tuple[Target, ...]) -> Table:
    """A row a target."""
    return Rows(DESCRIBED, shown).table("targets", "Targets and error budgets", empty=NO_TARGET)


def brief(shown: tuple[Target, ...]) -> Table:
    """The same in short, for documents."""
    kept = ("figure", "cluster", "aim", "measured", "interval", "left", "verdict")
    described = [each for each in DESCRIBED if each.column.key in kept and "table" in each.on]
    return Rows(described, shown).table("targets", "Targets", empty=NO_TARGET)


def sentence(shown: tuple[Target, ...]) -> str:
    """Which targets are missed, else how many are met."""
    if not shown:
        return NO_TARGET
    by = {name: [each for each in shown if each.verdict == name] for name in VERDICTS}
    if by["missed"]:
        worst = min(by["missed"], key=lambda each: each.left.upper or 0.0)
        value = worst.in_words(worst.measured.value)
        first = f"{TITLES[worst.figure]} of {worst.cluster} is {value}, aimed at "
        n_missed = numbers.counted(len(by["missed"]), "target")
        return f"{n_missed} of {len(shown):,} missed; first: {first}{worst.in_words(worst.aim)}."
    parts = [f"{len(by[name]):,} {words}" for name, words in VERDICTS.items() if by[name]]
    return f"{numbers.counted(len(shown), 'target')}: {', '.join(parts)}."


def _notes(shown: tuple[Target, ...]) -> Iterator[str]:
    for each in shown:
        if each.cannot is not None:
            yield f"{TITLES[each.figure]} of {each.cluster} cannot be judged: {each.cannot}."
    if any(each.figure == "ettr" and each.budget is not None for each in shown):
        yield (
            "ETTR is that of the ledger, the share of the GPU-time of jobs that was productive, in "
            "whole days of UTC."
        )
