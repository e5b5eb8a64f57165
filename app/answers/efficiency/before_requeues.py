"""Which attempts before a requeue does no record show, so that GPU-hours are bounds?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.answers.reliability.detection import before_requeues
from app.words import numbers
from data.queries import detection

if TYPE_CHECKING:
    from analytics.efficiency.goodput import Bucket
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


def cost_in_words(lost: Bucket, cause: str | None) -> str:
    """What failures lost at least and at most, and which cause most of what is recorded."""
    known = numbers.number(lost.gpu_hours.value)
    most = "" if cause is None else f", most by {cause}"
    return (
        f"Failures lost {numbers.spread(lost.gpu_hours)} GPU-hours, as attempts before a requeue "
        f"are missing: {known} of the attempts recorded{most}."
    )
