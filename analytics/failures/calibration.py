"""How far a check can be trusted: its hits around failures beside those around successes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

CONF_LEVEL = 0.90
"""Of the bound of chance: a check is discounted by what its hits around successes prove."""
PUBLISHED_RATIO = 0.01
"""Share of completed jobs that may see a failed check: Kokolis et al., arXiv 2410.21680."""


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


def causal_ratio(calibration: pd.DataFrame) -> pd.Series:
    """Share of a check's hits around failures that is not chance.

    With f hits per node of completed attempts and h per node of failed ones, chance alone would
    give f of the h: the ratio is max(0, 1 - f_low / h), where f_low is the lower bound of f
    (Clopper and Pearson, 90 %), so that a few successes do not acquit or convict a check.

    Parameters
    ----------
    calibration : DataFrame
        Columns n_completed_hits, n_completed (nodes of completed attempts), n_failed_hits,
        n_failed: counts of node ends, one row a check.

    Returns
    -------
    Series
        In [0, 1], indexed as `calibration`; 1 where no completed attempt was hit, NaN where no
        failed one was, or the counts name more completed nodes hit than there were.

    Notes
    -----
    Assumes that coincidences are as frequent around failed as around completed attempts.
    Misleads where a check drains nodes only after jobs have ended.

    References
    ----------
    Attributable fraction among the exposed. The paper's own calibration asks that under 1 % of
    completed jobs see a failed check: Kokolis et al., arXiv 2410.21680.

    Examples
    --------
    >>> causal_ratio(pd.DataFrame({"n_completed_hits": [10, 500, 1], "n_failed": [100, 100, 2],
    ...     "n_completed": [1000, 1000, 1], "n_failed_hits": [40, 5, 2]})).round(3).tolist()
    [0.986, 0.0, 0.95]
    """
    hits, total = calibration["n_completed_hits"], calibration["n_completed"]
    tail = (1.0 - CONF_LEVEL) / 2.0
    lower = special.betaincinv(hits.clip(lower=1), total - hits + 1, tail)
    chance = pd.Series(np.where(hits.gt(0), lower, 0.0), index=calibration.index)
    hit = calibration["n_failed_hits"] / calibration["n_failed"].where(
        calibration["n_failed"].gt(0)
    )
    ratio = 1.0 - chance / hit.where(hit.gt(0))
    return ratio.clip(lower=0.0)


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
