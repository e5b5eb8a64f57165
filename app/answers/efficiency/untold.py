"""What GPU-hours do not tell: attempts before a requeue, and jobs that state no GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.reliability.mttf import counted_in_nodes
from app.answers.reliability.detection import before_requeues
from app.words import numbers
from data.queries import detection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.efficiency.goodput import Bucket
    from data.filters import Selection
    from data.store import Store

BOUNDED = (
    "Where attempts before a requeue are missing, the bounds hold what they may have changed; the "
    "GPU-hours are those of the attempts recorded."
)


def missing_attempts(store: Store, selection: Selection) -> tuple[str, ...]:
    """Attempts before a requeue that are missing, in the words of MTTF."""
    unknown = detection.restarts_unknown(store, selection)
    return tuple(before_requeues(detection.restarts(store, selection), unknown))


def bounded_cost(lost: Bucket, cause: str | None) -> str:
    """What failures lost at least and at most, and which cause most of what is recorded."""
    known = numbers.number(lost.gpu_hours.value)
    most = "" if cause is None else f", most by {cause}"
    return (
        f"Failures lost {numbers.bounds(lost.gpu_hours)} GPU-hours, as attempts before a requeue "
        f"are missing: {known} of the attempts recorded{most}."
    )


def node_hours_in_words(node_hours: Mapping[str, float], unknown: str) -> str:
    """How long their nodes ran, and what of it is not known.

    >>> node_hours_in_words({"cpu": 48.0}, "where they went")
    'No job of cpu states GPUs: time is counted in node-hours (nodes x running time), 48.0 in this \
selection; where they went is not known.'
    """
    ran = numbers.number(sum(node_hours.values()))
    return f"{counted_in_nodes(node_hours)}, {ran} in this selection; {unknown} is not known."


def node_hours(node_hours: Mapping[str, float], unknown: str) -> tuple[str, ...]:
    """The same where the selection has such clusters."""
    return (node_hours_in_words(node_hours, unknown),) if node_hours else ()
