"""Does the fleet fail more often than it did, since when, and what was changed then?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.estimate import CONF_LEVEL, Estimate
from analytics.reliability.availability import Spans
from analytics.reliability.dispersion import MIN_FAILURES
from analytics.reliability.fleet_trend import FleetTrend, Rollout, fleet_trend, near
from analytics.reliability.mean_cumulative import MeanCumulative, mean_cumulative
from analytics.reliability.mttf import weekly_rates
from app.answers.content import Answer, Chart, Missing, Number, composed
from app.answers.described import Rows, field
from app.answers.reliability import rate_by_group, sight
from app.answers.reliability.detection import of_sizes
from app.answers.reliability.rollouts import named, rolled_out, what
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_reliability
from data.queries import availability, reliability, repairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date

    from analytics.arrays import Ints
    from analytics.reliability.sight import Sight
    from app.answers.content import Block
    from app.ask import Ask
    from app.words.terms import Term
    from data.filters import Selection
    from data.store import Store

WHAT = "Whether failures become more frequent"
LEAST_P = 0.001
"""p-value below which its size tells nothing more."""
MOST_NEAR = 3
"""Roll-outs named beside a change."""


@dataclass(frozen=True)
class Measured:
    """The trend of a selection, what was changed meanwhile, and when failures could be seen."""

    fleet: FleetTrend
    rollouts: tuple[Rollout, ...]
    sight: Sight
    nodes: MeanCumulative
    """Failures that name a node, those of one incident on it as one."""


def measured(
    store: Store, selection: Selection, *, conf_level: float = CONF_LEVEL, seed: int = 0
) -> Measured:
    """The trend of a selection, and the roll-outs of its period."""
    counts = reliability.failure_counts(store, selection)
    found = fleet_trend(counts, conf_level=conf_level, seed=seed)
    days = found.trend.day
    shown = rolled_out(store, selection)
    if len(days):
        first, last = found.first, found.last
        shown = [each for each in shown if each.begin <= last and each.end >= first]
    seen = sight.sight(store, selection)
    return Measured(found, tuple(shown), seen, _of_nodes(store, selection, seen, conf_level))


def _of_nodes(store: Store, selection: Selection, seen: Sight, conf_level: float) -> MeanCumulative:
    """Failures by node, of the nodes that were there in the period; of none where nobody looked."""
    return mean_cumulative(*failures_of_nodes(store, selection, seen)[1:], conf_level=conf_level)


def failures_of_nodes(
    store: Store, selection: Selection, seen: Sight
) -> tuple[list[tuple[str, str]], Spans, Ints, Ints]:
    """Cluster and name of the nodes that were there in the period and seen, when they were, and of
    each failure of one its node and second."""
    there = [] if seen.none else availability.spells(store, selection)
    there = [row for row in there if row[0] not in seen.blind]
    place = {name: n for n, name in enumerate(dict.fromkeys(row[:2] for row in there))}
    rows = repairs.failures(store, selection) if there else []
    failed = [row for row in rows if row[:2] in place]

    def column(values: Iterable[float]) -> Ints:
        return np.array(list(values), dtype=np.int64)

    return (
        list(place),
        Spans(
            column(place[row[:2]] for row in there),
            column(row[3] for row in there),
            column(row[4] for row in there),
        ),
        column(place[row[:2]] for row in failed),
        column(row[2] for row in failed),
    )


def answer(ask: Ask, /, selection: Selection, **chance: Any) -> Answer:
    """Whether failures become more frequent; `chance` holds conf_level and seed."""
    found = ask(measured, selection, **chance)
    weeks = ask(rate_by_group.rates, selection, "week", **chance)
    shown = _chart(found, weeks)
    return Answer(
        _sentence(found),
        tuple(_headlines(found)),
        tuple(_blocks(found, shown)),
        notes=tuple(_notes(found)),
        record=_record(found),
        sheet=Rows(_stretch_columns(found), _stretches(found)).sheet(),
    )


def _blocks(found: Measured, shown: Block) -> Iterator[Block]:
    yield shown
    if found.fleet.changed:
        yield Rows(_stretch_columns(found), _stretches(found)).table(
            "stretches", "Stretches of one rate"
        )
    seen = "A new check or source shows more failures; that need not be more."
    yield Rows(ROLLOUTS, found.rollouts).table(
        "rollouts",
        "What was changed in the period",
        empty="No roll-out on 5 % of the nodes, no new node and no new check is recorded.",
        note=seen if any(each.sight for each in found.rollouts) else "",
    )
    if found.nodes.n_events and not found.sight.none:
        yield Chart(
            "reliability.mean_cumulative",
            "Failures that a node has had, on average",
            "Bending down where failures become rarer, up where they become more frequent.",
            (found.nodes,),
            rows=Rows(POINTS, _points(found.nodes)),
        )
    if found.fleet.trend.tests:
        yield Rows(TESTS, found.fleet.trend.tests).table("tests", "Tests of no trend")


def _sentence(found: Measured) -> str:
    trend = found.fleet.trend
    if found.sight.none:
        return sight.refused(WHAT, found.sight)
    if found.fleet.scope == "range":
        return f"{WHAT} {sight.CANNOT}: too little of the time could be seen."
    if not trend.exposure:
        return f"{WHAT} {sight.CANNOT}: nothing ran."
    if not trend.tests:
        if trend.n >= MIN_FAILURES:
            return f"{WHAT} {sight.CANNOT} from {numbers.counted(len(trend.day), 'day')}."
        failures = numbers.counted(trend.n, "failure")
        return f"{WHAT} {sight.CANNOT} from {failures}: it takes {MIN_FAILURES}."
    if found.fleet.changed:
        return _changed(found)
    interval = numbers.interval(trend.factor)
    if trend.verdict == "unknown":
        return f"No trend is shown: end over begin may be {interval}."
    said = f"end over begin {numbers.number(trend.factor.value)} ({interval})"
    if trend.verdict == "steady":
        return f"The failure rate is steady: {said}."
    more = "more" if trend.verdict == "worse" else "less"
    return f"Failures become {more} frequent: {said}."


def _changed(found: Measured) -> str:
    """The last change; and before it the verdict, where that is another."""
    trend, day = found.fleet.trend, numbers.day(found.fleet.changed[-1][0])
    before, after = (stretch.rate.value or 0.0 for stretch in trend.changes.stretches[-2:])
    verb = "rose" if after > before else "fell"
    other = "better" if after > before else "worse"
    if trend.verdict == other:
        whole = "Less" if other == "better" else "More"
        return f"{whole} frequent than at the begin; the rate last {verb} about {day}."
    if found.fleet.clusters > 1:
        times = f" {numbers.number(after / before)} times" if before else ""
        return f"The failure rate {verb}{times} about {day}, each cluster by its own."
    was, became = (_rate(found, each.rate) for each in found.fleet.rates[-2:])
    return f"The failure rate {verb} from {was} to {became} about {day}."


def _per_unit(found: Measured) -> float:
    return 1000.0 if found.fleet.unit == "node-day" else 1.0


def _unit(found: Measured) -> str:
    return "per 1,000 node-days" if found.fleet.unit == "node-day" else "per day"


def _rate(found: Measured, rate: Estimate) -> str:
    return numbers.number(rate.scaled(_per_unit(found)).value)


def _headlines(found: Measured) -> Iterator[Number]:
    trend = found.fleet.trend
    terms = (of_reliability.RATE_NOW, of_reliability.END_OVER_BEGIN, of_reliability.GROWTH)
    if found.sight.none or not trend.tests:
        for term in (*terms, of_reliability.RATE_CHANGES):
            yield (
                sight.number(term)
                if found.sight.none
                else Number(term, numbers.UNKNOWN, "too little to tell")
            )
        return
    now = found.fleet.rates[-1].rate.scaled(_per_unit(found))
    for term, value, unit in (
        (terms[0], now, _unit(found)),
        (terms[1], trend.factor, "ratio"),
        (terms[2], trend.growth, ""),
    ):
        yield _measured(term, value, unit)
    n = len(found.fleet.changed)
    chance = _chance(trend.changes.p_value)
    yield composed(
        of_reliability.RATE_CHANGES,
        numbers.count(n),
        f"chance in one rate {chance}",
        exact=n,
        unit="changes",
    )


def _measured(term: Term, value: Estimate, unit: str) -> Number:
    interval = numbers.interval(value)
    basis = f"{numbers.level(value)} interval {interval}, {numbers.counted(value.n, 'failure')}"
    printed = numbers.number(value.value)
    return Number(term, printed, basis, interval, numbers.count(value.n), value, unit)


def _chance(p_value: float | None) -> str:
    if p_value is None:
        return numbers.UNKNOWN
    return f"p = {p_value:.2g}" if p_value >= LEAST_P else f"p < {LEAST_P:g}"


@dataclass(frozen=True)
class _Shown:
    """One row of the table of stretches."""

    begin: date
    between: str | None
    """Days between which the change that began it lies."""
    end: date
    failures: int
    exposure: float | None
    rate: Estimate
    near: str


def _stretch_columns(found: Measured) -> tuple[Any, ...]:
    unit = found.fleet.unit
    return (
        Column("begin", "From", "day"),
        Column("between", "Change between", none="begin of the period"),
        Column("end", "To", "day"),
        Column("failures", "Failures", "count"),
        Column("exposure", f"Exposure ({unit}s)", "number"),
        Column("rate", f"Failures {_unit(found)}", "rate"),
        Column("near", "Near its begin"),
    )


ROLLOUTS = (
    Column("begin", "From", "day"),
    field("end", "Until", "day"),
    Column("cluster", "Cluster"),
    field("what", "What", of=what, px=320),
    Column("n_nodes", "Nodes", "count", none="not of nodes"),
    field("of_nodes", "Of nodes", "count", none="not of nodes"),
)
TESTS = (
    Column("name", "Test"),
    Column("statistic", "Statistic", "number"),
    field("p_value", "Chance of it without a trend (p)", of=lambda test: _chance(test.p_value)),
)


POINTS = (
    field("at"),
    field("failures_per_node", kind="number"),
    field("lower"),
    field("upper"),
    field("nodes"),
)


def _points(found: MeanCumulative) -> list[dict[str, Any]]:
    """The mean cumulative function at each of its times."""
    columns = (found.value, found.lower, found.upper, found.at_risk)
    names = ("failures_per_node", "lower", "upper", "nodes")
    return [
        {"at": datetime.fromtimestamp(second, UTC), **dict(zip(names, row, strict=True))}
        for second, row in zip(
            found.at_s.tolist(), zip(*(c.tolist() for c in columns), strict=True), strict=True
        )
    ]


def _stretches(found: Measured) -> list[_Shown]:
    fleet = found.fleet
    rows = []
    for place, each in enumerate(fleet.rates):
        changed = fleet.changed[place - 1] if place else None
        rows.append(
            _Shown(
                fleet.first if changed is None else changed[0],
                None if changed is None else _days(changed),
                fleet.last if place == len(fleet.changed) else fleet.changed[place][0],
                each.failures,
                each.exposure,
                each.rate.scaled(_per_unit(found)),
                _near(found, changed),
            )
        )
    return rows


def _days(changed: tuple[date, date, date]) -> str:
    """The days that a change lies between."""
    lower, upper = (numbers.day(day) for day in changed[1:])
    return lower if lower == upper else f"{lower} to {upper}"


def _near(found: Measured, changed: tuple[date, date, date] | None) -> str:
    """Roll-outs near a change, in words."""
    if changed is None:
        return ""
    told = [named(each, found.rollouts) for each in near(changed, found.rollouts)]
    rest = f", {len(told) - MOST_NEAR} more" if len(told) > MOST_NEAR else ""
    return "; ".join(told[:MOST_NEAR]) + rest or "nothing recorded"


def _chart(found: Measured, weeks: tuple[Any, ...]) -> Block:
    """Weeks, stretches of one rate, and roll-outs; or what would show them."""
    if found.sight.none:
        return sight.missing("trend", WHAT, found.sight)
    if not weekly_rates(weeks).runs:
        return Missing("trend", "No failure rate by week is known.", rate_by_group.NEEDS)
    known = sum(week.estimate.rate.value is not None for week in weeks)
    says = (
        f"Failures per 1,000 node-days of {numbers.counted(known, 'week')} with intervals, and "
        f"{numbers.counted(len(found.fleet.changed), 'change')} of the rate."
    )
    shown = tuple((each.begin, each.end, named(each, found.rollouts)) for each in found.rollouts)
    stretches = tuple((row.begin, row.end, row.rate) for row in _stretches(found))
    return Chart(
        "reliability.trend",
        f"Failure rate by week{of_sizes(found.fleet.min_gpus)}",
        says,
        (weeks, stretches, tuple(found.fleet.changed), shown),
        "trend",
        rows=Rows(_stretch_columns(found), _stretches(found)),
    )


def _notes(found: Measured) -> Iterator[str]:
    fleet, trend = found.fleet, found.fleet.trend
    if found.sight.none or not trend.tests:
        return
    others = {trend.verdict, fleet.with_unexplained}
    if len(others) > 1 and others & {"better", "worse"}:
        yield (
            f"If unexplained failures counted, the verdict would be {fleet.with_unexplained}: "
            "better evidence of causes looks like more failures."
        )
    if fleet.clusters > 1:
        yield (
            f"Of {fleet.clusters} clusters the node-days of each count by its own rate, so that "
            "one that came or went is no trend; rates of stretches are those of their mix then."
        )
    if trend.changes.scatter > 1:
        yield (
            f"Failures come together, {numbers.number(trend.changes.scatter)} times more than "
            "chance scatters them: intervals and the test of the verdict are wider for it."
        )
    if fleet.unit == "day":
        yield (
            "It is not known which nodes could have failed: days are counted, and a fleet that "
            "grows fails more often by that alone."
        )
    if len(fleet.changed) > 1:
        yield (
            f"The rate changed {len(fleet.changed)} times; a rate that moves slowly is told as "
            "steps."
        )
    if any(each.sight for change in fleet.changed for each in near(change, found.rollouts)):
        yield (
            "A check or source began near a change: failures that were there before may only be "
            "seen since."
        )
    yield from sight.notes(found.sight, "the trend")


def _record(found: Measured) -> dict[str, Any]:
    fleet, trend = found.fleet, found.fleet.trend
    scale = _per_unit(found)
    blind = found.sight.none
    return {
        "verdict": "unknown" if blind else trend.verdict,
        "p_value": None if blind else trend.p_value,
        "end_over_begin": trend.factor,
        "growth": trend.growth,
        "failures_judged": None if blind and not trend.n else trend.n,
        "exposure": trend.exposure,
        "exposure_unit": fleet.unit,
        "scatter": trend.changes.scatter,
        "scope": fleet.scope,
        "verdict_if_unexplained_count": fleet.with_unexplained,
        "min_gpus": fleet.min_gpus,
        "change_points": [
            {
                "at": at,
                "lower": lower,
                "upper": upper,
                "rate_before": before.rate.scaled(scale),
                "rate_after": after.rate.scaled(scale),
                "near": [asdict(each) for each in near((at, lower, upper), found.rollouts)],
            }
            for (at, lower, upper), before, after in zip(
                fleet.changed, fleet.rates, fleet.rates[1:], strict=False
            )
        ],
        "no_change_p_value": trend.changes.p_value,
        "mean_cumulative": {
            "failures_per_node": found.nodes.last,
            "nodes": found.nodes.n_nodes,
            "points": _points(found.nodes),
        },
        "tests": [asdict(test) for test in trend.tests],
        "rollouts": [asdict(each) for each in found.rollouts],
        "rate_unit": _unit(found),
        "conf_level": trend.factor.conf_level,
        **sight.record(found.sight),
    }
