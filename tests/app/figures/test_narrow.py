"""Figures on a screen of 390 px: what stood beside the plot stands in it or below it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from app.figures import narrow, template
from app.figures.explore import result_chart
from app.figures.reliability import mttf_by_size, rate_by_group, rate_over_time
from app.figures.training import slowdown_bars

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from analytics.reliability.mttf import GroupRate, MttfReport

NOTE = "all clusters · 1 Feb 2026 00:00 to 1 Mar 2026 00:00 UTC · synthetic data"
WIDTH_PX = 358


def rows_of_bars(**axis: object) -> go.Figure:
    """Two rows with a name, a bar and a value each."""
    chart = template.figure(title="Which causes fail most?", note=NOTE, mode="light", height=200)
    for place, value in enumerate((5.0, 2.0)):
        chart.add_bar(orientation="h", x=[value], y=[place], width=0.62)
        template.beside(chart, f"{value:g} in 10", place, colour="#123456")
    template.name_rows(chart, ["GPU memory error", "PCIe error"], "light", **axis)
    chart.update_layout(margin={"r": 190})
    return narrow.fitted(chart)


def texts(chart: go.Figure) -> dict[str, Any]:
    return {note.text: note for note in chart.layout.annotations}


def test_names_and_values_of_rows_stand_above_their_bars() -> None:
    chart = rows_of_bars()
    written = texts(chart)
    assert set(written) == {"GPU memory error", "5 in 10", "PCIe error", "2 in 10"}
    for name, side, y in (("GPU memory error", "left", 0), ("2 in 10", "right", 1)):
        place = written[name]
        assert (place.xanchor, place.y, place.yanchor) == (side, y, "bottom")
        assert place.yshift > 0
    assert written["5 in 10"].font.color == "#123456"
    assert chart.layout.margin.r + chart.layout.margin.l < 0.1 * WIDTH_PX
    assert chart.layout.yaxis.showticklabels is False


def test_a_row_holds_its_text_and_its_bar() -> None:
    chart = rows_of_bars()
    low, high = chart.layout.yaxis.range
    margin = chart.layout.margin
    row_px = (chart.layout.height - margin.t - margin.b) / (low - high)
    bar_px = chart.data[0].width * row_px
    text_px = texts(chart)["PCIe error"].yshift + 17
    assert bar_px == pytest.approx(16, abs=1)
    assert bar_px / 2 + text_px <= row_px
    assert -high * row_px >= text_px  # the first text is within the plot


def test_long_rows_take_two_lines() -> None:
    chart = template.figure(title="What?", note=NOTE, mode="light", height=200)
    chart.add_bar(orientation="h", x=[1.0], y=[0], width=0.62)
    template.beside(chart, "14 · 26,000 GPU-hours", 0, colour="#123456")
    template.name_rows(chart, ["File system not mounted or not answering"], "light")
    name, value = texts(narrow.fitted(chart)).values()
    assert name.yshift - value.yshift >= 15
    assert (name.x, value.x) == (0.0, 0.0)


def test_what_lies_below_the_rows_keeps_its_height() -> None:
    chart = template.figure(title="Run", note="", mode="light", height=326)
    chart.add_bar(orientation="h", x=[1.0], y=[0], width=0.62)
    chart.add_scatter(x=[0, 1], y=[0, 1], yaxis="y2")
    template.name_rows(chart, ["attempt 1"], "light", domain=[0.5, 1.0])
    chart.update_layout(yaxis2={"domain": [0.0, 0.4]})
    fitted = narrow.fitted(chart)
    plot_px = fitted.layout.height - fitted.layout.margin.t - fitted.layout.margin.b
    assert fitted.layout.yaxis2.domain[1] * plot_px == pytest.approx(0.4 * 200, abs=2)
    assert fitted.layout.yaxis.domain[0] > fitted.layout.yaxis2.domain[1]


def test_title_note_and_ticks_fit_the_screen(weeks: tuple[GroupRate, ...]) -> None:
    wide = rate_over_time.figure(weeks, weeks[0].estimate, note=NOTE)
    before = len(wide.layout.title.subtitle.text)
    chart = narrow.fitted(wide)
    lines = chart.layout.title.subtitle.text.split("<br>")
    assert before > 54
    assert max(map(len, lines)) <= 54
    assert max(map(len, chart.layout.title.text.split("<br>"))) <= 36
    assert chart.layout.margin.t >= 60 + 17 * (len(lines) - 1)
    assert chart.layout.dragmode is False


def test_names_of_series_stand_below_the_plot() -> None:
    chart = template.figure(title="What?", note="", mode="light", height=300)
    chart.add_scatter(x=[1, 2], y=[1, 2])
    names = "<br>".join(f"■ series {n}" for n in range(5))
    template.beside(chart, names, 1.0, colour="#123456", yref="paper", yanchor="top")
    chart.update_layout(margin={"r": 280})
    fitted = narrow.fitted(chart)
    left, right = fitted.layout.annotations
    assert (left.text.count("■"), right.text.count("■")) == (3, 2)
    assert {left.y, right.y} == {0.0}
    assert fitted.layout.margin.b + left.yshift >= 3 * 17
    assert fitted.layout.margin.r < 20


def test_a_name_that_would_leave_the_plot_turns_to_the_other_side(report: MttfReport) -> None:
    chart = mttf_by_size.figure(report, note=NOTE)
    assert {note.xanchor for note in chart.layout.annotations} == {"left"}
    turned = [note for note in narrow.fitted(chart).layout.annotations if note.xanchor == "right"]
    assert turned
    assert all(note.yanchor in ("bottom", "top") for note in turned)


def test_a_category_is_a_row(racks: tuple[GroupRate, ...]) -> None:
    chart = narrow.fitted(rate_by_group.figure(racks, racks[0].estimate, by="rack"))
    low, high = chart.layout.yaxis.range
    assert texts(chart)["r39"].xanchor == "left"
    assert low > high


def test_bars_that_grow_upwards_keep_their_order() -> None:
    chart = narrow.fitted(slowdown_bars.figure({"a": 1.2, "b": 1.1}, "stage"))
    low, high = chart.layout.yaxis.range
    assert low < 0 < 1 < high


def test_a_heat_map_has_its_colours_below_and_short_names() -> None:
    chart = template.figure(title="Map", note="", mode="light", height=300)
    chart.add_heatmap(z=[[1.0] * 20] * 2, colorbar={"thickness": 10})
    template.pickable(chart, [(0, 0, "", "says")])
    chart.add_scatter(x=[0], y=[0], text=["1.0"], mode="text")
    chart.update_yaxes(tickvals=[0, 1], ticktext=["a-rack-of-a-long-name", "r2"])
    fitted = narrow.fitted(chart)
    assert [trace.type for trace in fitted.data] == ["heatmap", "bar"]
    assert fitted.data[0].colorbar.orientation == "h"
    assert fitted.layout.yaxis.ticktext == ("a-rack-of-a-l…", "r2")


@dataclass(frozen=True)
class Ticks:
    axis: dict[str, Any]
    most: int


@pytest.mark.parametrize(
    "ticks",
    [
        Ticks({"tickvals": list(range(30)), "ticktext": [f"{n:,}" for n in range(1000, 1030)]}, 7),
        Ticks({"type": "log", "tickvals": [2**n for n in range(18)], "range": [0.0, 3.0]}, 8),
    ],
    ids=["names", "powers"],
)
def test_ticks_have_room(ticks: Ticks) -> None:
    chart = template.figure(title="What?", note="", mode="light", height=300)
    chart.add_scatter(x=[1, 2], y=[1, 2])
    chart.update_xaxes(**ticks.axis)
    assert 2 <= len(narrow.fitted(chart).layout.xaxis.tickvals) <= ticks.most


def test_a_long_legend_lies_below() -> None:
    rows = pd.DataFrame({"day": ["a", "b"] * 3, "n": range(6), "state": list("xxyyzz")})
    chart = result_chart.figure(rows, replace(result_chart.suggested(rows), colour="state"))
    fitted = narrow.fitted(chart)
    assert fitted.layout.legend.orientation == "h"
    assert fitted.layout.margin.b > 80


def test_an_empty_figure_stays_one() -> None:
    chart = narrow.fitted(template.figure(title="", note="", mode="dark", height=200))
    assert len(chart.data) == 0
    assert chart.layout.height > 100
