"""The figure of coverage by source and day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

from analytics.fleet.coverage import coverage
from app.figures.fleet.coverage import figure as drawn

FROM, TO = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 11, tzinfo=UTC)


def _days(source: str, days: list[int], cluster: str = "c") -> pd.DataFrame:
    at = [pd.Timestamp(FROM) + pd.Timedelta(days=day) for day in days]
    return pd.DataFrame({"cluster": cluster, "source": source, "day": at, "n_rows": 5})


def _figure(
    days: pd.DataFrame, missing: tuple[str, ...] = (), to_at: datetime = TO
) -> dict[str, Any]:
    held = coverage(days, days.head(0), expected=[*set(days["source"]), *missing])
    return drawn(held, FROM, to_at).to_dict()


def _bars(figure: dict, name: str) -> list[tuple[str, str, float]]:
    (bar,) = (trace for trace in figure["data"] if trace["name"] == name)
    day_ms = 86_400_000
    return [
        (row, str(base.date()), length / day_ms)
        for row, base, length in zip(bar["y"], bar["base"], bar["x"], strict=True)
    ]


def test_gaps_are_hatched_spells_and_never_zero() -> None:
    days = _days("jobs", [0, 1, 2, 5, 6, 7, 8, 9])
    figure = _figure(days)
    assert _bars(figure, "covered") == [("jobs", "2026-01-01", 3), ("jobs", "2026-01-06", 5)]
    assert _bars(figure, "no record") == [("jobs", "2026-01-04", 2)]
    (gap,) = (trace for trace in figure["data"] if trace["name"] == "no record")
    assert gap["marker"]["pattern"]["shape"] == "/"
    assert gap["customdata"] == ["no record, 4 Jan 2026 to 5 Jan 2026 (2 days)"]


def test_a_source_without_any_record_has_a_hatched_row() -> None:
    figure = _figure(_days("jobs", [0]), ("node_events",))
    assert ("node_events (no record)", "2026-01-01", 10) in _bars(figure, "no record")


def test_what_retention_removed_is_forgotten_and_neither_quiet_nor_unknown() -> None:
    days = pd.concat([_days("jobs", [1, 5, 6, 9]), _days("node_events", [2])])
    before = {name: datetime(2026, 1, 5, tzinfo=UTC) for name in ("jobs", "health_events")}
    asked = _days("jobs", [2, 7])[["cluster", "source", "day"]]
    expected = ["jobs", "health_events.kernel"]
    held = coverage(days, days.head(0), expected=expected, collected=asked, forgotten=before)
    figure = drawn(held, FROM, TO).to_dict()
    jobs = {name: _bars(figure, name) for name in ("forgotten", "no record")}
    assert jobs["forgotten"] == [
        ("jobs", "2026-01-01", 1),
        ("jobs", "2026-01-03", 2),
        ("health_events.kernel (no record)", "2026-01-01", 4),
    ]
    assert ("jobs", "2026-01-05", 1) in jobs["no record"]
    assert ("health_events.kernel (no record)", "2026-01-05", 6) in jobs["no record"]
    assert ("node_events", "2026-01-01", 2) in jobs["no record"]  # it keeps everything
    assert held.quiet["day"].dt.day.tolist() == [8]
    assert held.n_gaps == 2  # the 5th and the 9th


def test_the_axis_says_its_zone() -> None:
    figure = _figure(_days("jobs", [0]))
    assert figure["layout"]["xaxis"]["title"]["text"] == "Day (UTC)"


def test_clusters_are_told_apart_where_there_are_several() -> None:
    days = pd.concat([_days("jobs", [0], "a"), _days("jobs", [0], "b")])
    figure = _figure(days)
    assert {row for row, _, _ in _bars(figure, "covered")} == {"a · jobs", "b · jobs"}


def test_ten_years_are_drawn_in_spans_that_have_a_width() -> None:
    days = _days("jobs", list(range(0, 3650, 30)))
    figure = _figure(days, to_at=FROM + timedelta(days=3650))
    assert "spans of 28 days" in figure["layout"]["title"]["text"]
    assert sum(len(trace["x"]) for trace in figure["data"]) < 100
