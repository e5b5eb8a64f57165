"""How many failures a node has had by a time, on average: the mean cumulative function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate

if TYPE_CHECKING:
    from analytics.arrays import Floats, Ints
    from analytics.reliability.availability import Spans

POINTS: Final = 60
"""Times at which the function is told."""


@dataclass(frozen=True)
class MeanCumulative:
    """Failures of a node by a time; arrays of shape (times,)."""

    at_s: Ints
    """Seconds since 1970."""
    value: Floats
    lower: Floats
    upper: Floats
    at_risk: Ints
    """Nodes that were there."""
    n_nodes: int
    n_events: int
    conf_level: float
    variance: Floats = field(default_factory=lambda: np.zeros(0))
    """Of the value, between nodes."""

    @property
    def last(self) -> Estimate:
        """At the end."""
        if not len(self.at_s):
            return Estimate(None, None, None, self.conf_level, self.n_events)
        ends = (float(curve[-1]) for curve in (self.value, self.lower, self.upper))
        value, lower, upper = ends
        return Estimate(value, lower, upper, self.conf_level, self.n_events)


def mean_cumulative(
    there: Spans, node: Ints, at_s: Ints, *, conf_level: float = CONF_LEVEL
) -> MeanCumulative:
    """Mean cumulative number of failures of a node, by time.

    .. math:: M(t) = \\sum_{t_j \\le t} d_j / Y(t_j), \\qquad \\mathrm{var} M(t) = \\sum_i \\left[
        \\sum_{t_j \\le t} \\frac{Y_i(t_j)}{Y(t_j)} \\left( d_{ij} - \\frac{d_j}{Y(t_j)} \\right)
        \\right]^2

    with d_j failures at t_j, d_ij those of node i, and Y the nodes that were there then, Y_i of
    them i. It needs no model, and nodes may fail again and again: the variance is that between
    nodes, times Y / (Y - 1). The interval is that of the logarithm, with Student's quantile of
    Y - 1.

    Parameters
    ----------
    there : Spans
        Times in which nodes were there; a node may have several.
    node, at_s : ndarray of int, shape (n_events,)
        Ordinal of the node, and second, of each failure; those of a node that was not there are
        left out.

    Misleads where nodes that leave would have failed otherwise than those that stay.

    References
    ----------
    Nelson (2003), Recurrent Events Data Analysis, chapters 3 and 4; Lawless and Nadeau (1995),
    Technometrics 37, 158.

    Examples
    --------
    >>> import numpy as np
    >>> from analytics.reliability.availability import Spans
    >>> there = Spans(np.array([0, 1]), np.array([0, 0]), np.array([100, 100]))
    >>> found = mean_cumulative(there, np.array([0, 0, 1]), np.array([10, 20, 30]))
    >>> found.last.value, found.n_events
    (1.5, 3)
    """
    validate.conf_level(conf_level)
    begun, over = np.sort(there.start_s), np.sort(there.end_s)
    order = np.argsort(at_s, kind="stable")
    node, at = node[order], at_s[order]
    mine = _there(there, node, at)
    node, at = node[mine], at[mine]
    n_nodes = len(np.unique(there.node))
    nothing = np.zeros(0)
    if not len(begun):
        return MeanCumulative(at, nothing, nothing, nothing, at, 0, 0, conf_level)
    at_risk = np.searchsorted(begun, at, "right") - np.searchsorted(over, at, "right")
    step = 1.0 / np.maximum(at_risk, 1)
    times = np.unique(np.linspace(int(begun[0]), int(over[-1]) - 1, POINTS).astype(np.int64))
    value = _summed(step, at, times)
    variance = _variance(there, (node, at, step), times)
    risk = np.searchsorted(begun, times, "right") - np.searchsorted(over, times, "right")
    several = np.maximum(risk, 2)
    quantile = special.stdtrit(several - 1, (1.0 + conf_level) / 2.0)
    some = value > 0
    variance = variance * several / (several - 1)
    wide = quantile * np.sqrt(variance)
    factor = np.exp(wide[some] / value[some])
    lower, upper = value.copy(), value.copy()
    lower[some], upper[some] = value[some] / factor, value[some] * factor
    return MeanCumulative(times, value, lower, upper, risk, n_nodes, len(at), conf_level, variance)


def _there(there: Spans, node: Ints, at: Ints) -> Ints:
    """Places of the events whose node was there."""
    if not len(there.node):
        return np.zeros(0, dtype=np.int64)
    order = np.lexsort((there.start_s, there.node))
    starts = there.node[order] * (1 << 40) + there.start_s[order]
    spell = order[np.maximum(np.searchsorted(starts, node * (1 << 40) + at, "right") - 1, 0)]
    found: Ints = np.flatnonzero(
        (there.node[spell] == node) & (there.start_s[spell] <= at) & (at < there.end_s[spell])
    )
    return found


def _summed(step: Floats, at: Ints, times: Ints) -> Floats:
    """Sum of the steps up to each time; both rise."""
    passed = np.concatenate([[0.0], np.cumsum(step)])
    found: Floats = passed[np.searchsorted(at, times, "right")]
    return found


def _variance(there: Spans, events: tuple[Ints, Ints, Floats], times: Ints) -> Floats:
    """Between nodes: squares of what each had more than its share."""
    node, at, step = events
    n = int(there.node.max()) + 1
    own = np.zeros((n, len(times)))
    place = np.searchsorted(times, at, "left")
    inside = place < len(times)
    np.add.at(own, (node[inside], place[inside]), step[inside])
    own = np.cumsum(own, axis=1)
    square = step**2

    def share(until: Ints) -> Floats:
        """Squares of the steps up to then."""
        return _summed(square, at, until)

    for who, start, end in zip(
        there.node.tolist(), there.start_s.tolist(), there.end_s.tolist(), strict=True
    ):
        until = np.clip(times, start - 1, end - 1)
        own[who] -= share(until) - share(np.array([start - 1]))
    variance: Floats = (own**2).sum(axis=0)
    return variance
