"""What makes nodes fail sooner: a fact, their age, or incidents before?"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.estimate import CONF_LEVEL
from analytics.reliability.node_hazards import (
    FALSE_ALARMS,
    LEAST_EVENTS,
    LEAST_NODES,
    LEAST_OF_LEVEL,
    MOST_INCIDENTS,
    OTHERS,
    RECENT_DAYS,
    UNKNOWN,
    node_hazards,
)
from app.answers.content import Answer, Chart, Missing, Number, composed, counted, estimated
from app.answers.described import Field, Rows, field
from app.answers.reliability import sight
from app.answers.reliability.node_groups import named_fact
from app.words import numbers
from app.words.glossary import of_reliability
from data.queries import fact_rates, fleet, node_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.reliability.node_hazards import Covariate, NodeHazards
    from analytics.reliability.sight import Sight
    from app.ask import Ask
    from app.words.cells import Column
    from data.filters import Selection
    from data.store import Store

WHICH = "What makes nodes fail sooner"
NO_FACT = "none"
WIDTHS = (1, 7, 28, 91)
"""Days of a step: the first of which there are no more than `MOST_ROWS`."""
MOST_ROWS = 60_000
MOST_NODES = 5
"""Nodes that a sentence names."""


@dataclass(frozen=True)
class Found:
    """What makes nodes fail sooner, and whether it could be seen."""

    fact: str
    hazards: NodeHazards
    sight: Sight
    facts: tuple[str, ...]
    """Facts that could be asked for."""


def found(
    store: Store, selection: Selection, fact: str, *, conf_level: float = CONF_LEVEL
) -> Found:
    """The model of the nodes of a selection, of clusters of which failures could be seen."""
    seen = sight.sight(store, selection)
    width = _width(store, selection)
    steps = node_steps.steps(store, selection, fact, days=width)
    blind = seen.none | np.isin(steps["cluster"], seen.blind)
    return Found(
        fact,
        node_hazards(
            {name: column[~blind] for name, column in steps.items()},
            node_steps.incidents(store, selection, fact, days=width),
            days=width,
            conf_level=conf_level,
        ),
        seen,
        tuple(key for key, values, _ in fact_rates.known(store, selection) if values > 1),
    )


def _width(store: Store, selection: Selection) -> int:
    """Days of a step."""
    first, last = fleet.extent(store)
    first, last = selection.from_at or first, selection.to_at or last
    days = 1.0 if first is None or last is None else (last - first).total_seconds() / 86_400
    n_nodes = fleet.node_count(store, selection)
    return next((w for w in WIDTHS if ceil(days / w) * n_nodes <= MOST_ROWS), WIDTHS[-1])


def answer(
    ask: Ask, selection: Selection, fact: str = NO_FACT, *, conf_level: float = CONF_LEVEL
) -> Answer:
    """Which of several things makes nodes fail sooner, each beside all others?"""
    one = ask(found, selection, named_fact(fact), conf_level=conf_level)
    rows = Rows(_columns(), [_Row(_name(one, each), each) for each in one.hazards.covariates])
    return Answer(
        sentence(one),
        tuple(_headlines(one)),
        tuple(_blocks(one, rows)),
        notes=tuple(_notes(one)),
        record=_record(one, rows),
        sheet=rows.sheet(),
    )


def sentence(one: Found) -> str:
    """What raises the hazard most."""
    hazards = one.hazards
    if one.sight.none:
        return sight.refused(WHICH, one.sight)
    if hazards.model is None:
        return (
            f"{WHICH} cannot be told: {numbers.counted(hazards.n_events, 'failure')} of nodes, and "
            f"{LEAST_EVENTS} are needed."
        )
    apart = [each for each in hazards.covariates if each.stands_out]
    if not apart:
        return "Nothing that is known of nodes makes them fail sooner or later beyond chance."
    telling = [each for each in apart if each.level not in (UNKNOWN, OTHERS)]
    first = next((each for each in telling if each.what != "cluster"), apart[0])
    ratio = numbers.number(first.ratio.ratio.value)
    more = len(apart) - 1
    others = f"; {numbers.counted(more, 'other ratio')} differ{'s' * (more == 1)} from 1 too"
    if first.what == "incidents":
        return (
            f"Nodes fail {ratio} times as often for each incident that they had within "
            f"{RECENT_DAYS} days: they differ, or one brings the next{others if more else ''}."
        )
    said = f"Nodes of {_of(one, first)} fail {ratio} times as often as those of {first.reference}"
    return f"{said}, all else that is known alike{others if more else ''}."


def _name(one: Found, each: Covariate) -> str:
    """What stands beside a ratio."""
    if each.what == "incidents":
        return f"each incident in {RECENT_DAYS} days before"
    return f"{_of(one, each)} (to {each.reference})"


def _of(one: Found, each: Covariate) -> str:
    """A level, and what it is of."""
    what = one.fact.replace("_", " ") if each.what == "fact" else each.what
    return f"{what} {each.level}"


def _headlines(one: Found) -> Iterator[Number]:
    hazards = one.hazards
    if one.sight.none:
        yield from map(sight.number, (of_reliability.RATIOS_APART, of_reliability.FRAILTY))
        return
    if hazards.model is None:
        for term in (of_reliability.RATIOS_APART, of_reliability.FRAILTY):
            yield Number(term, numbers.UNKNOWN, f"n = {hazards.n_events}")
        return
    apart = sum(each.stands_out for each in hazards.covariates)
    tested = sum(each.ratio.p_value is not None for each in hazards.covariates)
    yield counted(of_reliability.RATIOS_APART, apart, of=tested, noun="ratios")
    frailty = hazards.model.frailty
    if frailty is None:
        yield composed(of_reliability.FRAILTY, numbers.UNKNOWN, "one node alone failed")
        return
    more = f", p = {frailty.p_value:.2g} of none"
    yield estimated(of_reliability.FRAILTY, "ettr", frailty.variance, more=more)


@dataclass(frozen=True)
class _Row:
    """One row of the table."""

    name: str
    covariate: Covariate


def _columns() -> tuple[Column | Field, ...]:
    return (
        field("covariate", "What", of="name"),
        field(
            "hazard_ratio", kind="rate", of="covariate.ratio.ratio",
            names={"csv": ("ratio", "ratio_lower", "ratio_upper", "conf_level")},
            term=of_reliability.HAZARD_RATIO,
        ),
        field("stands_out", "More than chance", "flag", of="covariate.stands_out"),
        field("steady", "Same at all times", of=_steady),
        field("failed_steps", "Failed", "count", of="covariate.failures"),
        field("exposure_node_days", "Exposure (node-days)", "number", of="covariate.node_days"),
        field("p_value", of="covariate.ratio.p_value", on=("json", "csv")),
        field("steady_p", of="covariate.ratio.steady_p", on=("json", "csv")),
    )  # fmt: skip


def _steady(row: _Row) -> str:
    """Whether the ratio is the same at all times, as far as the test tells."""
    p, drift = row.covariate.ratio.steady_p, row.covariate.ratio.drift
    if p is None or drift is None:
        return "not tested"
    if p >= FALSE_ALARMS:
        return "nothing speaks against it"
    return f"no: it {'rises' if drift > 0 else 'falls'} (p = {p:.2g})"


def _blocks(one: Found, rows: Rows) -> Iterator[Chart | Missing | Any]:
    if one.sight.none:
        yield sight.missing("hazard_ratios", WHICH, one.sight)
        return
    if one.hazards.model is None:
        return
    names = [row.name for row in rows.items]
    yield Chart(
        "reliability.hazard_ratios",
        "Hazard ratios",
        f"{numbers.counted(len(names), 'hazard ratio')} with intervals. The values stand in the "
        "table.",
        (one.hazards.covariates, names),
        rows=rows,
    )
    yield rows.table("hazard_ratios", "Hazard ratios")


def _notes(one: Found) -> Iterator[str]:
    hazards, model = one.hazards, one.hazards.model
    if one.sight.none:
        return
    yield from sight.notes(one.sight, f"{WHICH[0].lower()}{WHICH[1:]}")
    if one.fact != NO_FACT and not any(each.what == "fact" for each in hazards.covariates):
        known = f"known are {', '.join(one.facts)}" if one.facts else "none is known"
        yield (
            f"No {one.fact} has a ratio: it is not known of nodes, or none beside the rest had "
            f"{LEAST_OF_LEVEL} failures on {LEAST_NODES} nodes; of facts that differ {known}."
        )
    if hazards.without:
        yield (
            f"{numbers.number(hazards.without)} node-days of nodes whose {one.fact} is not known "
            "are left out."
        )
    if model is None:
        return
    step = "day" if hazards.days == 1 else f"step of {hazards.days} days"
    yield (
        f"A node that failed in a {step} counts once there, by the node-days that it ran in it. "
        f"Levels with fewer than {LEAST_OF_LEVEL} on {LEAST_NODES} nodes count as one; more than "
        f"{MOST_INCIDENTS} incidents before count as so many. What stands out is told at a "
        f"false-discovery rate of {numbers.percent(FALSE_ALARMS)}. The ratio of incidents before "
        "is of a model without own factors of nodes: both say that nodes differ."
    )
    if model.steady_p is not None and model.steady_p < FALSE_ALARMS:
        yield (
            f"Ratios are not the same at all times (p = {model.steady_p:.2g}): each is a mean over "
            "the period. Choose shorter periods, before and after what changed, to see it move."
        )
    if hazards.unplaced:
        yield (
            f"{numbers.counted(hazards.unplaced, 'failed step')} left out: nothing says that the "
            "node ran then."
        )
    if any(each.ratio.ratio.value is None for each in hazards.covariates):
        yield (
            "A ratio is unknown where the data set no bound to it, or something else says the "
            "same: what it would say is in the own factors of nodes."
        )
    if hazards.own_factors:
        named = ", ".join(
            f"{name} {numbers.number(factor)}" for name, factor in hazards.own_factors[:MOST_NODES]
        )
        yield f"Largest own factors of nodes: {named}. Lemons judges nodes."
    yield (
        "How often levels of one fact fail, and by how much more, say `rates` and MTTF by that "
        "fact; read the hazard ratio where several things go together, or where all nodes had bad "
        "days."
    )


def _record(one: Found, rows: Rows) -> dict[str, Any]:
    hazards, model = one.hazards, one.hazards.model
    frailty = None if model is None else model.frailty
    return {
        "by": one.fact,
        "n_nodes": hazards.n_nodes,
        "n_failed_steps": hazards.n_events,
        "step_days": hazards.days,
        "covariates": rows.records(),
        "own_variance": None if frailty is None else frailty.variance,
        "own_variance_p": None if frailty is None else frailty.p_value,
        "own_factors": [{"node": name, "factor": factor} for name, factor in hazards.own_factors],
        "steady_p": None if model is None else model.steady_p,
        "log_likelihood": None if model is None else model.log_likelihood,
        "node_days_of_unknown_level": hazards.without,
        "failed_steps_left_out": hazards.unplaced,
        **sight.record(one.sight),
    }
