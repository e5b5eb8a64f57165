"""How long do parts live, and do they fail young, at any age, or as they wear out?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.estimate import CONF_LEVEL, Estimate
from analytics.nodes.chance import discoveries
from analytics.reliability.failure_rate import size_label
from analytics.reliability.lifetime_families import FEWEST, Fit, fits, hazard_of
from analytics.reliability.lifetimes import Lives, LogRank, SurvivalCurve, kaplan_meier, log_rank
from app.answers.content import Answer, Chart, Number, composed, counted
from app.answers.described import Field, Rows, field
from app.answers.reliability import sight
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_reliability
from data.ingest.readers.tables.lives import read_lives
from data.queries.lifetimes import NAMES, node_lives

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from analytics.arrays import Bools
    from analytics.reliability.lifetime_families import Hazard
    from analytics.reliability.sight import Sight
    from app.answers.content import Block
    from app.words.terms import Term
    from data.filters import Selection
    from data.store import Store

UNITS = ("seconds", "minutes", "hours", "days", "weeks", "months", "years")
WHICH = "How long nodes run in jobs until a failure"
BY = tuple(NAMES)
"""What attempts can be told apart by."""
MOST_AGES = 8
"""Ages of the table."""
MOST_GROUPS = 50
FALSE_ALARMS = 0.05
CLEARLY = 10.0
"""AIC by which one family beats another beyond doubt (Burnham and Anderson 2002, section 2.6)."""


@dataclass(frozen=True)
class Kind:
    """What lives, and the words for it."""

    noun: str
    nouns: str
    death: str
    die: str
    terms: tuple[Term, Term, Term, Term]
    """Of those that died, of deaths per time, of the median and of the restricted mean."""
    hazard: Mapping[Hazard, str]


PARTS = Kind(
    "part",
    "parts",
    "death",
    "die",
    (
        of_reliability.DEATHS,
        of_reliability.DEATH_RATE,
        of_reliability.MEDIAN_LIFE,
        of_reliability.MEAN_LIFE,
    ),
    {
        "infant mortality": "the young die sooner: infant mortality",
        "wear-out": "the old die sooner: wear-out",
        "even": "age makes no difference",
        "too little to tell": "whether age matters cannot be told",
    },
)
NODES = Kind(
    "node in a job",
    "nodes in jobs",
    "failure",
    "fail",
    (
        of_reliability.FAILED_RUNNING,
        of_reliability.FAILED_PER_HOUR,
        of_reliability.MEDIAN_TO_FAILURE,
        of_reliability.MEAN_TO_FAILURE,
    ),
    {
        "infant mortality": "failures come early: at start-up, or on bad nodes",
        "wear-out": "the longer a job runs, the sooner its nodes fail",
        "even": "how long a job has run makes no difference",
        "too little to tell": "whether running time matters cannot be told",
    },
)


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
class Lifetimes:
    """How long parts or attempts live."""

    kind: Kind
    unit: str
    lives: Lives
    curve: SurvivalCurve
    fits: tuple[Fit, ...]
    groups: tuple[Group, ...]
    groups_at: float | None
    """Age up to which every group was watched."""
    test: LogRank | None
    left_out: int
    """Rows that say no life."""
    rejected_at: int | None
    """Line of the first of them that could not be read."""
    notes: tuple[str, ...]
    sight: Sight | None = None
    """On which days failures of attempts could be seen; None of a table, which says who died."""


def of_file(
    name: str,
    *,
    age: str | None = None,
    died: str | None = None,
    since: str | None = None,
    by: str | None = None,
    unit: str | None = None,
    conf_level: float = CONF_LEVEL,
) -> Lifetimes:
    """How long the parts of a table live.

    Raises
    ------
    DataError
        Where it cannot be read or holds no life.
    """
    file = read_lives(name, age=age, died=died, since=since, group=by)
    lives = Lives.of(file.age, file.died, file.since)
    found = _found(
        PARTS,
        unit or next((u for u in UNITS if u in file.column.casefold()), ""),
        lives,
        file.group,
        lambda own: Lives.of(
            file.age[own], file.died[own], None if file.since is None else file.since[own]
        ),
        conf_level,
    )
    return replace(
        found,
        left_out=file.n_rejected + lives.n_left_out,
        rejected_at=file.rejected_at,
        notes=() if file.since is not None else (FROM_THE_START,),
    )


FROM_THE_START = (
    "Every part counts as watched from age 0. Where records begin later, name the age at which "
    "each part was first watched (--since-age): those that died before were never seen."
)
ONE_NODE = (
    "Nodes of one attempt run alike and a failure is that of one of them: of a job of N nodes the "
    "share without failure is that of a node to the power of N."
)
TOGETHER = (
    "Attempts that one incident ended count as independent: intervals are too narrow where "
    "failures come together."
)


def of_nodes(
    store: Store, selection: Selection, by: str = "none", *, conf_level: float = CONF_LEVEL
) -> Lifetimes:
    """How long a node runs in a job until a failure that counts; all other ends are censored.

    All nodes of an attempt run alike, and a failure is that of one: else long runs, which are
    large, would look as if time wore them out.
    """
    rows, seen = node_lives(store, selection, by), sight.sight(store, selection)
    if seen.none:
        rows = {name: column[:0] for name, column in rows.items()}
    ran, since = (rows[name] / 3600.0 for name in ("ran_s", "since_s"))
    failures, nodes = rows["failures"], rows["nodes"]
    names = [size_label(int(n)) for n in rows["name"]] if by == "size" else rows["name"].tolist()
    lives = Lives.of(ran, failures, since, nodes)
    found = _found(
        NODES,
        "hours",
        lives,
        None if by == "none" else names,
        lambda own: Lives.of(ran[own], failures[own], since[own], nodes[own]),
        conf_level,
    )
    return replace(found, notes=(ONE_NODE, TOGETHER), sight=seen)


def _found(
    kind: Kind,
    unit: str,
    lives: Lives,
    names: Sequence[str | None] | None,
    some: Callable[[Bools], Lives],
    conf_level: float,
) -> Lifetimes:
    """The curve, its families and the groups by the names of rows."""
    named = np.array(names or (), dtype=object)
    parts = {}
    for name in sorted({str(each) for each in named if each is not None}):
        part = some(np.asarray(named == name, dtype=bool))
        if part.n:
            parts[name] = part
    at = min((float(part.exit.max()) for part in parts.values()), default=None)
    return Lifetimes(
        kind,
        unit,
        lives,
        kaplan_meier(lives, conf_level=conf_level),
        fits(lives, conf_level=conf_level),
        tuple(_groups(parts, at, conf_level)),
        at,
        log_rank([*parts.values()]),
        0,
        None,
        (),
    )


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
        most = lives.rate(curve.conf_level).upper
        return (
            f"No {kind.death} of {parts} in {_time(found, lives.exposure)}: at most "
            f"{numbers.number(most)} {_unit_of_rate(found)}."
        )
    hazard = kind.hazard[hazard_of(found.fits)[0]]
    half = curve.quantile(0.5)
    if half.value is not None:
        return f"Half of {parts} {kind.die} within {_time(found, half.value)}; {hazard}."
    last = _ages(found)[-1]
    share = numbers.percent(last.survival.value)
    return f"{share} of {parts} do not {kind.die} within {_time(found, last.age)}; {hazard}."


def _headlines(found: Lifetimes) -> Iterator[Number]:
    curve, lives, kind = found.curve, found.lives, found.kind
    died, rate, median, mean = kind.terms
    if found.sight is not None and found.sight.none:
        yield from (sight.number(term) for term in (*kind.terms, of_reliability.SHAPE))
        return
    watched = f"in {_time(found, lives.exposure)}, the longest {_time(found, curve.last)}"
    yield counted(died, lives.n_deaths, of=lives.n, noun=kind.nouns, basis=watched)
    for term, value, unit in (
        (rate, lives.rate(curve.conf_level), "" if found.sight else _unit_of_rate(found)),
        (median, curve.quantile(0.5), found.unit),
        (mean, curve.restricted_mean(), found.unit),
    ):
        yield _measured(term, value, unit, kind)
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


def _group_columns(found: Lifetimes) -> tuple[Column | Field, ...]:
    kind = found.kind
    deaths = f"{kind.death.capitalize()}s"
    at = "" if found.groups_at is None else f" for {_time(found, found.groups_at)}"
    return (
        Column("name", "Group"),
        Column("lives", kind.nouns.capitalize(), "count"),
        Column("deaths", deaths, "count"),
        field("rate", f"{deaths} {_unit_of_rate(found)}", "number", "rate.value"),
        field("rate_interval", "Interval", of=lambda group: numbers.interval(group.rate)),
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
    if found.groups:
        yield Rows(_group_columns(found), found.groups[:MOST_GROUPS]).table("groups", "Groups")


@dataclass(frozen=True)
class _Described:
    """One row of the table of families."""

    family: str
    parameters: Mapping[str, Estimate]
    aic: float
    more: float


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
            "others together, at a false-discovery rate of 5 %."
        )
    if found.left_out:
        line = "" if found.rejected_at is None else f", the first of line {found.rejected_at}"
        yield (
            f"{numbers.counted(found.left_out, 'row')} left out{line}: no age, no end that is "
            "known, or not watched before it left."
        )
    yield from found.notes
    if len(found.groups) > MOST_GROUPS:
        yield f"{len(found.groups) - MOST_GROUPS:,} more groups are in JSON."
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
    yield "Bounds of the curve are those of log(-log S) with Greenwood's variance."


def _record(found: Lifetimes) -> dict[str, Any]:
    curve, lives = found.curve, found.lives
    hazard, shape = hazard_of(found.fits)
    return {
        "unit": found.unit or None,
        "n": lives.n,
        "n_deaths": lives.n_deaths,
        "n_left_out": found.left_out,
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
        **({} if found.sight is None else sight.record(found.sight)),
    }


def _time(found: Lifetimes, age: float) -> str:
    return f"{numbers.number(age)} {found.unit}".strip()


def _unit_of_rate(found: Lifetimes) -> str:
    return f"per {found.unit.removesuffix('s')}" if found.unit else "per unit of time"
