"""Lines that stand in logs of completed jobs too: how much of their presence is chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.failures.calibration import attributable_fraction

if TYPE_CHECKING:
    import pandas as pd


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
