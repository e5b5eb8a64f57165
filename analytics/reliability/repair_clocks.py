"""How long it takes until a node that failed is out of service, and until hands are laid on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy import special

from analytics.estimate import CONF_LEVEL, Estimate, unknown

if TYPE_CHECKING:
    from analytics.arrays import Floats, Ints
    from analytics.reliability.availability import Spans

BEFORE_S: Final = 86_400
"""A failure of a node so long before it goes out of service, and no longer, is why it does."""
TICKET_BEFORE_S: Final = 3_600
"""A ticket may be opened so long before."""
PERCENTILES: Final = (50, 90)


@dataclass(frozen=True)
class Clock:
    """How long something takes, of the outages of which records tell it."""

    hours: Floats
    outages: int
    """All of them."""
    percentiles: dict[int, Estimate]
    """Percentile -> hours."""

    @property
    def told(self) -> int:
        """Outages of which it is known."""
        return len(self.hours)


def to_drain(
    outages: Spans, node: Ints, failed_s: Ints, *, conf_level: float = CONF_LEVEL
) -> Clock:
    """From the last failure of a node within a day before it goes out of service, to that; it lies
    after the node's last return.

    Parameters
    ----------
    outages
        Unplanned times out of service.
    node, failed_s : ndarray of int
        Failures that name a node: its ordinal there, and seconds since 1970.
    """
    order = np.lexsort((failed_s, node))
    node, failed_s = node[order], failed_s[order]
    last = _place(node, failed_s, outages.node, outages.start_s, side="right") - 1
    known = last >= 0
    known[known] &= node[last[known]] == outages.node[known]
    waited = np.zeros(len(outages.node), dtype=np.int64)
    waited[known] = outages.start_s[known] - failed_s[last[known]]
    known &= (waited <= BEFORE_S) & (outages.start_s - waited >= _returned(outages))
    return _clock(waited[known] / 3600.0, len(outages.node), conf_level)


def to_hands(
    outages: Spans, node: Ints, opened_s: Ints, *, conf_level: float = CONF_LEVEL
) -> Clock:
    """From out of service to the first ticket of the node that was opened before it returned, or
    within an hour before it went, after its last return."""
    order = np.lexsort((opened_s, node))
    node, opened_s = node[order], opened_s[order]
    since = np.maximum(outages.start_s - TICKET_BEFORE_S, _returned(outages) + 1)
    first = _place(node, opened_s, outages.node, since, side="left")
    known = first < len(node)
    known[known] &= node[first[known]] == outages.node[known]
    waited = np.zeros(len(outages.node), dtype=np.int64)
    waited[known] = opened_s[first[known]] - outages.start_s[known]
    known &= waited <= outages.end_s - outages.start_s
    return _clock(np.maximum(waited[known], 0) / 3600.0, len(outages.node), conf_level)


def _returned(outages: Spans) -> Ints:
    """When the node of each outage returned from the one before; long ago where there is none."""
    order = np.lexsort((outages.start_s, outages.node))
    node, end_s = outages.node[order], outages.end_s[order]
    before = np.full(len(order), -(2**39), dtype=np.int64)
    again = np.flatnonzero(node[1:] == node[:-1]) + 1
    before[again] = end_s[again - 1]
    found = np.empty_like(before)
    found[order] = before
    return found


def _place(node: Ints, at: Ints, of: Ints, when: Ints, *, side: Literal["left", "right"]) -> Ints:
    """Where a time of a node stands among those of all nodes, sorted by node and time."""
    apart = np.int64(2**40)
    keys, asked = node * apart + at, of * apart + when
    place: Ints = np.searchsorted(keys, asked, side=side)
    return place


def _clock(hours: Floats, outages: int, conf_level: float) -> Clock:
    return Clock(hours, outages, {p: quantile(hours, p / 100, conf_level) for p in PERCENTILES})


def quantile(values: Floats, share: float, conf_level: float) -> Estimate:
    """The quantile of a sample, between two of its values by their ranks (exact, of no family).

    >>> import numpy as np
    >>> quantile(np.arange(1.0, 22.0), 0.5, 0.9)
    Estimate(value=11.0, lower=7.0, upper=15.0, conf_level=0.9, n=21)
    """
    n = len(values)
    if not n:
        return unknown(conf_level, 0)
    tail = (1.0 - conf_level) / 2.0
    below = special.bdtr(np.arange(n), n, share)  # chance of at most so many below the quantile
    low = int((below <= tail).sum()) - 1
    high = int((below < 1.0 - tail).sum()) + 1
    ordered = np.sort(values)
    return Estimate(
        float(np.quantile(ordered, share)),
        float(ordered[low]) if low >= 0 else None,
        float(ordered[high - 1]) if high <= n else None,
        conf_level,
        n,
    )
