"""How many spare nodes a job needs, and what the next one is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics import validate

if TYPE_CHECKING:
    from analytics.arrays import Floats
    from analytics.estimate import Estimate
    from analytics.reliability.availability import OutAtOnce

ENOUGH: Final = 0.99
"""Share of the time for which spares are to be enough."""
FURTHER: Final = 2
"""Spares that are listed beyond those that are enough at the upper bound."""
MOST: Final = 256
"""Spares that are listed."""


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
    """Node-hours a day of the job that the last of them saves, by `measured` where it is known."""


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
    """The same by the fleet as it was; None where it is not known or never so many were out."""
    rows: tuple[Spare, ...]

    @property
    def worth(self) -> int:
        """Spares of which each saves more of the job's time than it takes itself."""
        return sum(each.spares > 0 and each.saves > 24.0 for each in self.rows)


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
    and holds a node for 24 h.

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
    drawn = _measured(nodes, fleet)
    keep_measured = None
    if drawn is not None and (drawn >= enough).any():
        keep_measured = int(np.argmax(drawn >= enough))
    rows: list[Spare] = []
    if keep is not None:
        last = max(each for each in (keep, high, keep_measured) if each is not None) + FURTHER
        k = np.arange(min(last, nodes, MOST) + 1)
        model = special.bdtr(k, nodes, out_ratio.value or 0.0)
        known = model if drawn is None else drawn[: len(k)]
        saved = np.diff(np.concatenate([[0.0], known])) * nodes * 24.0
        rows = [
            Spare(
                int(n),
                float(model[n]),
                None if drawn is None else float(drawn[n]),
                float(saved[n]) if n else 0.0,
            )
            for n in k
        ]
    return Spares(nodes, out_ratio, enough, keep, (low, high), keep_measured, tuple(rows))


def quantile(nodes: int, out_ratio: float, enough: float) -> int:
    """Fewest spares that are enough for that share of the time.

    >>> [quantile(n, 1.2e-3, 0.99) for n in (128, 256, 512, 1024)]
    [2, 2, 3, 4]
    """
    k = np.arange(nodes + 1)
    return int(np.argmax(special.bdtr(k, nodes, min(out_ratio, 1.0)) >= enough))


def _measured(nodes: int, fleet: OutAtOnce | None) -> Floats | None:
    """Share of the time in which at most 0, 1, 2 ... of so many nodes of the fleet are out; None
    where the fleet is smaller."""
    if fleet is None or nodes > fleet.nodes:
        return None
    most = min(nodes, fleet.nodes, MOST + FURTHER)
    k = np.arange(most + 1)
    exactly = np.zeros(most + 1)
    log = special.gammaln

    def choose(n: Floats, m: Floats) -> Floats:
        possible = (m >= 0) & (m <= n)
        with np.errstate(invalid="ignore"):
            logs: Floats = log(n + 1.0) - log(m + 1.0) - log(n - m + 1.0)
        return np.where(possible, logs, -np.inf)

    every = np.full(most + 1, float(fleet.nodes))
    for out, ratio in fleet.ratio_by_out.items():
        logs = (
            choose(np.full(most + 1, float(out)), k.astype(float))
            + choose(np.full(most + 1, float(fleet.nodes - out)), nodes - k.astype(float))
            - choose(every, np.full(most + 1, float(nodes)))
        )
        exactly += ratio * np.exp(logs)
    return np.minimum(np.cumsum(exactly), 1.0)
