"""How far a check can be trusted: its hits around failures beside those around successes.

How often chance alone would name the cause of a failed attempt, by the nodes it ran on, and how
much of a line's presence in logs of failed jobs is chance, follow by the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import special

from analytics.estimate import CONF_LEVEL, Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.arrays import Floats

_TAIL = (1.0 - CONF_LEVEL) / 2.0
"""Of the bound of chance: a check is discounted by what its hits around successes prove."""
PUBLISHED_RATIO = 0.01
"""Share of completed jobs that may see a failed check: Kokolis et al., arXiv 2410.21680."""

PRIOR_NODE_DAYS = 1_000.0
"""Node-days without a hit that every check is given: what rests on few proves little."""
LEAST_NODE_DAYS = 10.0
"""Node-days that a check's hits beside attempts that ran on are taken to stem from, at least."""

NODES_ALIKE = 0.5
"""Shape of the gamma distribution of a check's rate over nodes: some are far noisier than most."""


@dataclass(frozen=True)
class CheckTrust:
    """How far each check can be trusted."""

    checks: pd.DataFrame
    """One row a check and severity: its counts, `percent_of_completed_attempts` (NaN where none
    completed), `over_1_percent`, `percent_of_failed_nodes`, `causal_ratio` and `discounted`."""
    n_over: int
    """Checks that fire around more completed attempts than the published limit allows."""
    n_discounted: int
    """Checks whose hits around failures are in part chance."""


def chance_rate(calibration: pd.DataFrame) -> pd.Series:
    """Rate at which a check fires by chance: of itself, whatever becomes of the attempts there.

    r = max((1/2 + k) / (D + E), c / (D + n W)): k windows of time in which it fired beside
    attempts that ran on, in E node-days; c hits at the n nodes of completed attempts, in the
    window of W days around their ends (a check of epilogs fires at ends alone); and D =
    `PRIOR_NODE_DAYS`.

    Parameters
    ----------
    calibration : DataFrame
        Columns n_background_hits (k), background_node_days (E), n_completed_hits (c), n_completed
        (n), window_minutes; one row a check.

    Returns
    -------
    Series
        Per node-day, > 0, indexed as `calibration`.

    Examples
    --------
    >>> chance_rate(pd.DataFrame({"n_completed_hits": [0, 900], "n_completed": [9600, 9600],
    ...     "n_background_hits": [20, 0], "background_node_days": [9000.0, 9000.0],
    ...     "window_minutes": [15.0, 15.0]})).round(4).tolist()
    [0.002, 0.8182]
    """
    apart = (0.5 + calibration["n_background_hits"]) / (
        PRIOR_NODE_DAYS + calibration["background_node_days"]
    )
    return apart.clip(lower=rate_at_ends(calibration))


def rate_at_ends(calibration: pd.DataFrame) -> pd.Series:
    """Chance hits around the ends of completed attempts per node-day: c / (D + n W) above."""
    watched = calibration["n_completed"] * _window_days(calibration)
    return calibration["n_completed_hits"] / (PRIOR_NODE_DAYS + watched)


def causal_ratio(calibration: pd.DataFrame) -> pd.Series:
    """Share of a check's hits around failures that is not chance.

    The lesser of two attributable fractions, at least 0:

    - 1 - f_low / h: f hits per node of completed attempts, f_low its lower bound (Clopper and
      Pearson, 90 %), so that a few successes do not acquit or convict a check; h hits per node of
      failed ones.
    - 1 - m / K_low: chance alone hits m = n k W / E of n nodes of failed attempts (k windows of W
      days with a hit beside attempts that ran on, in E node-days, at least `LEAST_NODE_DAYS`). Hits
      fell on K different days of nodes, K_low is the lower bound of their expectation (Jeffreys,
      90 %): an unrelated check that struck once or twice near a failure is not yet evidence. Days
      count, not hits: a broken state that lasts is one coincidence, however many attempts fail
      meanwhile.

    Parameters
    ----------
    calibration : DataFrame
        Columns n_completed_hits, n_completed (nodes of completed attempts), n_failed_hits,
        n_failed, n_failed_node_days (K), n_background_hits, background_node_days and
        window_minutes, one row a check.

    Returns
    -------
    Series
        In [0, 1], indexed as `calibration`; 1 where it never fires by chance, NaN where no failed
        attempt was hit, or the counts name more completed nodes hit than there were.

    Notes
    -----
    Assumes that coincidences are as frequent around failed attempts as elsewhere.
    Misleads where a check drains nodes only after jobs have ended.

    References
    ----------
    Attributable fraction among the exposed. The paper's own calibration asks that under 1 % of
    completed jobs see a failed check: Kokolis et al., arXiv 2410.21680.

    Examples
    --------
    >>> causal_ratio(pd.DataFrame({"n_completed_hits": [10, 500, 0], "n_failed": [100, 100, 9600],
    ...     "n_completed": [1000, 1000, 0], "n_failed_hits": [40, 5, 4],
    ...     "n_failed_node_days": [40, 5, 4], "n_background_hits": [0, 0, 20],
    ...     "background_node_days": [0.0, 0.0, 2000.0], "window_minutes": 15.0})).round(3).tolist()
    [0.986, 0.0, 0.399]
    """
    from scipy import special  # here: without observations nothing is calibrated

    failed = calibration["n_failed"]
    ratio = attributable_fraction(
        calibration["n_completed_hits"],
        calibration["n_completed"],
        calibration["n_failed_hits"],
        failed,
    )
    held = calibration["background_node_days"].clip(lower=LEAST_NODE_DAYS)
    rate = calibration["n_background_hits"] / held
    expected = failed * rate * _window_days(calibration)
    seen = special.gammaincinv(calibration["n_failed_node_days"] + 0.5, _TAIL)
    return ratio.clip(upper=1.0 - expected / seen).clip(lower=0.0)


def attributable_fraction(
    hits: pd.Series, total: pd.Series, failed_hits: pd.Series, failed: pd.Series
) -> pd.Series:
    """1 - f_low / h, at least 0: what success does not show of what failure shows.

    f = hits / total of what completed, f_low its lower bound (Clopper and Pearson, 90 %), h =
    failed_hits / failed of what failed. NaN where h is 0 or unknown, or hits exceed their total.

    Examples
    --------
    >>> attributable_fraction(*(pd.Series([n]) for n in (10, 1000, 40, 100))).round(3).tolist()
    [0.986]
    """
    from scipy import special

    lower = special.betaincinv(hits.clip(lower=1), total - hits + 1, _TAIL)
    share = pd.Series(np.where(hits.gt(0), lower, 0.0), index=hits.index)
    hit = failed_hits / failed.where(failed.gt(0))
    ratio: pd.Series = (1.0 - share / hit.where(hit.gt(0))).clip(lower=0.0)
    return ratio


def not_by_chance(pieces: pd.DataFrame) -> pd.Series:
    """Probability that evidence near the end of an attempt is no coincidence.

    An attempt that looks at N nodes meets q = 1 - exp(-N r W) such events by chance. The check
    explains, we assume, kappa = 0.01 of failed attempts (`PUBLISHED_RATIO`): the probability is
    kappa / (kappa + q), or the check's own causal ratio where that is less. So a check names the
    cause only of attempts of which chance alone would hit less than about one in a hundred.

    The rate r is that of the node, drawn towards the check's rate r_0 where the node says little:
    r = (s + k_node) / (s / r_0 + E_node), with s = `NODES_ALIKE`.

    Parameters
    ----------
    pieces : DataFrame
        One row a piece: n_nodes (nodes of the attempt at which the piece could have been; 1 where
        the scheduler names its node), n_hits and node_days (k_node and E_node; NaN: none known),
        rate_per_node_day (r_0, see `chance_rate`), window_minutes and causal_ratio of its check
        (NaN: unknown).

    Returns
    -------
    Series
        In [0, 1], indexed as `pieces`.

    Examples
    --------
    >>> not_by_chance(pd.DataFrame({"n_nodes": [1, 512, 512], "n_hits": [0, 0, 0],
    ...     "node_days": 90.0, "rate_per_node_day": [1e-5, 1e-5, 0.018], "window_minutes": 15.0,
    ...     "causal_ratio": [1.0, 1.0, 0.6]})).round(3).tolist()
    [1.0, 0.995, 0.309]
    """
    hits, held = pieces["n_hits"].fillna(0), pieces["node_days"].fillna(0.0)
    rate = (NODES_ALIKE + hits) / (NODES_ALIKE / pieces["rate_per_node_day"] + held)
    expected = pieces["n_nodes"] * rate * _window_days(pieces)
    chance = pd.Series(-np.expm1(-expected), index=pieces.index)
    of_size = PUBLISHED_RATIO / (PUBLISHED_RATIO + chance)
    return pieces["causal_ratio"].fillna(1.0).clip(upper=of_size.fillna(1.0))


def _window_days(rows: pd.DataFrame) -> pd.Series:
    """Length of the window of attribution."""
    days: pd.Series = rows["window_minutes"].clip(lower=1.0) / 1440.0
    return days


def check_trust(calibration: pd.DataFrame) -> CheckTrust:
    """Share of completed attempts and of failed nodes around whose end each check fired.

    Parameters
    ----------
    calibration : DataFrame
        Columns signal, severity, cluster, causal_ratio, n_completed_attempts_hit,
        n_completed_attempts, n_failed_hits, n_failed.

    References
    ----------
    Kokolis et al., arXiv 2410.21680: under 1 % of completed jobs see a failed check.

    Examples
    --------
    >>> trust = check_trust(pd.DataFrame({"signal": ["a", "b"], "severity": "critical",
    ...     "cluster": "c", "causal_ratio": [1.0, 0.5], "n_completed_attempts_hit": [1, 5],
    ...     "n_completed_attempts": [100, 100], "n_failed_hits": [4, 2], "n_failed": [8, 8]}))
    >>> trust.checks["percent_of_completed_attempts"].tolist(), trust.n_over, trust.n_discounted
    ([1.0, 5.0], 1, 1)
    """
    counts = calibration
    hit = counts["n_completed_attempts_hit"] / counts["n_completed_attempts"].where(lambda n: n > 0)
    checks = counts.assign(
        percent_of_completed_attempts=100.0 * hit,
        over_1_percent=hit.gt(PUBLISHED_RATIO).astype("boolean").mask(hit.isna()),
        percent_of_failed_nodes=100.0
        * (counts["n_failed_hits"] / counts["n_failed"].where(lambda n: n > 0)),
        discounted=counts["causal_ratio"].lt(1.0),
    )
    return CheckTrust(
        checks,
        n_over=int(checks["over_1_percent"].sum()),
        n_discounted=int(checks["discounted"].sum()),
    )


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


def line_ratios(counts: pd.DataFrame) -> pd.Series:
    """Share of a line's presence in logs of failed jobs that is not chance.

    1 - f_low / h, at least 0: f of the logs of completed jobs and h of those of failed ones hold
    the line, f_low is the lower bound of f (Clopper and Pearson, 90 %). A library's warning in
    every log gets 0 once some jobs have completed; a few logs prove little.

    Parameters
    ----------
    counts : DataFrame
        Columns n_completed_logs_hit, n_completed_logs, n_failed_logs_hit, n_failed_logs: one row a
        line.

    Returns
    -------
    Series
        In [0, 1], rounded down to tenths, indexed as `counts`; NaN where no failed log holds it.

    Notes
    -----
    Misleads where the logs of completed jobs were collected only of other programs.

    Examples
    --------
    >>> import pandas as pd
    >>> line_ratios(pd.DataFrame({"n_completed_logs_hit": [20, 1, 2],
    ...     "n_completed_logs": [20, 20, 2], "n_failed_logs_hit": 5, "n_failed_logs": 5})).tolist()
    [0.1, 0.9, 0.7]
    """
    ratio = attributable_fraction(
        counts["n_completed_logs_hit"],
        counts["n_completed_logs"],
        counts["n_failed_logs_hit"],
        counts["n_failed_logs"],
    )
    return (10.0 * ratio).floordiv(1.0) / 10.0
