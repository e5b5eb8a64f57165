"""ETTR of one run as it went on: up to each moment, and over a sliding window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics import validate
from analytics.failures.columns import require

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

WINDOW_S = 3_600.0
"""Window of the sliding ETTR: ByteRobust's (papers.md F)."""
POINTS = 400
"""Moments drawn beside the breakpoints: between two of these a ratio of lines is a curve."""
LEAST_S = 1e-6
"""Time below which a window holds nothing."""
COLUMNS = ("eligible_s", "waited_s", "start_s", "ran_s", "startup_s", "checkpoint_s", "lost_s",
           "productive_s")  # fmt: skip
"""Columns of the attempts: moments in seconds since the epoch, the others seconds."""


@dataclass(frozen=True)
class EttrOverTime:
    """ETTR of a run at moments in order; NaN where there is nothing to divide by."""

    at_s: Floats
    """Seconds since the epoch: every breakpoint and moments between them."""
    cumulative: Floats
    """Productive over queued and scheduled time up to then; its last is the run's ETTR."""
    sliding: Floats
    """The same of the last `window_s`; NaN where the run neither waited nor ran then."""
    elapsed: Floats
    """Productive time over all time since the run became eligible, ByteRobust's cumulative ETTR."""
    window_s: float


@dataclass(frozen=True)
class _Line:
    """A function of time, linear between its knots and level beyond them."""

    knots: Floats
    values: Floats

    def __call__(self, at: ArrayLike) -> Floats:
        return np.asarray(np.interp(np.asarray(at, dtype=float), self.knots, self.values))


def ettr_over_time(
    attempts: pd.DataFrame, *, window_s: float = WINDOW_S, points: int = POINTS
) -> EttrOverTime:
    """ETTR of one run over time, in two definitions of what it is divided by.

    With R(t), Q(t), S(t) the productive, queued and scheduled time up to t, seconds:

    .. math:: E(t) = \\frac{R(t)}{Q(t) + S(t)}, \\quad
        E_h(t) = \\frac{R(t) - R(t - h)}{A(t) - A(t - h)}, \\; A = Q + S

    An attempt starts up first, then works; its checkpoints are spread evenly over the work, and
    what it lost is the last of it. So R and A are linear between
    breakpoints and both ratios are exact everywhere. Time between two submissions of the run is
    not available: nobody waited.

    Parameters
    ----------
    attempts : DataFrame
        One row an attempt: `eligible_s`, `start_s` (seconds since the epoch; a start of NaN: never
        started), `waited_s`, `ran_s` (seconds of waiting from eligible, of running from the
        start), and of the latter `startup_s`, `checkpoint_s`, `lost_s`, `productive_s`.
    window_s : float
        h, seconds; > 0.
    points : int
        Moments evenly spaced, beside the breakpoints; >= 0.

    Raises
    ------
    OutOfRangeError
        For a window that is not > 0 or a negative number of points.

    Notes
    -----
    ByteRobust (papers.md F) divides productive time by all time elapsed: `elapsed`. It is lower
    where a run paused between submissions, and blames the scheduler for it. When lost work was
    done is known to the interval between checkpoints only.

    Examples
    --------
    >>> import pandas as pd
    >>> row = (0, 100, 100, 900, 100, 0, 300, 500)
    >>> found = ettr_over_time(pd.DataFrame([row], columns=list(COLUMNS)), points=0, window_s=400)
    >>> found.at_s.tolist()
    [0.0, 100.0, 200.0, 400.0, 500.0, 600.0, 700.0, 1000.0]
    >>> found.cumulative[-1].item(), found.sliding[-1].item(), found.elapsed[-1].item()
    (0.5, 0.25, 0.5)
    """
    validate.positive("window_s", window_s, "pass seconds, e.g. 3600")
    validate.nonnegative("points", points, "pass how many, e.g. 400")
    require("attempts", attempts, COLUMNS)
    rows = {name: attempts[name].to_numpy(dtype=float) for name in COLUMNS}
    began = np.fmin(rows["eligible_s"], rows["start_s"])
    first = float(np.nanmin(began)) if len(attempts) and not np.isnan(began).all() else 0.0
    productive = _sum_of_spans(*_productive(rows), origin=first)
    available = _sum_of_spans(*_available(rows), origin=first)
    last = max(productive.knots[-1], available.knots[-1])
    breaks = np.concatenate([productive.knots, available.knots])
    moments = np.concatenate([breaks, breaks + window_s, np.linspace(0.0, last, points)])
    at = np.unique(moments[(moments >= 0.0) & (moments <= last)])
    before = at - window_s
    return EttrOverTime(
        at_s=first + at,
        cumulative=_ratio(productive(at), available(at)),
        sliding=_ratio(productive(at) - productive(before), available(at) - available(before)),
        elapsed=_ratio(productive(at), at),
        window_s=window_s,
    )


def _productive(rows: dict[str, Floats]) -> tuple[Floats, Floats, Floats]:
    """When attempts did work that they kept, and how much of it."""
    after = np.maximum(rows["ran_s"] - rows["startup_s"], 0.0)
    worked = np.maximum(after - rows["checkpoint_s"], 0.0)
    kept = np.maximum(worked - rows["lost_s"], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.where(worked > 0, kept * after / worked, 0.0)
    begin = rows["start_s"] + rows["startup_s"]
    return begin, begin + length, rows["productive_s"]


def _available(rows: dict[str, Floats]) -> tuple[Floats, Floats, Floats]:
    """When attempts waited and ran."""
    begin = np.concatenate([rows["eligible_s"], rows["start_s"]])
    length = np.concatenate([rows["waited_s"], rows["ran_s"]])
    return begin, begin + length, length


def _sum_of_spans(begin: Floats, end: Floats, amount: Floats, *, origin: float) -> _Line:
    """How much of all amounts had come by a time since the origin, each evenly over its span."""
    held = ~np.isnan(begin) & (end > begin) & (amount > 0)
    start, stop, given = begin[held] - origin, end[held] - origin, amount[held]
    knots, place = np.unique(np.concatenate([[0.0], start, stop]), return_inverse=True)
    slope = given / (stop - start)
    change = np.zeros(len(knots))
    np.add.at(change, place[1:], np.concatenate([slope, -slope]))
    grown = np.cumsum(change)[:-1] * np.diff(knots)
    return _Line(knots, np.concatenate([[0.0], np.cumsum(grown)]))


def _ratio(productive: Floats, available: Floats) -> Floats:
    """Productive over available time; rounding kept out of what is never beyond [0, 1]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(available > LEAST_S, productive / available, np.nan)
    return np.asarray(np.clip(ratio, 0.0, 1.0))
