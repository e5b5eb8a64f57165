"""Questions about lives: of parts by a table, and of nodes in the jobs of a store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analytics.estimate import CONF_LEVEL, Estimate
from analytics.reliability.competing_risks import (
    Incidence,
    cumulative_incidences,
    gray_test,
    without_cause,
)
from analytics.reliability.failure_rate import size_label
from analytics.reliability.hazard_by_age import Pieces, pieces
from analytics.reliability.lifetime_families import Fit, fits
from analytics.reliability.lifetimes import (
    Lives,
    LogRank,
    SurvivalCurve,
    kaplan_meier,
    log_rank,
    unlike_others,
)
from app.answers.reliability import sight
from app.words import numbers
from app.words.glossary import of_reliability
from data.ingest.readers.tables.lives import LifeColumns, LifeFile, read_lives
from data.queries.lifetimes import NAMES, node_lives

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from analytics.reliability.lifetime_families import Hazard
    from analytics.reliability.sight import Sight
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
CLEARLY = 10.0
"""AIC by which one family beats another beyond doubt (Burnham and Anderson 2002, section 2.6)."""


@dataclass(frozen=True)
class Kind:
    """What lives, and the words for it."""

    item: str
    noun: str
    nouns: str
    death: str
    die: str
    died: Term
    rate: Term | None
    """Of deaths per time; None where another answer gives it."""
    median: Term
    mean: Term
    hazard: Mapping[Hazard, str]


PARTS = Kind(
    item="part",
    noun="part",
    nouns="parts",
    death="death",
    die="die",
    died=of_reliability.DEATHS,
    rate=of_reliability.DEATH_RATE,
    median=of_reliability.MEDIAN_LIFE,
    mean=of_reliability.MEAN_LIFE,
    hazard={
        "infant mortality": "the young die sooner: infant mortality",
        "wear-out": "the old die sooner: wear-out",
        "even": "age makes no difference",
        "too little to tell": "whether age matters cannot be told",
    },
)
NODES = Kind(
    item="node",
    noun="node in a job",
    nouns="nodes in jobs",
    death="failure",
    die="fail",
    died=of_reliability.FAILED_RUNNING,
    rate=None,  # the page and the command MTTF give it, with the interval that storms widen
    median=of_reliability.MEDIAN_TO_FAILURE,
    mean=of_reliability.MEAN_TO_FAILURE,
    hazard={
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
class Cause:
    """What some parts died of."""

    incidence: Incidence
    without: SurvivalCurve
    """Survival if it had ended none."""
    test: LogRank | None
    """Whether groups differ in it."""


@dataclass(frozen=True)
class Lifetimes:
    """How long parts or attempts live."""

    kind: Kind
    unit: str
    lives: Lives
    curve: SurvivalCurve
    fits: tuple[Fit, ...]
    pieces: Pieces | None
    """The hazard at several ages; None where too few died."""
    groups: tuple[Group, ...]
    groups_at: float | None
    """Age up to which every group was watched."""
    test: LogRank | None
    left_out: int
    """Rows that say no life."""
    rejected_at: int | None
    """Line of the first of them that could not be read."""
    notes: tuple[str, ...]
    causes: tuple[Cause, ...] = ()
    sight: Sight | None = None
    """On which days failures of attempts could be seen; None of a table, which says who died."""


def of_file(
    name: str,
    columns: LifeColumns,
    *,
    unit: str | None = None,
    conf_level: float = CONF_LEVEL,
) -> Lifetimes:
    """How long the parts of a table live.

    Raises
    ------
    DataError
        Where it cannot be read or holds no life.
    """
    file = read_lives(name, columns)
    lives = Lives.of(file.age, file.died, file.since)
    unit = unit or next((u for u in UNITS if u in file.column.casefold()), "")
    found = _found(PARTS, unit, lives, file.group, conf_level)
    return replace(
        found,
        left_out=file.n_rejected + lives.n_left_out,
        rejected_at=file.rejected_at,
        causes=tuple(_causes(file, lives, conf_level)),
        notes=() if file.since is not None else (FROM_THE_START,),
    )


def _causes(file: LifeFile, lives: Lives, conf_level: float) -> Iterator[Cause]:
    """Each cause with what would be without it, and whether groups differ in it."""
    if file.cause is None:
        return
    of_row = np.array(file.cause, dtype=object)[lives.rows]
    group = None if file.group is None else np.array(file.group, dtype=object)[lives.rows]
    for found in cumulative_incidences(lives, of_row.tolist(), conf_level=conf_level):
        own = of_row == found.cause
        without = kaplan_meier(
            without_cause(lives, of_row.tolist(), found.cause), conf_level=conf_level
        )
        named = [] if group is None else sorted({each for each in group if each is not None})
        test = gray_test([(lives.some(group == name), own[group == name]) for name in named])
        yield Cause(found, without, test)


FROM_THE_START = (
    "Every part counts as watched from age 0. Where records begin later, name the age at which "
    "each part was first watched (--since-age): those that died before were never seen."
)
UNKNOWN_NODES = "{} left out: how many GPUs a node has is not known there."
ONE_NODE = (
    "Nodes of one attempt run alike and a failure is that of one of them: of a job of N nodes the "
    "share without failure is that of a node to the power of N."
)
UNEXPLAINED = (
    "Attempts that failed for an unknown cause count as ends without failure: where many did, "
    "nodes may run shorter."
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
    blind = seen.none | np.isin(rows["cluster"], seen.blind)
    rows = {name: column[~blind] for name, column in rows.items()}
    ran, since = (rows[name] / 3600.0 for name in ("ran_s", "since_s"))
    lives = Lives.of(ran, rows["failures"], since, rows["nodes"])
    names = None
    if by != "none":
        names = [size_label(int(name)) if by == "size" else name for name in rows["name"].tolist()]
    unknown = int(rows["attempts"][np.isnan(rows["nodes"])].sum())
    left_out = (UNKNOWN_NODES.format(numbers.counted(unknown, "attempt")),) if unknown else ()
    notes = (*sight.notes(seen, "how long nodes run"), *left_out, ONE_NODE, UNEXPLAINED, TOGETHER)
    return replace(_found(NODES, "hours", lives, names, conf_level), notes=notes, sight=seen)


def _found(
    kind: Kind, unit: str, lives: Lives, names: Sequence[str | None] | None, conf_level: float
) -> Lifetimes:
    """The curve, its families and the groups by the names of the rows that lives were made of."""
    named = np.array([None] * len(lives.exit) if names is None else names, dtype=object)
    named = named if names is None else named[lives.rows]
    parts = {
        name: lives.some(named == name)
        for name in sorted({each for each in named if each is not None})
    }
    at = min((float(part.exit.max()) for part in parts.values()), default=None)
    return Lifetimes(
        kind,
        unit,
        lives,
        kaplan_meier(lives, conf_level=conf_level),
        fits(lives, conf_level=conf_level),
        pieces(lives, conf_level=conf_level),
        tuple(_groups(parts, at, conf_level)),
        at,
        log_rank([*parts.values()]),
        0,
        None,
        (),
    )


def _groups(parts: dict[str, Lives], at: float | None, conf_level: float) -> Iterator[Group]:
    """Each group beside all others, the most deaths first."""
    listed = zip(parts.items(), unlike_others([*parts.values()]), strict=True)
    for (name, lives), differs in sorted(listed, key=lambda row: -row[0][1].n_deaths):
        yield Group(
            name,
            lives.n,
            lives.n_deaths,
            lives.rate(conf_level),
            kaplan_meier(lives, conf_level=conf_level).at(at or 0.0),
            differs,
        )
