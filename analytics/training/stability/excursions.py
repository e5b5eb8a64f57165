"""Excursions of a series above its baseline: by size and by persistence, at a calibrated level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special, stats

from analytics.training.stability.baseline import BLOCK, baseline

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
HIGH: Final = 3.0
"""Rows of an excursion lie so many scales above the level."""
CALM_ROWS: Final = 3
"""Rows without a high one, after which an excursion is over."""
LONGEST: Final = 4096
"""Rows after which a level that stays high is the new one."""
MOST_SAMPLED: Final = 500_000
"""Rows, evenly chosen, that a statistic's distribution is taken from."""
_TAIL: Final = 0.98
_QUARTILE: Final = 0.75
_NORMAL_RATIO: Final = float(special.ndtri(_TAIL) / special.ndtri(_QUARTILE))
_MOST_DOF, _FEWEST_DOF = 1000.0, 1.5
_DOFS: Final = np.geomspace(_FEWEST_DOF, _MOST_DOF, 60)
_RATIOS: Final = stats.t.ppf(_TAIL, _DOFS) / stats.t.ppf(_QUARTILE, _DOFS)


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
    4. Each is compared with its own distribution along the run: centre and quartile, and the
    Student tail that its 98 % quantile shows, extrapolated to a chance of LEVEL / 6 a row. Noise
    that is heavy-tailed or correlated along steps thus raises its own threshold. Rows of which
    eight behind each other lie above 3 on average are left out of this distribution.

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
    sharp, slow = _alarmed(found.z)
    return list(_followed(course, value, found, (sharp, slow))), found


def _alarmed(z: NDArray[np.floating]) -> tuple[Ints, Ints]:
    """Rows at which a row or two are beyond chance, and those at which a mean of several is."""
    known = np.flatnonzero(np.isfinite(z))
    full = z[known].astype(float)
    if len(full) < BLOCK:
        return known[:0], known[:0]
    clipped = np.clip(full, -CLIP, CLIP)
    persists = mean_of(clipped, 8) > HIGH
    calm = ~_spread(persists, 8)
    chance = LEVEL / (2 + len(MEANS))
    two = np.minimum(full, np.concatenate([full[:1], full[:-1]]))
    beyond = full > max(threshold(full, calm, chance), -special.ndtri(chance))
    beyond |= two > max(threshold(two, calm, chance), -special.ndtri(chance**0.5))
    slow = np.zeros(len(full), dtype=bool)
    for n in MEANS:
        mean = mean_of(clipped, n)
        normal = -special.ndtri(chance) / n**0.5
        slow |= mean > max(threshold(mean, calm, chance), normal)
    return known[beyond], known[slow]


def mean_of(x: Floats, n: int) -> Floats:
    """Mean of each value and the n - 1 before it; of the first ones 0 stands before."""
    sums = np.cumsum(x)
    sums[n:] = sums[n:] - sums[:-n]
    return sums / n


def _spread(rows: Bools, n: int) -> Bools:
    """Rows, and the n - 1 before each."""
    found = rows.copy()
    for _ in range(n - 1):
        found[:-1] |= found[1:]
    return found


def threshold(x: Floats, calm: Bools, chance: float) -> float:
    """The value that calm rows exceed with a chance, by the Student tail that they show."""
    every = max(len(x) // MOST_SAMPLED, 1)
    sample = x[::every][calm[::every]] if calm.any() else x[::every]
    places = [len(sample) // 2, int(_QUARTILE * len(sample)), int(_TAIL * len(sample))]
    centre, quartile, tail = np.partition(sample, places)[places]
    if not quartile > centre:
        return float("inf")
    ratio = max((tail - centre) / (quartile - centre), _NORMAL_RATIO)
    dof = float(np.interp(-ratio, -_RATIOS, _DOFS))
    unit = (quartile - centre) / stats.t.ppf(_QUARTILE, dof)
    return float(centre + unit * stats.t.isf(chance, dof))


def _followed(
    course: Course, value: Floats, found: Baseline, alarms: tuple[Ints, Ints]
) -> Iterator[Excursion]:
    """Each excursion from its first high row to the first calm one.

    A mean that holds rows of the excursion before says nothing of those behind it.
    """
    ends = [*course.starts[1:].tolist(), course.n_rows]
    sharp, behind = set(alarms[0].tolist()), 0
    for alarm in np.union1d(*alarms).tolist():
        if alarm < behind or (behind and alarm < behind + max(MEANS) and alarm not in sharp):
            continue
        segment = int(np.searchsorted(course.starts, alarm, side="right")) - 1
        first = max(alarm - max(MEANS) + 1, int(course.starts[segment]), behind)
        first = _first_high(found.z, first, alarm)
        excursion = _one(value, found, first, max(alarm, first), ends[segment])
        behind = excursion.calm or excursion.last_high + 1
        yield excursion


def _first_high(z: NDArray[np.floating], first: int, alarm: int) -> int:
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


def _one(value: Floats, found: Baseline, first: int, alarm: int, end: int) -> Excursion:
    """An excursion against the level and scale at its start."""
    level, scale = float(found.level[first]), float(found.scale[first])
    high_above = level + HIGH * scale
    end = min(end, first + LONGEST)
    with np.errstate(invalid="ignore"):
        high = ~(value[first:end] <= high_above)
    high[: alarm - first + 1] |= np.arange(first, alarm + 1) == alarm
    rows = np.flatnonzero(high)
    gaps = np.flatnonzero(np.diff(np.append(rows, end - first + CALM_ROWS)) > CALM_ROWS)
    last_high = first + int(rows[gaps[0]]) if len(gaps) else first + int(rows[-1])
    calm = last_high + 1 if last_high + 1 < end else None
    with np.errstate(invalid="ignore"):
        peak = first + int(np.nanargmax(value[first : last_high + 1]))
    return Excursion(
        first, peak, last_high, calm, float((value[peak] - level) / scale), level, scale
    )
