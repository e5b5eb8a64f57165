"""What stood beside an episode, and how often such a coincidence is chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Floats, Ints

LEAD_S: Final = 600.0
"""An event so long before an episode may still be its cause."""


@dataclass(frozen=True)
class Coincidence:
    """Events that lie in the window of an episode."""

    events: Ints
    """Their places among the events."""
    chance: float | None
    """Share of the moments of the run at which a window of that length would hold one; None where
    the run's time is not known."""
    window_s: float
    n_events: int
    """Of the whole run."""


def coincidence(
    window: tuple[float, float], events: Floats, spans: Sequence[tuple[float, float]]
) -> Coincidence:
    """Events near an episode, and the share of windows placed at random that hold one too.

    With w the length of the window, 10 minutes before the episode included, S the time in which
    the run's attempts ran and e_i the events,

    .. math:: p = |S \\cap \\bigcup_i [e_i - w, e_i]| / |S|

    is exact for a window that begins anywhere in S with equal chance: no rate is assumed, and
    events that come in bursts count once.

    Parameters
    ----------
    window : (start, end)
        Of the episode, seconds.
    events : array
        When something was observed on the run's nodes, seconds, in order.
    spans : sequence of (start, end)
        When its attempts ran, seconds, in order.

    Notes
    -----
    Misleads where events were collected over a part of the run only: they are then denser than
    p says.

    Examples
    --------
    >>> found = coincidence((5000.0, 5100.0), np.array([4900.0, 90_000.0]), [(0.0, 100_000.0)])
    >>> found.events.tolist(), round(found.chance, 3)
    ([0], 0.014)
    """
    start, end = window[0] - LEAD_S, window[1]
    inside = np.flatnonzero((events >= start) & (events <= end))
    length = end - start
    begins = np.array([span[0] for span in spans], dtype=float)
    ends = np.array([span[1] for span in spans], dtype=float)
    total = float((ends - begins).sum()) if len(spans) else 0.0
    if total <= 0 or not np.isfinite([length, total]).all():
        return Coincidence(inside, None, length, len(events))
    held, behind = 0.0, -np.inf
    for event in events.tolist():
        first, last = max(event - length, behind), event
        behind = event
        held += float(np.maximum(np.minimum(ends, last) - np.maximum(begins, first), 0.0).sum())
    return Coincidence(inside, min(held / total, 1.0), length, len(events))
