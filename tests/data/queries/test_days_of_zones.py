"""Days and weeks begin where the cluster stands, also where clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from app.answers.fleet.choices import last_whole
from data.filters import Selection
from data.queries import rate_groups
from data.queries.exposure import runs
from data.queries.failures import by_cause

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.store import Store

HOUR = timedelta(hours=1)
CHANGES = {
    # zone, start in UTC, hours: hours on each day there
    "clocks forward": ("Europe/Berlin", (2026, 3, 28, 12), 48, {28: 11, 29: 23, 30: 14}),
    "clocks back": ("America/New_York", (2026, 11, 1, 0), 48, {31: 4, 1: 25, 2: 19}),
    "no midnight": ("Africa/Cairo", (2026, 4, 23, 12), 24, {23: 10, 24: 14}),
    "quarter of an hour": ("Asia/Kathmandu", (2026, 1, 5, 12), 12, {5: 6.25, 6: 5.75}),
    "half a day ahead": ("Pacific/Kiritimati", (2026, 1, 5, 9), 2, {5: 1, 6: 1}),
}


@pytest.mark.parametrize(("zone", "start", "hours", "days"), CHANGES.values(), ids=CHANGES)
def test_running_time_is_split_at_midnight_where_the_cluster_stands(
    zone: str,
    start: tuple[int, ...],
    hours: float,
    days: dict[int, float],
    store_of: Callable[[Any], Store],
    rows_of: Callable[..., Any],
) -> None:
    rows = rows_of(zones={"gpu": zone})
    begin = datetime(*start, tzinfo=UTC)  # type: ignore[misc,arg-type]
    rows.job("one", start_at=begin, end_at=begin + hours * HOUR)
    found = runs(store_of(rows), Selection())
    shown = zip(pd.DatetimeIndex(found["day"]).day, found["running_days"] * 24, strict=True)
    assert dict(shown) == pytest.approx(days)


def test_each_cluster_has_weeks_of_its_own(
    store_of: Callable[[Any], Store], rows_of: Callable[..., Any]
) -> None:
    """02:00 UTC on a Monday is still Sunday in New York, and already Monday in Berlin."""
    rows = rows_of(zones={"gpu": "America/New_York", "four": "Europe/Berlin"})
    monday = datetime(2026, 1, 12, 2, tzinfo=UTC)
    for cluster in ("gpu", "four"):
        rows.job(cluster, cluster=cluster, state="NODE_FAIL", start_at=monday - HOUR, end_at=monday)
    store = store_of(rows)
    table = rate_groups.groups(store, Selection(), "week").set_index("cluster")
    assert table["group"].to_dict() == {"four": "2026-01-12", "gpu": "2026-01-05"}
    assert table["failures"].to_dict() == {"four": 1, "gpu": 1}
    days = by_cause(store, Selection(cluster="gpu"))["day"].dt.strftime("%d")
    assert days.tolist() == ["11"]
    of = {cluster: last_whole(store, "week", cluster)[1] for cluster in ("gpu", "four", None)}
    assert of == {
        "gpu": datetime(2026, 1, 5, 5, tzinfo=UTC),
        "four": datetime(2026, 1, 11, 23, tzinfo=UTC),
        None: datetime(2026, 1, 12, tzinfo=UTC),
    }
