"""How far a check can be trusted: its hits around failures beside those around successes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

CONF_LEVEL = 0.90
"""Of the bound of chance: a check is discounted by what its hits around successes prove."""
_TAIL = (1.0 - CONF_LEVEL) / 2.0
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
