"""How far a check can be trusted: its hits around failures beside those around successes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def causal_ratio(calibration: pd.DataFrame) -> pd.Series:
    """Share of a check's hits around failures that is not chance.

    With f hits per node of completed attempts and h per node of failed ones, chance alone would
    give f of the h: the ratio is max(0, 1 - f / h).

    Parameters
    ----------
    calibration : DataFrame
        Columns n_completed_hits, n_completed (nodes of completed attempts), n_failed_hits,
        n_failed: counts of node ends, one row a check.

    Returns
    -------
    Series
        In [0, 1], indexed as `calibration`; 1 where no completed attempt was observed, NaN where
        no failed one was hit.

    Assumptions: coincidences are as frequent around failed as around completed attempts. Misleads
    where a check drains nodes only after jobs have ended.

    References
    ----------
    Attributable fraction among the exposed. The paper's own calibration asks that under 1 % of
    completed jobs see a failed check: Kokolis et al., arXiv 2410.21680.

    Examples
    --------
    >>> causal_ratio(pd.DataFrame({"n_completed_hits": [10, 50], "n_completed": [1000, 1000],
    ...     "n_failed_hits": [40, 5], "n_failed": [100, 100]})).tolist()
    [0.975, 0.0]
    """
    chance = calibration["n_completed_hits"] / calibration["n_completed"].where(
        calibration["n_completed"].gt(0)
    )
    hit = calibration["n_failed_hits"] / calibration["n_failed"].where(
        calibration["n_failed"].gt(0)
    )
    ratio = (1.0 - chance.fillna(0.0) / hit.where(hit.gt(0))).clip(lower=0.0)
    found: pd.Series = ratio
    return found
