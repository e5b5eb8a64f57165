"""What was changed on the fleet and when, in words: marks of every chart along days."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.reliability.fleet_trend import Rollout, large
from data.queries import rollouts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from data.filters import Selection
    from data.store import Store


def rolled_out(store: Store, selection: Selection) -> list[Rollout]:
    """Roll-outs on 5 % of the nodes and more of the clusters of a selection, of all time."""
    return large(Rollout(*row) for row in rollouts.rollouts(store, selection))


def marks(store: Store, selection: Selection) -> tuple[tuple[date, date, str], ...]:
    """Those of the period as first day, last day, and what was changed."""
    first = selection.from_at and selection.from_at.date()
    last = selection.to_at and selection.to_at.date()
    every = [
        each
        for each in rolled_out(store, selection)
        if (first is None or each.end >= first) and (last is None or each.begin <= last)
    ]
    return tuple((each.begin, each.end, named(each, every)) for each in every)


def named(each: Rollout, every: Sequence[Rollout]) -> str:
    """What was changed, and on which of several clusters."""
    several = len({other.cluster for other in every}) > 1
    return what(each) + (f" on {each.cluster}" if several else "")


def what(each: Rollout) -> str:
    """What was changed, in words.

    >>> from datetime import date
    >>> day = date(2026, 1, 9)
    >>> what(Rollout("a", "driver", "535", "550", 12, 16, day, day))
    'driver 535 to 550'
    """
    if each.kind in ("nodes added", "nodes removed"):
        return each.kind
    if each.sight:
        return f"first record of {each.value}"
    return f"{each.kind} {each.before} to {each.value}"
