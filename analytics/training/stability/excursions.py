"""Excursions of a series above its baseline: by size and by persistence, at a calibrated level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics.training.stability.baseline import BLOCK, PIECE, baseline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.arrays import Bools, Floats, Ints
    from analytics.training.stability.baseline import Baseline
    from analytics.training.stability.course import Course

LEVEL: Final = 2e-6
"""False alarms a row of a series, over all rules together: one in 500,000."""
CLIP: Final = 4.0
"""Beyond it a row counts no more in a mean of rows, so that one alone persists nowhere."""
MEANS: Final = (4, 8, 16, 32)
LONGEST_MEAN: Final = max(MEANS)
HIGH: Final = 3.0
"""Rows of an excursion lie so many scales above the level."""
TWICE_HIGH: Final = 6.0
CALM_ROWS: Final = 3
"""Rows without a high one, after which an excursion is over."""
LONGEST: Final = 4096
"""Rows after which what rises further is looked for again, whether it is over or not."""
ONE_DOF, TWO_DOF, MEAN_DOF = 2.5, 4.0, 10.0
"""Least degrees of freedom of the tails: of cut-off means hardly any but a normal one."""
WINDOW, MOST_WINDOWS = 4096, 128
"""Rows behind each other, and how many such stretches, that a distribution is taken from."""
_TAIL: Final = 0.98
_QUARTILE: Final = 0.75
_NORMAL_RATIO: Final = float(special.ndtri(_TAIL) / special.ndtri(_QUARTILE))
_MOST_DOF, _FEWEST_DOF = 1000.0, 1.5
_DOFS: Final = np.geomspace(_FEWEST_DOF, _MOST_DOF, 60)
_RATIOS: Final = special.stdtrit(_DOFS, _TAIL) / special.stdtrit(_DOFS, _QUARTILE)


@dataclass(frozen=True)
class Excursion:
    """Rows of a course during which a series lies above what it was about to be."""

    first: int
    """The first of its rows."""
    peak: int
    last_high: int
    """The last row that is high."""
    calm: int | None
    """The first row back at the level; None where the log ends, or starts again, before."""
    z: float
    """Of the peak, in scales."""
    level: float
    """Expected at its start, on the scale of the series."""
    scale: float


def excursions(course: Course, value: Floats) -> tuple[list[Excursion], Baseline]:
    """Where a series rises above its baseline by more than chance does.

    With z the distance of a row from the baseline in scales, six statistics are taken of the rows
    up to t: z itself, the lower of two, and the means of 4, 8, 16 and 32 values of z cut off at
    4. Each is compared with its own distribution along the run above 0: its quartile, and the
    Student tail that its 98 % quantile shows, extrapolated to a chance of LEVEL / 6 a row. Noise
    that is heavy-tailed or correlated along steps thus raises its own threshold. Rows of which
    eight behind each other lie above 3 on average, or two above 6, are left out of it.

    Parameters
    ----------
    course : Course
        Where segments begin.
    value : array, shape (n_rows,)
        The series on the scale on which it is judged.

    Returns
    -------
    list of Excursion, Baseline
        In order of rows; an excursion begins with the first high row (z > 3) of those that the
        statistic rests on, goes on while one of three rows is high against level and scale at its
        start, and ends with the first of three that are not.

    Notes
    -----
    Misleads where a run is so short that excursions are most of it, and in the first 32 rows,
    which are not judged. A rise slower than the baseline follows (some hundred rows) is no
    excursion: `drift` finds it.
    """
    found = baseline(course, value)
    sharp, slow = _alarmed(found)
    return list(_followed(course, value, found, (sharp, slow))), found


def _alarmed(found: Baseline) -> tuple[Ints, Ints]:
    """Rows at which a row or two are beyond chance, and those at which a mean of several is."""
    z = found.z
    if np.isfinite(z).sum() < BLOCK:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    limits = [max(pair) for pair in zip(_limits(z), _limits(found.noise), strict=True)]
    sharp, slow = [], []
    for first in range(0, len(z), PIECE):
        rows, back = z[max(first - LONGEST_MEAN, 0) : first + PIECE], min(first, LONGEST_MEAN)
        beyond = [each > limit for each, limit in zip(_statistics(rows), limits, strict=True)]
        sharp.append(first + np.flatnonzero((beyond[0] | beyond[1])[back:]))
        slow.append(first + np.flatnonzero(np.logical_or.reduce(beyond[2:])[back:]))
    return np.concatenate(sharp), np.concatenate(slow)


def _statistics(z: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Of each row and those before it: z, the lower of two, means of some cut-off values."""
    full = np.nan_to_num(z, nan=0.0)
    two = full.copy()
    np.minimum(full[1:], full[:-1], out=two[1:])
    clipped = np.clip(full, -CLIP, CLIP)
    return [full, two, *(mean_of(clipped, n) for n in MEANS)]


def _limits(z: NDArray[np.float32]) -> list[float]:
    """What each statistic exceeds by chance, from windows evenly over the run."""
    starts = range(0, len(z), max(len(z) // MOST_WINDOWS, WINDOW))
    windows = [_statistics(z[start : start + WINDOW]) for start in starts]
    sampled = [np.concatenate(each) for each in zip(*windows, strict=True)]
    calm = ~(_spread(sampled[2 + MEANS.index(8)] > HIGH, 8) | _spread(sampled[1] > TWICE_HIGH, 2))
    chance = LEVEL / (2 + len(MEANS))
    least = [chance, chance**0.5, *(chance for _ in MEANS)]
    dofs = [ONE_DOF, TWO_DOF, *(MEAN_DOF for _ in MEANS)]
    roots = [1.0, 1.0, *(n**0.5 for n in MEANS)]
    return [
        max(threshold(each, calm, chance, dof), -float(special.ndtri(p)) / root)
        for each, dof, p, root in zip(sampled, dofs, least, roots, strict=True)
    ]


def mean_of(x: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    """Mean of each value and the n - 1 before it, n a power of 2; 0 stands before the first."""
    sums, width = x.copy(), 1
    while width < n:
        sums[width:] += sums[:-width].copy()
        width *= 2
    return sums / np.float32(n)


def _spread(rows: Bools, n: int) -> Bools:
    """Rows, and the n - 1 before each."""
    found = rows.copy()
    for _ in range(n - 1):
        found[:-1] |= found[1:]
    return found


def threshold(x: NDArray[np.float32], calm: Bools, chance: float, fewest_dof: float) -> float:
    """The value that calm rows exceed with a chance, by the Student tail that they show.

    Only rows above 0 tell it: where a loss falls steeply, rows below are far below.
    """
    sample = x[calm] if calm.any() else x
    above = sample[sample > 0]
    if len(above) < BLOCK:
        return 0.0
    places = [len(above) // 2, int((2 * _TAIL - 1) * len(above))]
    quartile, tail = np.partition(above, places)[places]
    dof = float(np.interp(-max(tail / quartile, _NORMAL_RATIO), -_RATIOS, _DOFS))
    dof = max(dof, fewest_dof)
    unit = quartile / special.stdtrit(dof, _QUARTILE)
    above_ratio = chance * len(sample) / (2 * len(above))
    return float(-unit * special.stdtrit(dof, min(above_ratio, 0.5)))


def _followed(
    course: Course, value: Floats, found: Baseline, alarms: tuple[Ints, Ints]
) -> Iterator[Excursion]:
    """Each excursion from its first high row to the first calm one.

    A mean that holds rows of the excursion before says nothing of those behind it.
    """
    sharp, behind = set(alarms[0].tolist()), 0
    for alarm in np.union1d(*alarms).tolist():
        if alarm < behind or (behind and alarm < behind + LONGEST_MEAN and alarm not in sharp):
            continue
        segment = course.segment_of(alarm)
        first = max(alarm - LONGEST_MEAN + 1, int(course.starts[segment]), behind)
        first = _first_high(found.z, first, alarm)
        excursion = _one(value, found, first, (max(alarm, first), course.end_of(segment)))
        end = excursion.last_high + 1 if excursion.calm is None else excursion.calm
        behind = min(end, excursion.first + LONGEST)
        yield excursion


def _first_high(z: NDArray[np.float32], first: int, alarm: int) -> int:
    """The first high row of those behind each other that lead to an alarm."""
    row = alarm
    while row > first and not z[row] > HIGH:
        row -= 1
    calm = 0
    for earlier in range(row - 1, first - 1, -1):
        calm = 0 if z[earlier] > HIGH else calm + 1
        if calm >= CALM_ROWS:
            break
        if calm == 0:
            row = earlier
    return row


def _one(value: Floats, found: Baseline, first: int, within: tuple[int, int]) -> Excursion:
    """An excursion against level and scale at its start, with an alarm, before an end.

    Rows that cannot be judged are passed over.
    """
    alarm, end = within
    level, scale = found.at(first)
    rows = first + np.flatnonzero(~np.isnan(value[first:end]))
    high = value[rows] > level + HIGH * scale
    high |= rows == alarm
    places = np.flatnonzero(high)
    gaps = np.flatnonzero(np.diff(np.append(places, len(rows) + CALM_ROWS)) > CALM_ROWS)
    last = int(places[gaps[0]]) if len(gaps) else int(places[-1])
    last_high = int(rows[last])
    calm = int(rows[last + 1]) if last + 1 < len(rows) else None
    own = rows[: last + 1]
    peak = int(own[np.argmax(np.where(np.isfinite(value[own]), value[own], -np.inf))])
    return Excursion(
        first, peak, last_high, calm, float((value[peak] - level) / scale), level, scale
    )
