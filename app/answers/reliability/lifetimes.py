"""How long do parts live, and do they fail young, at any age, or as they wear out?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.estimate import CONF_LEVEL
from analytics.reliability.lifetime_families import FEWEST, hazard_of
from analytics.reliability.lifetimes import FALSE_ALARMS
from app.answers.content import Answer, Chart, Number, composed, counted
from app.answers.described import Field, Rows, field
from app.answers.reliability import sight
from app.answers.reliability.lives import (
    CLEARLY,
    MOST_AGES,
    MOST_GROUPS,
    WHICH,
    Kind,
    Lifetimes,
    of_nodes,
)
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_reliability

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from analytics.estimate import Estimate
    from app.answers.content import Block
    from app.answers.reliability.lives import Cause
    from app.ask import Ask
    from app.words.terms import Term
    from data.filters import Selection


def in_jobs(
    ask: Ask, selection: Selection, by: str = "none", *, conf_level: float = CONF_LEVEL
) -> Answer:
    """How long a node runs in a job, and whether it matters for how long it has."""
    return answer(ask(of_nodes, selection, by, conf_level=conf_level))


def answer(found: Lifetimes) -> Answer:
    """The curve, the family that describes it best, and groups."""
    return Answer(
        _sentence(found),
        tuple(_headlines(found)),
        tuple(_blocks(found)),
        notes=tuple(_notes(found)),
        record=_record(found),
        sheet=Rows(_age_columns(found), _ages(found)).sheet(),
    )


def _sentence(found: Lifetimes) -> str:
    curve, lives, kind = found.curve, found.lives, found.kind
    parts = numbers.counted(lives.n, kind.noun, kind.nouns)
    if found.sight is not None and found.sight.none:
        return sight.refused(WHICH, found.sight)
    if not lives.n:
        return f"No {kind.noun} can be judged: none was watched."
    if not lives.n_deaths:
        said = f"No {kind.death} of {parts} in {_exposure(found)}"
        if kind.rate is None:
            return f"{said}."
        most = numbers.number(lives.rate(curve.conf_level).upper)
        return f"{said}: at most {most} {_unit_of_rate(found)}."
    hazard = kind.hazard[hazard_of(found.fits)[0]]
    half = curve.quantile(0.5)
    if half.value is not None:
        return f"Half of {parts} {kind.die} within {_time(found, half.value)}; {hazard}."
    last = _ages(found)[-1]
    share = numbers.percent(last.survival.value)
    return f"{share} of {parts} do not {kind.die} within {_time(found, last.age)}; {hazard}."


def _headlines(found: Lifetimes) -> Iterator[Number]:
    curve, lives, kind = found.curve, found.lives, found.kind
    if found.sight is not None and found.sight.none:
        terms = (kind.died, kind.median, kind.mean, of_reliability.SHAPE)
        yield from map(sight.number, terms)
        return
    watched = f"in {_exposure(found)}, the longest {_time(found, curve.last)}"
    yield counted(kind.died, lives.n_deaths, of=lives.n, noun=kind.nouns, basis=watched)
    if kind.rate is not None:
        yield _measured(kind.rate, lives.rate(curve.conf_level), _unit_of_rate(found), kind)
    yield _measured(kind.median, curve.quantile(0.5), found.unit, kind)
    yield _measured(kind.mean, curve.restricted_mean(), found.unit, kind)
    hazard, shape = hazard_of(found.fits)
    if shape is None:
        fewer = f"fewer than {FEWEST} {kind.death}s, or all at one age"
        yield composed(of_reliability.SHAPE, numbers.UNKNOWN, fewer)
    else:
        yield _measured(of_reliability.SHAPE, shape, "", kind, says=hazard)


def _measured(term: Term, estimate: Estimate, unit: str, kind: Kind, *, says: str = "") -> Number:
    """A quantity in a unit of its own with its interval; the bound where only that is known."""
    interval = numbers.interval(estimate) if estimate.has_width else ""
    known = estimate.value is not None
    printed = numbers.number(estimate.value if known else estimate.lower)
    if not known and estimate.lower is not None:
        printed = f"above {printed}"
    if unit and (known or estimate.lower is not None):
        printed = f"{printed} {unit}"
    basis = "; ".join(filter(None, (interval, says, numbers.counted(estimate.n, kind.death))))
    return Number(term, printed, basis, interval, numbers.count(estimate.n), estimate, unit)


@dataclass(frozen=True)
class _Age:
    """One row of the table of ages."""

    age: float
    survival: Estimate
    described: float | None
    """By the family that describes the lives best."""
    at_risk: int
    deaths: int


def _age_columns(found: Lifetimes) -> tuple[Column | Field, ...]:
    kind = found.kind
    return (
        Column("age", "After", "number", found.unit),
        Column("survival", f"Without {kind.death}", "share"),
        Column("described", "By the best family", "ratio", none="no family"),
        Column("at_risk", "Watched then", "count"),
        Column("deaths", f"{kind.death.capitalize()}s until then", "count"),
    )


FITS = (
    Column("family", "Family"),
    field("parameters", "Parameters", of=lambda fit: ", ".join(
        f"{name} {numbers.number(value.value)} ({numbers.interval(value)})"
        for name, value in fit.parameters.items()
    )),
    Column("aic", "AIC", "count"),
    Column("more", "Above the best", "count"),
)  # fmt: skip


def _piece_columns(found: Lifetimes) -> tuple[Column | Field, ...]:
    kind, unit = found.kind, found.unit or "units"
    deaths = f"{kind.death.capitalize()}s"
    return (
        Column("begin", "From age", "number", unit),
        Column("end", "To age", "number", unit),
        Column("deaths", deaths, "count"),
        Column("exposure", "Watched", "number", f"{kind.item}-{unit}"),
        field("rate", f"{deaths} per 1,000", "rate", lambda piece: piece.rate.scaled(1000.0),
              unit=f"{kind.item}-{unit}"),
    )  # fmt: skip


def _group_columns(found: Lifetimes) -> tuple[Column | Field, ...]:
    kind = found.kind
    deaths = f"{kind.death.capitalize()}s"
    at = "" if found.groups_at is None else f" for {_time(found, found.groups_at)}"
    rate = (
        field("rate", f"{deaths} {_unit_of_rate(found)}", "number", "rate.value"),
        field("rate_interval", "Interval", of=lambda group: numbers.interval(group.rate)),
    )
    return (
        Column("name", "Group"),
        Column("lives", kind.nouns.capitalize(), "count"),
        Column("deaths", deaths, "count"),
        *(rate if kind.rate is not None else ()),
        Column("survival", f"Without {kind.death}{at}", "share"),
        Column("differs", "Unlike all others", "flag", none="cannot be told"),
    )


def _blocks(found: Lifetimes) -> Iterator[Block]:
    kind = found.kind
    if found.sight is not None and found.sight.none:
        yield sight.missing("ages", WHICH, found.sight)
        return
    yield Chart(
        "reliability.survival",
        f"How many {kind.nouns} do not {kind.die}, and for how long?",
        f"Share of {kind.nouns} without {kind.death}, by time",
        (found.curve, found.fits[:1]),
        options={"unit": found.unit, "nouns": kind.nouns, "death": kind.death},
        rows=Rows(_age_columns(found), _ages(found)),
    )
    yield Rows(_age_columns(found), _ages(found)).table(
        "ages", f"How many {kind.nouns} do not {kind.die}", empty=f"No {kind.nouns}."
    )
    best = found.fits[0].aic if found.fits else 0.0
    rows = [_Described(fit.family, fit.parameters, fit.aic, fit.aic - best) for fit in found.fits]
    yield Rows(FITS, rows).table(
        "families",
        "Families that describe it",
        empty=f"None is fitted below {FEWEST} {kind.death}s at two ages.",
    )
    if found.pieces:
        yield Rows(_piece_columns(found), found.pieces.pieces).table(
            "hazard",
            "Hazard by age",
            note=f"{kind.death.capitalize()}s over time watched at these ages (piecewise "
            f"exponential): no family is assumed. Its AIC is {found.pieces.aic:,.0f}.",
        )
    if found.fits:
        best_fit = found.fits[0]
        yield Chart(
            "reliability.probability",
            f"Does the {best_fit.family} family describe them?",
            "Points on the line where it does.",
            (found.curve, best_fit),
            options={"unit": found.unit, "death": kind.death},
            rows=Rows(_age_columns(found), _ages(found)),
        )
    if found.causes:
        yield Rows(_cause_columns(found), _by_cause(found)).table(
            "causes", f"What they {kind.die} of, within {_time(found, _last(found))}"
        )
    if found.groups:
        yield Rows(_group_columns(found), found.groups[:MOST_GROUPS]).table("groups", "Groups")


@dataclass(frozen=True)
class _Described:
    """One row of the table of families."""

    family: str
    parameters: Mapping[str, Estimate]
    aic: float
    more: float


@dataclass(frozen=True)
class _OfCause:
    """One row of the table of causes."""

    cause: str
    deaths: int
    incidence: Estimate
    without: Estimate
    p_value: float | None


def _cause_columns(found: Lifetimes) -> tuple[Column | Field, ...]:
    return (
        Column("cause", "Cause"),
        Column("deaths", f"{found.kind.death.capitalize()}s", "count"),
        Column("incidence", "Die of it", "share"),
        Column("without", "Live on if it had ended none", "share"),
        field("p_value", "All groups alike (p)", of=_chance, none="not compared"),
    )


def _chance(row: _OfCause) -> str | None:
    return None if row.p_value is None else f"{row.p_value:.2g}"


def _last(found: Lifetimes) -> float:
    """The last round age."""
    return _ages(found)[-1].age


def _by_cause(found: Lifetimes) -> list[_OfCause]:
    at = _last(found)
    return [
        _OfCause(
            cause.incidence.cause,
            cause.incidence.n_deaths,
            cause.incidence.at(at),
            cause.without.at(at),
            None if cause.test is None else cause.test.p_value,
        )
        for cause in found.causes
    ]


def _ages(found: Lifetimes) -> list[_Age]:
    """Survival at round ages up to the last watched."""
    curve = found.curve
    if not found.lives.n:
        return []
    best = found.fits[0] if found.fits else None
    ages = _round_ages(curve.last)
    _, at_risk = found.lives.table(ages)
    return [
        _Age(
            age,
            curve.at(age),
            float(best.survival(np.array([age]))[0]) if best else None,
            round(float(at_risk[place])),
            round(float(curve.deaths[curve.age <= age].sum())),
        )
        for place, age in enumerate(ages.tolist())
    ]


def _round_ages(last: float) -> Any:
    """Multiples of a round step up to an age; at most `MOST_AGES`.

    >>> _round_ages(5.7).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0]
    """
    least = last / MOST_AGES
    power = 10.0 ** np.floor(np.log10(least))
    step = next(power * times for times in (1.0, 2.0, 5.0, 10.0) if power * times >= least)
    return step * np.arange(1, max(int(np.floor(last / step + 1e-9)), 1) + 1)


def _notes(found: Lifetimes) -> Iterator[str]:
    if found.sight is not None and found.sight.none:
        return
    if found.test is not None:
        yield (
            f"Did all groups live equally long, chance would set them as far apart with p = "
            f"{found.test.p_value:.2g} (log-rank, {found.test.df} df). Each is compared with all "
            f"others together, at a false-discovery rate of {numbers.percent(FALSE_ALARMS)}."
        )
    if found.left_out:
        line = "" if found.rejected_at is None else f", the first of line {found.rejected_at}"
        yield (
            f"{numbers.counted(found.left_out, 'row')} left out{line}: no age, no end that is "
            "known, or not watched before it left."
        )
    if found.causes:
        yield (
            "Shares by cause add up to those that died. What one cause less would spare is an "
            "upper bound: a part that is weak against one may be weak against another."
        )
    yield from found.notes
    if len(found.groups) > MOST_GROUPS:
        yield f"{len(found.groups) - MOST_GROUPS:,} more groups are in JSON."
    best, weibull = (
        found.fits[0] if found.fits else None,
        next((fit for fit in found.fits if fit.family == "Weibull"), None),
    )
    if best and weibull and weibull.aic - best.aic > CLEARLY:
        yield (
            f"A {best.family} curve describes the lives better than the Weibull whose shape is "
            f"read out (AIC {weibull.aic - best.aic:,.0f} lower): the hazard may turn with age, or "
            "groups of several kinds are mixed."
        )
    yield "Bounds of the curve are those of log(-log S) with Greenwood's variance."


def _record(found: Lifetimes) -> dict[str, Any]:
    curve, lives, ages = found.curve, found.lives, _ages(found)
    hazard, shape = hazard_of(found.fits)
    return {
        "unit": found.unit or None,
        "n": lives.n,
        "n_deaths": lives.n_deaths,
        "n_left_out": found.left_out,
        "exposure": lives.exposure,
        "rate": lives.rate(curve.conf_level) if found.kind.rate is not None else None,
        "median_life": curve.quantile(0.5),
        "restricted_mean": curve.restricted_mean(),
        "hazard": hazard,
        "shape": shape,
        "ages": [asdict(row) for row in ages],
        "curve": {
            "age": curve.age.tolist(),
            "survival": curve.survival.tolist(),
            "lower": curve.lower.tolist(),
            "upper": curve.upper.tolist(),
            "cumulative_hazard": curve.cumulative_hazard.tolist(),
            "at_risk": curve.at_risk.tolist(),
            "deaths": curve.deaths.tolist(),
        },
        "hazard_by_age": None
        if found.pieces is None
        else {
            "family": "piecewise exponential",
            "aic": found.pieces.aic,
            "log_likelihood": found.pieces.log_likelihood,
            "pieces": [asdict(piece) for piece in found.pieces.pieces],
        },
        "families": [
            {
                "family": fit.family,
                "parameters": dict(fit.parameters),
                "log_likelihood": fit.log_likelihood,
                "aic": fit.aic,
            }
            for fit in found.fits
        ],
        "causes": [_cause_record(cause, [row.age for row in ages]) for cause in found.causes],
        "groups": [
            asdict(group) | ({"rate": None} if found.kind.rate is None else {})
            for group in found.groups
        ],
        "groups_at": found.groups_at,
        "log_rank": None if found.test is None else asdict(found.test),
        "conf_level": curve.conf_level,
        **({} if found.sight is None else sight.record(found.sight)),
    }


def _cause_record(cause: Cause, ages: Sequence[float]) -> dict[str, Any]:
    """A cause: its steps, and what it does at round ages."""
    incidence = cause.incidence
    return {
        "cause": incidence.cause,
        "n_deaths": incidence.n_deaths,
        "age": incidence.age.tolist(),
        "incidence": incidence.incidence.tolist(),
        "by_age": [
            {
                "age": age,
                "incidence": incidence.at(age),
                "survival_without": cause.without.at(age),
            }
            for age in ages
        ],
        "gray": None if cause.test is None else asdict(cause.test),
    }


def _time(found: Lifetimes, age: float) -> str:
    return f"{numbers.number(age)} {found.unit}".strip()


def _exposure(found: Lifetimes) -> str:
    """Time in which all were watched together."""
    unit = f"{found.kind.item}-{found.unit}" if found.unit else "units of time"
    return f"{numbers.number(found.lives.exposure)} {unit}"


def _unit_of_rate(found: Lifetimes) -> str:
    return f"per {found.unit.removesuffix('s')}" if found.unit else "per unit of time"
