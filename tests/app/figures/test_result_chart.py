"""The chart of a query's rows: a sensible first picture, titled axes, and what was left out."""

from __future__ import annotations

import pandas as pd
import pytest

from app.figures.explore.result_chart import MOST_BARS, MOST_POINTS, Chart, figure, suggested

DAYS = pd.date_range("2026-01-01", periods=4, tz="UTC")
RACKS = pd.DataFrame({"rack": ["r1", "r2"], "failures": [3, 1], "rate": [2.5, 0.5]})
DAILY = pd.DataFrame({
    "day_at": [*DAYS, *DAYS], "cause": ["nic"] * 4 + ["pcie"] * 4, "failures": range(8),
})  # fmt: skip
XIDS = pd.DataFrame({"xid": [31, 79, 13], "events": [5, 2, 9]})
POINTS = pd.DataFrame({"x": [1, 1, 2], "y": [0.5, 0.25, 1.0]})


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (RACKS, Chart("bar", "rack", "rate")),
        (DAILY, Chart("line", "day_at", "failures", "cause")),
        (DAILY.head(4), Chart("line", "day_at", "failures")),
        (XIDS, Chart("bar", "xid", "events")),
        (POINTS, Chart("scatter", "x", "y")),
        (RACKS.head(0), None),
        (RACKS[["rack"]], None),
        (RACKS[["rate"]], None),
    ],
    ids=["names", "times of causes", "times", "codes", "numbers", "none", "words", "one column"],
)
def test_the_first_picture_suits_the_columns(frame: pd.DataFrame, expected: Chart | None) -> None:
    assert suggested(frame) == expected


def test_axes_are_titled_by_their_columns() -> None:
    drawn = figure(RACKS, Chart("bar", "rack", "rate"), note="all clusters").to_dict()
    assert drawn["layout"]["xaxis"]["title"]["text"] == "rack"
    assert drawn["layout"]["yaxis"]["title"]["text"] == "rate"
    assert drawn["layout"]["title"]["subtitle"]["text"] == "all clusters"
    assert list(drawn["data"][0]["y"]) == [2.5, 0.5]
    assert list(drawn["layout"]["xaxis"]["categoryarray"]) == ["r1", "r2"]


def test_a_colour_is_a_series_each() -> None:
    drawn = figure(DAILY, Chart("line", "day_at", "failures", "cause"), mode="dark").to_dict()
    assert [series["name"] for series in drawn["data"]] == ["nic", "pcie"]
    assert drawn["layout"]["showlegend"]
    assert drawn["layout"]["legend"]["title"]["text"] == "cause"


def test_the_series_beyond_the_first_are_drawn_together() -> None:
    frame = pd.DataFrame({"a": range(40), "b": range(40), "c": [str(n % 10) for n in range(40)]})
    drawn = figure(frame, Chart("scatter", "a", "b", "c")).to_dict()
    assert len(drawn["data"]) == 6
    assert drawn["data"][-1]["name"] == "others"
    assert sum(len(series["x"]) for series in drawn["data"]) == 40


@pytest.mark.parametrize("kind", ["bar", "line", "scatter"])
def test_codes_and_times_are_drawn_by_every_kind(kind: str) -> None:
    for frame, x, y in ((XIDS, "xid", "events"), (DAILY, "day_at", "failures")):
        assert figure(frame, Chart(kind, x, y)).to_dict()["data"]  # type: ignore[arg-type]


def test_what_is_left_out_is_said() -> None:
    many = pd.DataFrame({"rack": [f"r{n}" for n in range(200)], "rate": range(200)})
    drawn = figure(many, Chart("bar", "rack", "rate"))
    assert f"the first {MOST_BARS} of 200 values of rack" in drawn.layout.title.subtitle.text
    points = pd.DataFrame({"a": range(9_000), "b": range(9_000)})
    drawn = figure(points, Chart("scatter", "a", "b"))
    assert f"the first {MOST_POINTS:,} of 9,000 rows" in drawn.layout.title.subtitle.text
    gaps = pd.DataFrame({"a": ["x", "y"], "b": [1.0, None]})
    assert (
        "1 row without a value left out"
        in figure(gaps, Chart("bar", "a", "b")).layout.title.subtitle.text
    )


def test_markup_in_a_name_stays_text() -> None:
    frame = pd.DataFrame({"a": ["x", "x"], "b": [1, 2], "c": ["<b>x</b>", "y"]})
    drawn = figure(frame, Chart("scatter", "a", "b", "c")).to_dict()
    assert all("<b>" not in series["hovertemplate"] for series in drawn["data"])
    assert all("<b>" not in series["name"] for series in drawn["data"])
