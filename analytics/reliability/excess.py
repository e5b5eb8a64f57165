"""Whether more goes wrong than a target allows, or chance explains it, at each look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from analytics.errors import OutOfRangeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.arrays import Bools, Floats, Ints

TILTS: Final = (0.25, 0.5, 1.0, 2.0)
"""How strongly batches are weighed; the mean over all counts."""
BETS: Final = (0.1, 0.25, 0.5, 0.9)
"""Shares of the largest bet against a mean."""
MOST_BACK: Final = 672
"""Steps before a look from which an excess may have begun."""
LARGE: Final = 0.9
"""Quantile of the batches so far beyond which the size of one counts no more."""
FEWEST: Final = 5
"""Batches from which on their own sizes say what is large."""


class Evidence(NamedTuple):
    """Evidence at a look that more goes wrong than is allowed."""

    steps: float
    """Steps after which chance alone brings as much, on average: at least so many."""
    since: int
    """The step from which on the excess is most likely."""


class Judge(Protocol):
    """Evidence at the end of a step, by what is known then, of an excess since a step."""

    def __call__(self, look: int, since: int) -> Evidence:
        """Evidence at this look."""


@dataclass(frozen=True)
class Excess:
    """One time in which more went wrong than is allowed; steps."""

    since: int
    raised: int
    """At the end of this step it was told."""
    ended: int | None
    """At the end of this step it was calm; None while it is not."""


def excesses(burns: Bools, calm: Bools, judge: Judge, *, least_steps: float) -> list[Excess]:
    """Times that burn, and that chance does not explain.

    Parameters
    ----------
    burns, calm : numpy.ndarray of bool, shape (steps,)
        Where it is worth telling, and where what was told is over.
    judge
        Of :func:`of_batches` or :func:`of_shares`.
    least_steps
        Steps between two false alarms, at least, on average.

    Raises
    ------
    OutOfRangeError
        Where `least_steps` is not positive.
    """
    if not least_steps > 0:
        raise OutOfRangeError("least_steps", "> 0", least_steps, "pass e.g. 7200")
    found: list[Excess] = []
    at = floor = 0
    hot = np.flatnonzero(burns)
    while True:
        place = int(np.searchsorted(hot, at))
        if place >= len(hot):
            return found
        look = int(hot[place])
        evidence = judge(look, floor)
        at = look + 1
        if evidence.steps < least_steps:
            continue
        over = np.flatnonzero(calm[look + 1 :])
        ended = look + 1 + int(over[0]) if len(over) else None
        found.append(Excess(evidence.since, look, ended))
        if ended is None:
            return found
        at = floor = ended + 1


def of_batches(
    start: Ints,
    marks: Callable[[int], Floats],
    exposure: Floats,
    allowed: float,
    *,
    least: float,
    steps_of_cap: int = 24,
) -> Judge:
    r"""Evidence by what comes in batches: outages of nodes, failures of one incident.

    Batches come by chance, each with a size :math:`Y_b` (node-hours out, failures) that shows
    itself by and by. Where at most a per unit of exposure x is allowed on average,

    .. math:: L_s(t) = \exp \sum_{h = s + 1}^{t} \Big[ k \sum_{b \in h} \min(Y_b / c_h, 1)
        - \frac{a x_h (e^k - 1)}{c_h} \Big]

    has a mean of at most 1 for every s and k, as :math:`e^{k y} \le 1 + y (e^k - 1)` for y in
    [0, 1]. The sum :math:`R(t) = \sum_s L_s(t)` (Shiryaev and Roberts) reaches H after at least H
    steps on average while no more than allowed goes wrong, whatever the sizes of batches: so an
    alarm at H is false at most once in H steps. c is the 0.9-quantile of the sizes known before the
    day, so that one large event counts as one.

    Parameters
    ----------
    start : numpy.ndarray of int, shape (batches,)
        Step in which each batch began, rising; below 0 of one before the first step.
    marks : callable
        Of a step the sizes of all batches as they are known at its end, 0 of those not begun.
    exposure : numpy.ndarray, shape (steps,)
    allowed : float
        a, in size per exposure.
    least : float
        c while fewer than five batches are known, and at least.
    steps_of_cap : int
        Steps of a day, for each of which c is set anew.

    Notes
    -----
    Assumes that batches come independently of each other given the exposure: failures that breed
    failures belong into one batch. Misleads where the rate follows the hour or the weekday.

    References
    ----------
    Pollak (1985), Annals of Statistics 13, 206-227: the mean time to a false alarm of R.
    """
    caps = _caps(start, marks, len(exposure), least, steps_of_cap)
    tilts = np.array(TILTS)[:, None]
    cost = allowed * exposure / caps * np.expm1(tilts)

    def judge(look: int, since: int) -> Evidence:
        first = max(since, look + 1 - MOST_BACK, 0)
        inside = (start >= first) & (start <= look)
        steps = start[inside] - first
        sizes = np.minimum(marks(look)[inside] / caps[start[inside]], 1.0)
        gained = np.bincount(steps, sizes, minlength=look + 1 - first)
        return _summed(tilts * gained - cost[:, first : look + 1], first)

    return judge


def of_shares(wrong: Floats, exposure: Floats, allowed: float) -> Judge:
    r"""Evidence by shares of each step: bets that a step goes worse than is allowed.

    .. math:: L_s(t) = \prod_{h = s + 1}^{t} \Big[ 1 + \lambda \frac{w_h - a x_h}{a m_h} \Big]

    with :math:`w_h \ge 0` gone wrong of exposure :math:`x_h \le m_h`, m the largest exposure of the
    steps before (x is cut to it, and w with it). While the mean of w given the steps before is at
    most a x, L has a mean of at most 1 for every :math:`\lambda` in (0, 1); the rest as in
    :func:`of_batches`.

    Parameters
    ----------
    wrong, exposure : numpy.ndarray, shape (steps,)
    allowed : float
        a, in (0, 1).

    Notes
    -----
    Assumes that a step is not worse only because the one before was: what lasts days (one bad run)
    counts as an excess of these days.

    References
    ----------
    Waudby-Smith and Ramdas (2024), JRSS B 86, 1-27: bets against a bounded mean.
    """
    if len(wrong) != len(exposure):
        raise ShapeError(f"exposure must have a value a step, got {len(exposure)} and {len(wrong)}")
    most = np.maximum.accumulate(exposure)
    most = np.concatenate([exposure[:1], most[:-1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        cut = np.where(exposure > most, most / exposure, 1.0)
        moved = np.where(most > 0, cut * (wrong - allowed * exposure) / (allowed * most), 0.0)
    gains = np.log1p(np.array(BETS)[:, None] * moved)

    def judge(look: int, since: int) -> Evidence:
        first = max(since, look + 1 - MOST_BACK, 0)
        return _summed(gains[:, first : look + 1], first)

    return judge


def _caps(
    start: Ints, marks: Callable[[int], Floats], n_steps: int, least: float, day: int
) -> Floats:
    """What is large in each step, by what was known before its day."""
    caps = np.full(n_steps, least)
    for first in range(day, n_steps, day):
        known = marks(first - 1)[start < first]
        known = known[known > 0]
        if len(known) >= FEWEST:
            caps[first : first + day] = max(least, float(np.quantile(known, LARGE)))
    return caps


def _summed(gains: Floats, first: int) -> Evidence:
    """The sum over all steps of beginning, of the mean over weights; shape (weights, steps)."""
    tails = np.cumsum(gains[:, ::-1], axis=1)[:, ::-1]
    each = np.exp(np.minimum(tails, 600.0)).mean(axis=0)
    return Evidence(float(each.sum()), first + int(each.argmax()))
