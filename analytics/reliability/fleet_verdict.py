"""Whether a fleet is well: its failure rate beside a reference, and the job size it is told for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from analytics import validate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from analytics.estimate import Estimate

Verdict = Literal["well", "watch", "act", "unknown"]
FEWEST = 5
"""Failures below which a rate says little."""
WATCH_RATIO = 1.1
"""Rate over reference from which on it is watched."""
USUAL_RATIO = 0.95
"""Share of GPU-time that jobs up to the largest usual size hold."""


def fleet_verdict(now: Estimate, reference: Estimate, *, blind: bool = False) -> Verdict:
    """What to make of a failure rate beside a reference.

    `act` where the whole interval of the rate lies above that of the reference; `watch` where the
    rate is higher by a tenth or more, but the intervals overlap; else `well`. Fewer than 5
    failures say neither of the last two, unless the whole interval lies below: then it is
    `unknown`, as where the rate or the reference is. A published rate has no interval: its bounds
    are its value. Where failures could not all be seen the rate has bounds alone, of which one can
    decide; where `blind`, none could be seen at all, and no fleet is `well`.

    Examples
    --------
    >>> from analytics.estimate import Estimate
    >>> published = Estimate(6.5, 6.5, 6.5, 0.9, 0)
    >>> [fleet_verdict(Estimate(rate, 0.8 * rate, 1.2 * rate, 0.9, 40), published)
    ...  for rate in (6.6, 7.2, 9.0)]
    ['well', 'watch', 'act']
    >>> fleet_verdict(Estimate(None, 2.0, None, 0.9, 3), published)
    'unknown'
    """
    least, most = reference.lower, reference.upper
    if least is None or most is None or reference.value is None:
        return "unknown"
    if now.lower is not None and now.lower > most:
        return "act"
    well: Verdict = "unknown" if blind else "well"
    if now.upper is not None and now.upper <= least:
        return well
    if now.value is None or now.n < FEWEST:
        return "unknown"
    return "watch" if now.value >= WATCH_RATIO * reference.value else well


def largest_usual_size(n_gpus: ArrayLike, running_days: ArrayLike) -> int | None:
    r"""The least job size up to which jobs hold 95 % of GPU-time.

    .. math:: \min \Bigl\{ g : \sum_{i: g_i \le g} g_i t_i \ge 0.95 \sum_i g_i t_i \Bigr\}

    with g_i GPUs that ran t_i days. One job on the whole cluster does not decide it, nor do
    thousands of jobs of one GPU.

    Parameters
    ----------
    n_gpus, running_days : array_like, shape (n,)
        Of jobs or of sizes, in any order.

    Returns
    -------
    int or None
        None where nothing ran on GPUs.

    Examples
    --------
    >>> largest_usual_size([1, 8, 256, 1024], [1000.0, 100.0, 30.0, 0.1])
    256
    >>> largest_usual_size([], []) is None
    True
    """
    size = validate.nonnegative_array("n_gpus", n_gpus)
    days = validate.nonnegative_array("running_days", running_days)
    validate.same_length(n_gpus=size, running_days=days)
    order = np.argsort(size, kind="stable")
    held = np.cumsum((size * days)[order])
    if not len(held) or not held[-1]:
        return None
    return int(size[order][np.searchsorted(held, USUAL_RATIO * held[-1])])
