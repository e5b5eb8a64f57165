"""What published rules say of the same series: ZClip, a plain z-score, a jump to five times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.training.stability.baseline import BLOCK

if TYPE_CHECKING:
    from analytics.arrays import Bools, Floats
    from analytics.training.stability.course import Course

ZCLIP_ALPHA: Final = 0.97
ZCLIP_Z: Final = 2.5
ZCLIP_WARMUP: Final = 25
PLAIN_ROWS: Final = 100
PLAIN_Z: Final = 3.0
JUMP_RATIO: Final = 5.0


def zclip(norm: Floats) -> Bools:
    """Rows of a gradient norm that ZClip would clip.

    .. math:: z_t = (g_t - \\mu_{t-1}) / \\sigma_{t-1} > 2.5

    with mean and variance as moving averages of weight .97 on what was, begun with the first 25
    rows; where z > 2.5 they go on with the clipped value mu + (2.5^2 / z) sigma.

    References
    ----------
    Kumar et al., ZClip, arXiv 2504.02507, equations 3 to 8.

    Examples
    --------
    >>> norm = np.append(np.tile([0.9, 1.1], 20), 9.0)
    >>> np.flatnonzero(zclip(norm)).tolist()
    [40]
    """
    clipped = np.zeros(len(norm), dtype=bool)
    start = norm[:ZCLIP_WARMUP]
    if len(start) < ZCLIP_WARMUP:
        return clipped
    mean, variance = float(start.mean()), float(start.var())
    for row, value in enumerate(norm[ZCLIP_WARMUP:].tolist(), ZCLIP_WARMUP):
        sigma = max(variance, 1e-300) ** 0.5
        z = (value - mean) / sigma
        if not z <= ZCLIP_Z:
            clipped[row] = True
            value = mean + ZCLIP_Z**2 / z * sigma if np.isfinite(z) else mean
        variance = ZCLIP_ALPHA * variance + (1 - ZCLIP_ALPHA) * (value - mean) ** 2
        mean = ZCLIP_ALPHA * mean + (1 - ZCLIP_ALPHA) * value
    return clipped


def plain_z(value: Floats) -> Bools:
    """Rows more than three standard deviations above the mean of the 100 rows before."""
    high = np.zeros(len(value), dtype=bool)
    if len(value) <= PLAIN_ROWS:
        return high
    centred = np.nan_to_num(value - np.nanmedian(value))
    sums, squares = (np.cumsum(np.append(0.0, each)) for each in (centred, centred**2))
    mean = (sums[PLAIN_ROWS:-1] - sums[: -PLAIN_ROWS - 1]) / PLAIN_ROWS
    mean2 = (squares[PLAIN_ROWS:-1] - squares[: -PLAIN_ROWS - 1]) / PLAIN_ROWS
    spread = np.sqrt(np.maximum(mean2 - mean**2, 0.0))
    high[PLAIN_ROWS:] = centred[PLAIN_ROWS:] > mean + PLAIN_Z * spread
    return high


def jumped(value: Floats) -> Bools:
    """Rows at five times the median of the 16 rows before and more.

    References
    ----------
    ByteRobust, arXiv 2509.16293: five times the loss or gradient norm is a fault.
    """
    high = np.zeros(len(value), dtype=bool)
    n = len(value) // BLOCK
    if n < 2:
        return high
    before = np.repeat(np.median(value[: n * BLOCK].reshape(n, BLOCK), axis=1), BLOCK)
    high[BLOCK:] = value[BLOCK:] >= JUMP_RATIO * before[: len(value) - BLOCK]
    return high


RULES: Final = {"zclip": zclip, "plain_z": plain_z, "jump": jumped}


def alarms(course: Course, rule: str) -> int:
    """How often a published rule would have told something: rows behind each other once.

    Rows that are not finite are left out, as no mean can be taken of them.
    """
    high = RULES[rule](course.value[np.isfinite(course.value)])
    return int(high[0]) + int((high[1:] & ~high[:-1]).sum()) if len(high) else 0
