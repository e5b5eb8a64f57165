"""What of the past a rule tells: what its watch reaches, in order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.alerts.rule import Episode, Watch

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def reached(episodes: Iterable[Episode], watch: Watch) -> tuple[Episode, ...]:
    """Episodes that were raised by now and not over before the watch begins, in order."""
    found = [
        each
        for each in episodes
        if each.raised_at <= watch.now and (each.ended_at is None or each.ended_at > watch.from_at)
    ]
    return tuple(sorted(found, key=lambda each: (each.raised_at, each.target)))


def midnight(day: int) -> datetime:
    """When a day since 1970 begins, of UTC."""
    return EPOCH + timedelta(days=day)


def of_seconds(seconds: float) -> datetime:
    """A time in seconds since 1970."""
    return EPOCH + timedelta(seconds=seconds)
