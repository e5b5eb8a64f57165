"""The hazard at several ages, with no family: the piecewise exponential."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.estimate import CONF_LEVEL, Estimate
from analytics.reliability.failure_rate import poisson_rate

if TYPE_CHECKING:
    from analytics.arrays import Floats
    from analytics.reliability.lifetimes import Lives

MOST_PIECES: Final = 5
LEAST_DEATHS: Final = 5
"""Of a piece."""


@dataclass(frozen=True)
class Piece:
    """Ages over which the hazard counts as one."""

    begin: float
    end: float
    deaths: int
    exposure: float
    """Time watched at these ages."""
    rate: Estimate
    """Deaths per unit of time, with its exact interval."""


@dataclass(frozen=True)
class Pieces:
    """The piecewise exponential of some lives."""

    pieces: tuple[Piece, ...]
    log_likelihood: float
    aic: float

    def survival(self, age: Floats) -> Floats:
        """Share that lives beyond each age."""
        cumulative = np.zeros(len(age))
        for each in self.pieces:
            passed = np.clip(age, each.begin, each.end) - each.begin
            cumulative += passed * (each.deaths / each.exposure)
        return np.exp(-cumulative)


def pieces(lives: Lives, *, conf_level: float = CONF_LEVEL) -> Pieces | None:
    """Deaths over time watched, in up to `MOST_PIECES` stretches of age with as many deaths each.

    .. math:: \\log L = \\sum_k d_k \\log (d_k / e_k) - d_k, \\qquad AIC = 2 K - 2 \\log L

    None where fewer than `LEAST_DEATHS` died: no family either is fitted then.

    Examples
    --------
    >>> import numpy as np
    >>> from analytics.reliability.lifetimes import Lives
    >>> found = pieces(Lives.of(np.arange(1.0, 11.0), np.ones(10, dtype=bool)))
    >>> [(each.begin, each.end, each.deaths, each.exposure) for each in found.pieces]
    [(0.0, 5.0, 5, 40.0), (5.0, 10.0, 5, 15.0)]
    """
    n_pieces = min(MOST_PIECES, lives.n_deaths // LEAST_DEATHS)
    if not n_pieces:
        return None
    order = np.argsort(lives.exit, kind="stable")
    passed = np.cumsum(lives.deaths[order])
    shares = passed[-1] * np.arange(1, n_pieces) / n_pieces
    cuts = np.unique(lives.exit[order][np.searchsorted(passed, shares)])
    last = float(lives.exit.max())
    first = float(lives.entry.min())  # before that nobody was watched
    edges = [first, *cuts[(cuts > first) & (cuts < last)].tolist(), last]
    found = []
    for begin, end in pairwise(edges):
        held = np.clip(lives.exit, begin, end) - np.clip(lives.entry, begin, end)
        exposure = float((lives.weight * held).sum())
        inside = (lives.exit > begin) & (lives.exit <= end)
        deaths = round(float(lives.deaths[inside].sum()))
        if exposure:
            rate = poisson_rate(deaths, exposure, conf_level)
            found.append(Piece(begin, end, deaths, exposure, rate))
    log_likelihood = sum(
        each.deaths * float(np.log(each.deaths / each.exposure)) - each.deaths
        for each in found
        if each.deaths
    )
    return Pieces(tuple(found), log_likelihood, 2.0 * len(found) - 2.0 * log_likelihood)
