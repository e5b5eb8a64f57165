"""Which attempts before a requeue does no record show, so that GPU-hours are bounds?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.answers.reliability.detection import before_requeues
from data.queries import detection

if TYPE_CHECKING:
    from data.filters import Selection
    from data.store import Store

BOUNDED = (
    "Where attempts before a requeue are missing, the bounds hold what they may have changed; the "
    "GPU-hours are those of the attempts recorded."
)


def notes(store: Store, selection: Selection) -> tuple[str, ...]:
    """Attempts before a requeue that are missing, in the words of MTTF."""
    unknown = detection.restarts_unknown(store, selection)
    return tuple(before_requeues(detection.restarts(store, selection), unknown))
