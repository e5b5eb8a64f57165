"""Ranks of a run that may compute wrongly, by the series that each of them logged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from analytics.errors import OutOfRangeError, ShapeError
from analytics.training import rank_comparison
from analytics.training.indicator_names import INDICATORS, indicator
from analytics.training.rank_table import Table
from analytics.training.replica_sight import not_compared

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.arrays import Floats
    from analytics.training.indicator_names import Indicator
    from analytics.training.replica_sight import NotCompared

Grade = Literal["proof", "strong", "weak"]
Verdict = Literal["suspects", "none", "not_ruled_out", "cannot_be_judged"]
GRADES: Final[tuple[Grade, ...]] = ("proof", "strong", "weak")
FALSE_ALARMS: Final = 0.01
"""Chance that a sound run has a suspect, over all ranks, steps and series."""
ALIKE: Final = 0.95
"""Share of the steps in which ranks log the same number, from which it is one by construction."""
LEAST_RANKS: Final = 4
"""Ranks from which one can stand out against the scatter of the others."""
LEAST_ALIKE: Final = 20
"""Steps from which a number that ranks log alike is one by construction."""
OFTEN: Final = 3
"""Steps from which what one rank shows is more than a slip or one bad batch."""


@dataclass(frozen=True)
class Logged:
    """One series as it was logged.

    Attributes
    ----------
    name
        As the logger writes it.
    steps, ranks : numpy.ndarray of float, shape (rows,)
        In the order of time. A rank of NaN is not told.
    values : numpy.ndarray, shape (rows,)
        Numbers, NaN and infinite where that was logged; or of checksums their texts, which are
        compared and never read as numbers.
    attempts
        Number of the attempt that logged each row: ranks are compared within one. None where
        unknown; a step that some ranks log more often than others is then left out.
    """

    name: str
    steps: Floats
    ranks: Floats
    values: np.ndarray
    attempts: Floats | None = None


@dataclass(frozen=True)
class Suspect:
    """Ranks to test again: the one, or where two sides contradict each other one of them."""

    ranks: tuple[int, ...]
    since_step: int
    series: str
    indicator: Indicator
    grade: Grade
    kind: str
    """differs: from replicas that it must equal; never_equal: so in every step; shifted: away from
    the others, and it stays; out: far outside the scatter of the others; not_finite: alone NaN or
    infinite."""
    n_steps: int
    """In which it does, of those compared."""
    p_value: float | None
    """Chance of one such rank in the whole run, over ranks, steps and series; None where no chance
    is in it: numbers that must be equal are not."""
    n_compared: int
    """Values of the series that were compared."""


@dataclass(frozen=True)
class Judged:
    """A series that was looked at."""

    series: str
    indicator: Indicator
    way: str
    """replicas: must be equal; alike: is equal by construction; apart: may differ, and scatters."""
    n_ranks: int
    """That are compared; of checksums, those with a replica."""
    n_steps: int


@dataclass(frozen=True)
class NotSeen:
    """An indicator that says nothing here, and so what cannot be seen."""

    indicator: Indicator
    why: str
    """not_logged; one_rank; few_ranks; few_steps; alike: it says nothing of a rank's own work;
    shards: checksums that never agree."""


@dataclass(frozen=True)
class Corruption:
    """What the logged series say of silent corruption."""

    suspects: tuple[Suspect, ...]
    """The surest first."""
    judged: tuple[Judged, ...]
    not_seen: tuple[NotSeen, ...]
    not_compared: tuple[NotCompared, ...]
    """Ranks and steps that checksums of replicas say nothing of, where they are compared at all."""
    false_alarms: float

    @property
    def verdict(self) -> Verdict:
        """In a word: without checksums of replicas, of every rank and throughout, nothing is ruled
        out."""
        if self.suspects:
            return "suspects"
        if not self.judged:
            return "cannot_be_judged"
        compared = any(one.way == "replicas" for one in self.judged)
        return "none" if compared and not self.not_compared else "not_ruled_out"


def suspects(logged: Sequence[Logged], *, false_alarms: float = FALSE_ALARMS) -> Corruption:
    """Ranks to test again, with the grade of the evidence, and what could not be seen.

    Three ways to compare ranks within a step of an attempt. Checksums of replicas must be equal:
    one that is not is proof, whatever the rest says; one that never was is strong, since it may be
    made of something else. A number that all ranks log alike (95 % of the steps and more) is one by
    construction, as the norm of the averaged gradient is: a rank that logs another one is a strong
    suspect, from three steps on. Two numbers within the last digit that is logged are one there,
    and where more than one rank in eight logs others all are weak. What differs by construction, as
    the loss of each rank's own tokens, has a scatter: there a rank is a suspect where it moves away
    from the others and stays (`rank_comparison.shifted`), or lies far outside of it
    (`rank_comparison.outside`), once weak, three times strong. A rank that logs no finite number in
    a whole series, as stages of a pipeline without a loss, takes no part in it.

    The chance of a false suspect is shared out evenly over the series and the two tests of each
    (Bonferroni); within a test it holds over all ranks and steps.

    Parameters
    ----------
    logged
        Series as they were logged; those that are no indicator are left out.
    false_alarms : float
        In (0, 1).

    Raises
    ------
    OutOfRangeError
        For a chance outside (0, 1).
    ShapeError
        Where columns of a series differ in length.

    Notes
    -----
    Misleads where a rank's data change for good at some step (a new source on one rank alone), and
    where ranks do not log the same step of the same run. Says nothing of what all ranks do alike:
    a flip before the average over ranks moves all replicas together.

    References
    ----------
    He et al. (2025), arXiv 2502.12340: losses look alike while parameters drift apart.

    Examples
    --------
    >>> steps, ranks = np.repeat(np.arange(3.0), 4), np.tile(np.arange(4.0), 3)
    >>> sums = np.array(["a"] * 4 + ["b"] * 4 + ["c", "c", "x", "c"], dtype=object)
    >>> (found,) = suspects([Logged("param_hash", steps, ranks, sums)]).suspects
    >>> found.ranks, found.since_step, found.grade
    ((2,), 2, 'proof')
    """
    if not 0 < false_alarms < 1:
        raise OutOfRangeError("false_alarms", "in (0, 1)", false_alarms, "pass e.g. 0.01")
    known = [(each, kind) for each in logged if (kind := indicator(each.name)) is not None]
    tables = [(_table(each, kind), each.name, kind) for each, kind in known]
    apart = sum(_way(table, kind) == "apart" for table, _, kind in tables)
    chance = false_alarms / (2 * max(apart, 1))
    found: list[Suspect] = []
    judged: list[Judged] = []
    unseen: dict[Indicator, str] = {}
    for table, name, kind in tables:
        way = _way(table, kind)
        if way in ("replicas", "alike", "apart"):
            judged.append(_judged(table, name, kind, way))
            found += _of_series(table, name, kind, way, chance)
        if way != "replicas" and way != "apart":
            unseen.setdefault(kind, way)
    seen = {one.indicator for one in judged if one.way != "alike"}
    missing = [kind for kind in INDICATORS if kind not in seen]
    return Corruption(
        tuple(sorted(found, key=lambda one: (GRADES.index(one.grade), one.since_step, one.ranks))),
        tuple(judged),
        tuple(NotSeen(kind, unseen.get(kind, "not_logged")) for kind in missing),
        _not_compared(tables, [each for each, _ in known]),
        false_alarms,
    )


def _judged(table: Table, name: str, kind: Indicator, way: str) -> Judged:
    """A series with the ranks and steps of it that are compared."""
    n_ranks, n_steps = len(table.ranks), len(np.unique(table.steps))
    if way == "replicas":
        n_ranks = int(table.compared.any(axis=0).sum())
        n_steps = len(np.unique(table.steps[table.compared.any(axis=1)]))
    if way == "apart" and table.whole is not None:
        steps, ranks = table.whole
        n_ranks, n_steps = len(ranks), len(np.unique(table.steps[steps]))
    return Judged(name, kind, way, n_ranks, n_steps)


def _not_compared(
    tables: Sequence[tuple[Table, str, Indicator]], logged: Sequence[Logged]
) -> tuple[NotCompared, ...]:
    """What checksums say nothing of, by all that is logged of ranks and steps."""
    sums = [table for table, _, kind in tables if _way(table, kind) == "replicas"]
    if not sums:
        return ()
    steps = np.unique(np.concatenate([np.unique(each.steps) for each in logged]))
    return not_compared(sums, steps, np.concatenate([np.unique(each.ranks) for each in logged]))


def _table(logged: Logged, kind: Indicator) -> Table:
    """A series as a table of steps and ranks; of numbers without ranks that log none."""
    attempts = np.zeros(len(logged.steps)) if logged.attempts is None else logged.attempts
    lengths = {len(logged.steps), len(logged.ranks), len(logged.values), len(attempts)}
    if len(lengths) > 1:
        raise ShapeError(
            f"columns of {logged.name} differ in length ({sorted(lengths)}): pass a row each"
        )
    values, exact = logged.values, kind == "checksum"
    told = np.isfinite(logged.ranks) & np.isfinite(logged.steps)
    if values.dtype == object:
        told &= np.array([value is not None for value in values], dtype=bool)
    if exact:
        values = np.where(told, values, "").astype(str)
        values = np.unique(values, return_inverse=True)[1].astype(np.float64)
    else:
        told &= np.isin(logged.ranks, logged.ranks[np.isfinite(values)])
    return Table.of(
        logged.steps[told], logged.ranks[told], values[told], attempts[told], exact=exact
    )


def _way(table: Table, kind: Indicator) -> str:
    """How ranks can be compared in a series, or why they cannot."""
    if len(table.ranks) < 2:
        return "one_rank"
    equal = table.equal_ratio
    if equal is None:
        return "one_rank"
    if kind == "checksum":
        return "replicas" if table.replicas else "shards"
    if equal >= ALIKE:
        return "alike" if len(table.steps) >= LEAST_ALIKE else "few_steps"
    if len(table.ranks) < LEAST_RANKS:
        return "few_ranks"
    return "apart" if table.whole is not None else "few_steps"


def _of_series(
    table: Table, name: str, kind: Indicator, way: str, chance: float
) -> Iterator[Suspect]:
    """Suspects by one series."""

    def suspect(one: rank_comparison.Odd, grade: Grade) -> Suspect:
        return Suspect(
            one.ranks, one.since_step, name, kind, grade, one.kind, one.n_steps, one.p_value,
            int(table.present.sum()),
        )  # fmt: skip

    def often(one: rank_comparison.Odd) -> Grade:
        return "strong" if one.n_steps >= OFTEN else "weak"

    if way == "replicas":
        for one in rank_comparison.differing(table, table.replicas):
            yield suspect(one, often(one) if one.kind == "never_equal" else "proof")
        return
    if way == "alike":
        odd = list(rank_comparison.differing(table, None))
        many = len(odd) > max(1, len(table.ranks) // rank_comparison.FEW)
        for one in odd:
            yield suspect(one, "weak" if many else often(one))
        return
    for one in rank_comparison.not_finite(table):
        yield suspect(one, often(one))
    moved = list(rank_comparison.shifted(table, chance))
    for one in moved:
        yield suspect(one, "strong")
    stays = {rank for one in moved for rank in one.ranks}
    for one in rank_comparison.outside(table, chance, stays):
        yield suspect(one, often(one))
