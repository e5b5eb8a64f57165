"""How often chance alone would name the cause of a failed attempt, by the nodes it ran on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import special

from analytics.estimate import CONF_LEVEL, Estimate
from analytics.failures.calibration import LEAST_NODE_DAYS, not_by_chance, rate_at_ends

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NAMING = 0.5
"""Probability to be no coincidence from which on a critical event names a cause alone."""


@dataclass(frozen=True)
class SizeChance:
    """What chance makes of the failed attempts of one size class."""

    nodes_from: int
    nodes_to: int
    n_attempts: int
    """Failed attempts of this size on clusters whose checks are known."""
    hit_by_chance: Estimate
    """Expected share of them with a check near their end that has nothing to do with it."""
    misattributed: Estimate
    """Expected share with such a check that would count as evidence, had they no other cause."""


def misattribution(
    checks: pd.DataFrame, attempts: pd.DataFrame, *, conf_level: float = CONF_LEVEL
) -> tuple[SizeChance, ...]:
    """Expected share of failed attempts that an unrelated check hits by chance, by size class.

    An attempt on N nodes is hit with probability 1 - exp(-N W sum_s r_s), W the window and r_s the
    rate of check s by chance; the sum runs over all checks that speak for causes, or over those
    that count as evidence at that size (`calibration.not_by_chance` of at least half). Classes
    are 1, 2, 3-4, 5-8, ... nodes, doubling; a class has the mean over its attempts.

    Parameters
    ----------
    checks : DataFrame
        Columns cluster, n_background_hits, background_node_days, n_completed_hits, n_completed,
        rate_per_node_day, window_minutes, causal_ratio: one row a check that speaks for causes.
    attempts : DataFrame
        Columns cluster, n_nodes (>= 1), n_attempts: failed attempts by size.
    conf_level : float
        Of the intervals, in (0, 1).

    Returns
    -------
    tuple of SizeChance
        Classes with attempts on clusters whose checks are known, the smallest first. n of an
        estimate counts the chance hits it rests on.

    Notes
    -----
    The interval is that of a weighted sum of Poisson counts, by the gamma method. It holds no
    doubt whether a check is unrelated: that is its causal ratio.

    References
    ----------
    Fay and Feuer, Statistics in Medicine 16 (1997), 791-801.

    Examples
    --------
    >>> checks = pd.DataFrame({"cluster": ["c"], "n_background_hits": 960, "n_completed_hits": 0,
    ...     "background_node_days": 48_000.0, "n_completed": 0, "rate_per_node_day": 0.02,
    ...     "window_minutes": 15.0, "causal_ratio": 0.0})
    >>> attempts = pd.DataFrame({"cluster": ["c"], "n_nodes": [512], "n_attempts": [30]})
    >>> (large,) = misattribution(checks, attempts)
    >>> round(large.hit_by_chance.value, 3), large.misattributed.value
    (0.101, 0.0)
    """
    shares = [
        _shares(of_cluster, checks[checks["cluster"].eq(cluster)], conf_level)
        for cluster, of_cluster in attempts.groupby("cluster")
        if checks["cluster"].eq(cluster).any()
    ]
    return tuple(_classes(pd.concat(shares), conf_level)) if shares else ()


def _shares(attempts: pd.DataFrame, checks: pd.DataFrame, conf_level: float) -> pd.DataFrame:
    """Of each size: shares hit and misattributed, with their bounds and counts."""
    by_ends = checks["rate_per_node_day"].le(rate_at_ends(checks)).to_numpy()
    watched = checks["n_completed"] * checks["window_minutes"] / 1440.0
    held = np.where(by_ends, watched, checks["background_node_days"]).clip(min=LEAST_NODE_DAYS)
    hits = np.where(by_ends, checks["n_completed_hits"], checks["n_background_hits"])
    window = checks["window_minutes"].max() / 1440.0
    counts = np.stack([_counting(checks, int(size)) for size in attempts["n_nodes"]])
    found = attempts[["n_nodes", "n_attempts"]].reset_index(drop=True)
    for name, which in (("hit", np.ones_like(counts)), ("wrong", counts)):
        rate, lower, upper = _weighted(which, hits, held, conf_level)
        for part, each in (("value", rate), ("lower", lower), ("upper", upper)):
            found[f"{name}_{part}"] = -np.expm1(-found["n_nodes"].to_numpy() * window * each)
        found[f"{name}_n"] = which @ hits
    return found


def _counting(checks: pd.DataFrame, size: int) -> Floats:
    """1 for each check that counts as evidence for an attempt on so many nodes, else 0."""
    pieces = checks.assign(n_nodes=size, n_hits=np.nan, node_days=np.nan)
    return np.asarray(not_by_chance(pieces).ge(NAMING), dtype=np.float64)


def _weighted(
    which: Floats, hits: Floats, held: Floats, conf_level: float
) -> tuple[Floats, Floats, Floats]:
    """Sum of rates over the checks of each row, and its bounds."""
    tail = (1.0 - conf_level) / 2.0
    rate, variance, most = which @ (hits / held), which @ (hits / held**2), (which / held).max(1)
    lower = _gamma(tail, rate, variance)
    return rate, lower, _gamma(1.0 - tail, rate + most, variance + most**2)


def _gamma(probability: float, mean: Floats, variance: Floats) -> Floats:
    """Quantile of gamma distributions by mean and variance; 0 where the mean is."""
    some = mean > 0
    mean, variance = np.where(some, mean, 1.0), np.where(some, variance, 1.0)
    quantile = special.gammaincinv(mean**2 / variance, probability) * variance / mean
    return np.where(some, quantile, 0.0)


def _classes(shares: pd.DataFrame, conf_level: float) -> Iterator[SizeChance]:
    """Means over the attempts of each class of doubling size."""
    for power, rows in shares.groupby(np.ceil(np.log2(shares["n_nodes"])).astype(int)):
        yield SizeChance(
            nodes_from=2 ** (int(power) - 1) + 1 if power else 1,
            nodes_to=2 ** int(power),
            n_attempts=int(rows["n_attempts"].sum()),
            hit_by_chance=_mean(rows, "hit", conf_level),
            misattributed=_mean(rows, "wrong", conf_level),
        )


def _mean(rows: pd.DataFrame, name: str, conf_level: float) -> Estimate:
    """Mean over attempts of a share and its bounds."""
    value, lower, upper = (
        float(np.average(rows[f"{name}_{part}"], weights=rows["n_attempts"]))
        for part in ("value", "lower", "upper")
    )
    return Estimate(value, lower, upper, conf_level, int(rows[f"{name}_n"].max()))
