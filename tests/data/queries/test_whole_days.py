"""Days that a period holds whole are those that begin and end in it by every cluster's clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from data import running_time
from data.filters import Selection
from data.queries.whole_days import NONE, whole_days

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.store import Store

ZONES = {
    "utc": ("UTC", "UTC"),
    "berlin": ("Europe/Berlin", "UTC"),
    "far apart": ("Pacific/Kiritimati", "America/New_York"),
}
PERIODS = [
    (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 15, tzinfo=UTC)),
    (datetime(2026, 3, 20, 19, 37, tzinfo=UTC), datetime(2026, 4, 3, 5, 1, tzinfo=UTC)),
    (datetime(2026, 10, 20, 23, 59, tzinfo=UTC), datetime(2026, 11, 9, 12, tzinfo=UTC)),
]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are kept of a single job."""
    monkeypatch.setattr(running_time, "LEAST_JOBS", 0)


def begins(day: int, zone: str) -> datetime:
    """When a day, counted from 1970-01-01, begins by the clocks of a zone."""
    date = datetime(1970, 1, 1) + timedelta(days=day)  # noqa: DTZ001  of a wall clock
    return date.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("zones", ZONES.values(), ids=ZONES)
def test_a_whole_day_lies_in_the_period_by_every_clock(
    zones: tuple[str, str], store_of: Callable[[Any], Store], rows_of: Callable[..., Any]
) -> None:
    rows = rows_of(zones=dict(zip(("gpu", "four"), zones, strict=True)))
    for cluster in ("gpu", "four"):
        rows.job(cluster, cluster=cluster, start_at=PERIODS[0][0])
    store = store_of(rows)
    for from_at, to_at in PERIODS:
        found = whole_days(store, Selection(from_at=from_at, to_at=to_at), 1)
        assert found.found
        assert found.begun_at is not None
        assert found.ended_at is not None
        for zone in zones:
            assert from_at <= begins(found.first, zone) <= found.begun_at
            assert found.ended_at <= begins(found.until, zone) <= to_at
        assert found.until - found.first >= (to_at - from_at) / timedelta(days=1) - 4


@pytest.mark.usefixtures("kept")
def test_of_clocks_in_utc_every_whole_day_is_found(
    store_of: Callable[[Any], Store], rows_of: Callable[..., Any]
) -> None:
    rows = rows_of(zones={"gpu": "UTC"})
    rows.job("one", start_at=PERIODS[0][0])
    store = store_of(rows)
    from_at, to_at = PERIODS[0]
    found = whole_days(store, Selection(from_at=from_at, to_at=to_at), 14)
    assert (found.begun_at, found.ended_at) == (from_at, to_at)
    assert found.until - found.first == 14
    assert whole_days(store, Selection(from_at=from_at, to_at=to_at), 15) == NONE
    assert whole_days(store, Selection(account="a"), 1) == NONE


@pytest.mark.usefixtures("kept")
def test_a_period_at_the_end_of_the_calendar_is_none_to_stumble_over(
    store_of: Callable[[Any], Store], rows_of: Callable[..., Any]
) -> None:
    rows = rows_of(zones={"gpu": "Europe/Berlin"})
    rows.job("one", start_at=PERIODS[0][0])
    store = store_of(rows)
    first, last = (datetime(*day, tzinfo=UTC) for day in ((1, 1, 1), (9999, 12, 31)))
    before_all, after_all = Selection(to_at=first), Selection(from_at=last)
    assert whole_days(store, Selection(from_at=first), 7).found
    assert whole_days(store, Selection(to_at=last), 7).found
    day = (first - datetime(1970, 1, 1, tzinfo=UTC)).days
    assert day - 1 <= whole_days(store, before_all, 7).until <= day
    assert whole_days(store, after_all, 7) == NONE
