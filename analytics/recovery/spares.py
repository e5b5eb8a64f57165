"""How many spare nodes a job needs, and what the next one is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics import validate

if TYPE_CHECKING:
    from analytics.arrays import Floats, Ints
    from analytics.estimate import Estimate
    from analytics.reliability.availability import OutAtOnce

ENOUGH: Final = 0.99
"""Share of the time for which spares are to be enough."""
FURTHER: Final = 2
"""Spares that are listed beyond all that are named."""
MOST: Final = 256
"""Rows of spares that are listed, about."""


@dataclass(frozen=True)
class Spare:
    """So many spares."""

    spares: int
    enough: float
    """Share of the time in which no more of the job's nodes are out than that, if nodes go out one
    by one."""
    measured: float | None
    """The same of nodes drawn from the fleet as it was: that nodes go out together is in it."""
    saves: float
    """Node-hours a day that the last of them saves the job, by `measured` where that is known."""


@dataclass(frozen=True)
class Spares:
    """Spares of a job."""

    nodes: int
    out_ratio: Estimate
    """Share of its time that a node is out and nobody planned it."""
    enough: float
    keep: int | None
    """Fewest that are enough; None where `out_ratio` is unknown."""
    keep_at: tuple[int | None, int | None]
    """The same at the bounds of `out_ratio`."""
    keep_measured: int | None
    """The same by the fleet as it was; None where that is not known."""
    worth: int | None
    """Those with which the job gains most, by the fleet as it was where that is known."""
    rows: tuple[Spare, ...]


def spares(
    nodes: int,
    out_ratio: Estimate,
    *,
    fleet: OutAtOnce | None = None,
    enough: float = ENOUGH,
) -> Spares:
    """Spares that a job of N nodes needs.

    .. math:: P(X \\le k), \\quad X \\sim B(N, p)

    with p the share of its time that a node is out: of nodes that go out one by one it holds
    whatever the distribution of the time to return is (Palm). As measured, m of the F nodes of the
    fleet were out for a share of the time, and N of them drawn at random have a hypergeometric
    number out. A job that lacks a node stands still, so spare k saves N x 24 h x P(X = k) a day,
    and holds a node for 24 h: those are worth having at which N P(X <= k) - k is greatest.

    Parameters
    ----------
    nodes : int
        Of the job, N > 0.
    out_ratio
        p, with its interval.
    fleet
        How many nodes were out at once.
    enough : float
        In (0, 1).

    Raises
    ------
    OutOfRangeError
        For a job without nodes, or a share outside (0, 1).

    References
    ----------
    Palm (1943), Ericsson Technics 44; Wan et al. (2025), ByteRobust, SOSP, which keeps as many as
    are enough for 99 % of the time.
    """
    validate.positive("nodes", nodes, "name the nodes of the job")
    validate.conf_level(enough)
    keep, low, high = (
        None if p is None else quantile(nodes, p, enough)
        for p in (out_ratio.value, out_ratio.lower, out_ratio.upper)
    )
    if keep is None:
        return Spares(nodes, out_ratio, enough, None, (low, high), None, None, ())
    model = special.bdtr(np.arange(nodes + 1), nodes, out_ratio.value or 0.0)
    drawn = _measured(nodes, fleet)
    known = model if drawn is None else drawn
    keep_measured = None if drawn is None else int(np.argmax(drawn >= enough))
    worth = int(np.argmax(nodes * known - np.arange(nodes + 1)))
    last = max(keep, high or 0, keep_measured or 0, worth) + FURTHER
    saved = 24.0 * nodes * np.diff(known, prepend=known[0])
    rows = tuple(
        Spare(k, float(model[k]), None if drawn is None else float(drawn[k]), float(saved[k]))
        for k in _listed(min(last, nodes), keep)
    )
    return Spares(nodes, out_ratio, enough, keep, (low, high), keep_measured, worth, rows)


def _listed(last: int, keep: int) -> list[int]:
    """Numbers of spares that are listed: all, or so many evenly with those that are enough."""
    return sorted({*range(0, last + 1, 1 + last // MOST), keep, last})


def enough_for(nodes: int, spares_kept: int, out_ratio: float) -> float:
    """Share of the time for which so many are enough, if nodes go out one by one."""
    return float(special.bdtr(spares_kept, nodes, min(out_ratio, 1.0)))


def quantile(nodes: int, out_ratio: float, enough: float) -> int:
    """Fewest spares that are enough for that share of the time.

    >>> [quantile(n, 1.2e-3, 0.99) for n in (128, 256, 512, 1024)]
    [2, 2, 3, 4]
    """
    k = np.arange(nodes + 1)
    return int(np.argmax(special.bdtr(k, nodes, min(out_ratio, 1.0)) >= enough))


def _measured(nodes: int, fleet: OutAtOnce | None) -> Floats | None:
    """Share of the time in which at most 0, 1, 2 ... of so many nodes of the fleet are out, shape
    (nodes + 1,); None where the fleet is smaller."""
    if fleet is None or nodes > fleet.nodes:
        return None
    k = np.arange(min(nodes, max(fleet.ratio_by_out)) + 1)
    exactly = np.zeros(nodes + 1)
    for out, ratio in fleet.ratio_by_out.items():
        log_chance = (
            log_choices(out, k)
            + log_choices(fleet.nodes - out, nodes - k)
            - log_choices(fleet.nodes, np.array(nodes))
        )
        exactly[k] += ratio * np.exp(log_chance)
    return np.minimum(np.cumsum(exactly), 1.0)


def log_choices(of: int, some: Ints) -> Floats:
    """Logarithm of the number of ways to choose some of so many; -inf where there is none."""
    held = np.clip(some, 0, max(of, 0))
    logs = special.gammaln(of + 1) - special.gammaln(held + 1) - special.gammaln(of - held + 1)
    found: Floats = np.where(held == some, logs, -np.inf)
    return found
