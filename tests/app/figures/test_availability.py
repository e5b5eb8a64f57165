"""The figure of availability: shares of weeks, and weeks without records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.figures.reliability import availability

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
WEEK = timedelta(days=7)


def test_each_week_has_its_shares_and_one_without_records_is_hatched() -> None:
    weeks = [
        (MONDAY, (1, 2, 3, 94)),
        (MONDAY + WEEK, (0, 0, 0, 0)),
        (MONDAY + 2 * WEEK, (0, 0, 0, 50)),
    ]
    drawn = availability.figure(weeks).to_dict()
    shares = {trace["name"]: list(trace["y"]) for trace in drawn["data"]}
    assert shares["planned"] == [0.01, 0.0]
    assert shares["down"] == [0.02, 0.0]
    assert shares["drained"] == [0.03, 0.0]
    assert shares["not collected"] == [0.06]
    assert drawn["layout"]["yaxis"]["title"]["text"] == "Share of node time (%)"
