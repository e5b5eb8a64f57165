"""How long do parts live, and do they fail young, at any age, or as they wear out?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.estimate import CONF_LEVEL, Estimate
from analytics.nodes.chance import discoveries
from analytics.reliability.lifetime_families import FEWEST, Fit, fits, hazard_of
from analytics.reliability.lifetimes import Lives, LogRank, SurvivalCurve, kaplan_meier, log_rank
from app.answers.content import Answer, Number, Table, composed, counted
from app.answers.described import Rows, field
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_reliability
from data.ingest.readers.tables.lives import LifeFile, read_lives

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from analytics.reliability.lifetime_families import Hazard

UNITS = ("seconds", "minutes", "hours", "days", "weeks", "months", "years")
MOST_AGES = 8
"""Ages of the table."""
MOST_GROUPS = 50
FALSE_ALARMS = 0.05
IN_WORDS: Mapping[Hazard, str] = {
    "infant mortality": "the young die sooner: infant mortality",
    "wear-out": "the old die sooner: wear-out",
    "even": "age makes no difference",
    "too little to tell": "whether age matters cannot be told",
}


@dataclass(frozen=True)
class Group:
    """Lives of one group."""

    name: str
    lives: int
    deaths: int
    rate: Estimate
    """Deaths per unit of time watched."""
    survival: Estimate
    """At the age that the table of groups names."""
    differs: bool | None
    """Whether it lives otherwise than all others, at a false-discovery rate of 5 %; None where that
    cannot be told."""


@dataclass(frozen=True)
class Examined:
    """What the lives of a file show."""

    file: LifeFile
    unit: str
    lives: Lives
    curve: SurvivalCurve
    fits: tuple[Fit, ...]
    groups: tuple[Group, ...]
    groups_at: float | None
    """Age up to which every group was watched."""
    test: LogRank | None
    n_groups: int


def examined(
    name: str,
    *,
    age: str | None = None,
    died: str | None = None,
    since: str | None = None,
    by: str | None = None,
    unit: str | None = None,
    conf_level: float = CONF_LEVEL,
) -> Examined:
    """How long the parts of a file live.

    Raises
    ------
    DataError
        Where it cannot be read or holds no life.
    """
    file = read_lives(name, age=age, died=died, since=since, group=by)
    lives = Lives.of(file.age, file.died, file.since)
    named = np.array(file.group or (), dtype=object)
    parts = {
        str(group): lives_of
        for group in sorted({str(g) for g in named if g is not None})
        if (lives_of := _some(file, named == group)).n
    }
    groups_at = min((float(part.exit.max()) for part in parts.values()), default=None)
    return Examined(
        file,
        unit or next((u for u in UNITS if u in file.column.casefold()), ""),
        lives,
        kaplan_meier(lives, conf_level=conf_level),
        fits(lives, conf_level=conf_level),
        tuple(_groups(parts, groups_at, conf_level)),
        groups_at,
        log_rank([*parts.values()]),
        len(parts),
    )


def _some(file: LifeFile, which: Any) -> Lives:
    """Lives of some rows of a file."""
    since = None if file.since is None else file.since[which]
    return Lives.of(file.age[which], file.died[which], since)


def _groups(parts: dict[str, Lives], at: float | None, conf_level: float) -> Iterator[Group]:
    """Each group beside all others, the most deaths first."""
    tests = (
        [
            log_rank([one, Lives.joined([parts[other] for other in parts if other != name])])
            for name, one in parts.items()
        ]
        if len(parts) > 1
        else [None] * len(parts)
    )
    told = discoveries(np.array([t.p_value if t else 1.0 for t in tests]), FALSE_ALARMS)
    listed = zip(parts.items(), tests, told.tolist(), strict=True)
    for (name, lives), test, differs in sorted(listed, key=lambda row: -row[0][1].n_deaths):
        yield Group(
            name,
            lives.n,
            lives.n_deaths,
            lives.rate(conf_level),
            kaplan_meier(lives, conf_level=conf_level).at(at or 0.0),
            differs if test is not None else None,
        )


def answer(found: Examined) -> Answer:
    """The curve, the family that describes it best, and groups."""
    return Answer(
        _sentence(found),
        tuple(_headlines(found)),
        tuple(_blocks(found)),
        notes=tuple(_notes(found)),
        record=_record(found),
        sheet=Rows(AGES, _ages(found)).sheet(),
    )


def _sentence(found: Examined) -> str:
    curve, lives = found.curve, found.lives
    parts = numbers.counted(lives.n, "part")
    if not lives.n:
        return "No life can be judged: no row has an age at which it was watched."
    if not lives.n_deaths:
        return (
            f"None of {parts} died in {_time(found, lives.exposure)}: "
            f"at most {_per(found, lives.rate(curve.conf_level).upper)}."
        )
    hazard = IN_WORDS[hazard_of(found.fits)[0]]
    half = curve.quantile(0.5)
    if half.value is not None:
        return f"Half of {parts} die within {_time(found, half.value)}; {hazard}."
    last = _ages(found)[-1]
    share = numbers.percent(last.survival.value)
    return f"{share} of {parts} live longer than {_time(found, last.age)}; {hazard}."


def _headlines(found: Examined) -> Iterator[Number]:
    curve, lives = found.curve, found.lives
    watched = f"watched for {_time(found, lives.exposure)}, up to an age of {curve.last:,.4g}"
    yield counted(of_reliability.DEATHS, lives.n_deaths, of=lives.n, noun="parts", basis=watched)
    yield _measured(of_reliability.DEATH_RATE, lives.rate(curve.conf_level), _unit_of_rate(found))
    yield _measured(of_reliability.MEDIAN_LIFE, curve.quantile(0.5), found.unit)
    yield _measured(of_reliability.MEAN_LIFE, curve.restricted_mean(), found.unit)
    hazard, shape = hazard_of(found.fits)
    if shape is None:
        fewer = f"fewer than {FEWEST} deaths, or all at one age"
        yield composed(of_reliability.SHAPE, numbers.UNKNOWN, fewer)
    else:
        yield _measured(of_reliability.SHAPE, shape, "", says=hazard)


def _measured(term: Any, estimate: Estimate, unit: str, *, says: str = "") -> Number:
    """A quantity in a unit of its own with its interval; the bound where only that is known."""
    interval = numbers.interval(estimate) if estimate.has_width else ""
    printed = numbers.number(estimate.value)
    if estimate.value is None and estimate.lower is not None:
        printed = f"above {numbers.number(estimate.lower)}"
    basis = "; ".join(filter(None, (interval, says, numbers.counted(estimate.n, "death"))))
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


AGES = (
    Column("age", "Age", "number"),
    Column("survival", "Live longer", "share"),
    Column("described", "By the best family", "ratio", none="no family"),
    Column("at_risk", "Watched then", "count"),
    Column("deaths", "Deaths up to then", "count"),
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
GROUPS = (
    Column("name", "Group"),
    Column("lives", "Parts", "count"),
    Column("deaths", "Deaths", "count"),
    field("rate", "Deaths per unit of time", "number", "rate.value"),
    field("rate_interval", "Interval", of=lambda group: numbers.interval(group.rate)),
    Column("survival", "Live longer", "share"),
    Column("differs", "Unlike all others", "flag", none="cannot be told"),
)


def _blocks(found: Examined) -> Iterator[Table]:
    yield Rows(AGES, _ages(found)).table("ages", "How many live how long", empty="No lives.")
    best = found.fits[0].aic if found.fits else 0.0
    rows = [_Described(fit.family, fit.parameters, fit.aic, fit.aic - best) for fit in found.fits]
    yield Rows(FITS, rows).table(
        "families",
        "Families that describe it",
        empty=f"None is fitted below {FEWEST} deaths at two ages.",
    )
    if found.file.group is not None:
        at = (
            ""
            if found.groups_at is None
            else f": who lives longer than {_time(found, found.groups_at)}"
        )
        yield Rows(GROUPS, found.groups[:MOST_GROUPS]).table(
            "groups", f"Groups{at}", empty="No row names a group."
        )


@dataclass(frozen=True)
class _Described:
    """One row of the table of families."""

    family: str
    parameters: Mapping[str, Estimate]
    aic: float
    more: float


def _ages(found: Examined) -> list[_Age]:
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


def _notes(found: Examined) -> Iterator[str]:
    if found.test is not None:
        yield (
            f"Did all groups live equally long, chance would set them as far apart with p = "
            f"{found.test.p_value:.2g} (log-rank, {found.test.df} df). Each is compared with all "
            "others together, at a false-discovery rate of 5 %."
        )
    left_out = found.file.n_rejected + found.lives.n_left_out
    if left_out:
        first = found.file.rejected_at
        line = "" if first is None else f", the first of line {first}"
        yield (
            f"{numbers.counted(left_out, 'row')} left out{line}: no age, no end that is known, or "
            "not watched before it left."
        )
    if found.file.since is None:
        yield (
            "Every part counts as watched from age 0. Where records begin later, name the age at "
            "which each part was first watched (--since-age): those that died before were never "
            "seen."
        )
    if found.n_groups > MOST_GROUPS:
        yield f"{found.n_groups - MOST_GROUPS:,} more groups are in JSON."
    best, weibull = (
        found.fits[0] if found.fits else None,
        next((fit for fit in found.fits if fit.family == "weibull"), None),
    )
    if best and weibull and weibull.aic - best.aic > CLEARLY:
        yield (
            f"A {best.family} curve describes the lives better than the Weibull whose shape is "
            f"read out (AIC {weibull.aic - best.aic:,.0f} lower): the hazard may turn with age, or "
            "groups of several kinds are mixed."
        )
    yield (
        "Bounds of the curve are those of log(-log S) with Greenwood's variance. Parts that died "
        "together count as independent."
    )


CLEARLY = 10.0
"""AIC by which one family beats another beyond doubt (Burnham and Anderson 2002, section 2.6)."""


def _record(found: Examined) -> dict[str, Any]:
    curve, lives = found.curve, found.lives
    hazard, shape = hazard_of(found.fits)
    return {
        "unit": found.unit or None,
        "n": lives.n,
        "n_deaths": lives.n_deaths,
        "n_left_out": found.file.n_rejected + lives.n_left_out,
        "exposure": lives.exposure,
        "rate": lives.rate(curve.conf_level),
        "median": curve.quantile(0.5),
        "restricted_mean": curve.restricted_mean(),
        "hazard": hazard,
        "shape": shape,
        "ages": [asdict(row) for row in _ages(found)],
        "curve": {
            "age": curve.age.tolist(),
            "survival": curve.survival.tolist(),
            "lower": curve.lower.tolist(),
            "upper": curve.upper.tolist(),
            "cumulative_hazard": curve.cumulative_hazard.tolist(),
            "at_risk": curve.at_risk.tolist(),
            "deaths": curve.deaths.tolist(),
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
        "groups": [asdict(group) for group in found.groups],
        "groups_at": found.groups_at,
        "log_rank": None if found.test is None else asdict(found.test),
        "conf_level": curve.conf_level,
    }


def _time(found: Examined, age: float) -> str:
    return f"{numbers.number(age)} {found.unit}".strip()


def _unit_of_rate(found: Examined) -> str:
    return f"per {found.unit.removesuffix('s')}" if found.unit else "per unit of time"


def _per(found: Examined, rate: float | None) -> str:
    return f"{numbers.number(rate)} {_unit_of_rate(found)}"
