"""Roll-outs on charts along days: within the axis, with what they were, and on no other chart."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import plotly.graph_objects as go
import pytest

from app.answers.reliability.rollouts import marks
from app.figures import rollouts, template
from data.filters import Selection
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FIRST = date(2026, 1, 5)
SEVERAL = [
    (FIRST + timedelta(days=day), FIRST + timedelta(days=day + 1), f"driver {day}")
    for day in (-40, 3, 9, 400)
]


@pytest.mark.parametrize(
    "axis",
    [
        [datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 26, tzinfo=UTC)],
        [FIRST, FIRST + timedelta(days=21)],
        ["2026-01-05", "2026-01-26"],
    ],
)
def test_marks_lie_within_the_axis_and_say_what_it_was(axis: Sequence[object]) -> None:
    chart = go.Figure(go.Scatter(x=axis, y=[1, 2]))
    rollouts.marked(chart, SEVERAL, template.PALETTES["light"])
    said = [each.hovertext for each in chart.layout.annotations]
    assert said == ["driver 3, 8 Jan 2026 to 9 Jan 2026", "driver 9, 14 Jan 2026 to 15 Jan 2026"]
    assert len(chart.layout.shapes) == 2


def test_what_has_no_times_has_no_marks() -> None:
    for chart in (go.Figure(), go.Figure(go.Bar(x=["a", "b"], y=[1, 2]))):
        rollouts.marked(chart, SEVERAL, template.PALETTES["light"])
        assert not chart.layout.annotations


def test_only_those_of_the_period_are_asked_for(demo_store: Path) -> None:
    store = Store.open(demo_store)
    every = marks(store, Selection())
    assert any("driver" in text for *_, text in every)
    last = max(end for _, end, _ in every)
    later = datetime(last.year, last.month, last.day, tzinfo=UTC) + timedelta(days=2)
    assert marks(store, Selection(from_at=later)) == ()
    store.close()
