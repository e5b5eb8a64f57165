"""Figures of the ledger: bars end where the sums say, colours keep apart, gaps are hatched."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from analytics.efficiency.buckets import (
    BUCKETS,
    STACK,
    LossesByGroup,
    hours_over_time,
    losses_by_group,
)
from analytics.efficiency.goodput import GoodputLedger, goodput_ledger
from app.figures import template
from app.figures.efficiency import buckets, ledger_by_group, ledger_over_time, ledger_waterfall

if TYPE_CHECKING:
    from app.figures.template import Mode

HOURS = {"productive": 800, "startup": 20, "lost_work": 30, "idle": 100, "drained": 50}
NOTES = {
    "attempts_without_gpus": 0,
    "excess_gpu_seconds": 0,
}
FIRST, LAST = pd.Timestamp("2026-01-05", tz="UTC"), pd.Timestamp("2026-01-12", tz="UTC")
MODES: tuple[Mode, ...] = ("light", "dark")
WHITE = 0.05
DEUTERANOPIA = (
    (0.367322, 0.860646, -0.227968),
    (0.280085, 0.672501, 0.047413),
    (-0.011820, 0.042940, 0.968881),
)
"""Full loss of green cones in linear RGB: Machado, Oliveira and Fernandes 2009, table 1."""
PROTANOPIA = (
    (0.152286, 1.052583, -0.204868),
    (0.114503, 0.786281, 0.099216),
    (-0.003882, -0.048116, 1.051998),
)
NORMAL = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def _ledger(hours: dict[str, float], prices: dict[str, Any] | None = None) -> GoodputLedger:
    """A ledger of these GPU-hours; lost work is known to a half more or less."""
    rows = pd.DataFrame(
        {
            "cluster": "c",
            "bucket": list(hours),
            "cause": [{"lost_work": "gpu_memory"}.get(name) for name in hours],
            "gpu_seconds": [int(3600 * value) for value in hours.values()],
            "lower_gpu_seconds": [
                int(3600 * value * (0.5 if name == "lost_work" else 1.0))
                for name, value in hours.items()
            ],
            "upper_gpu_seconds": [
                int(3600 * value * (1.5 if name == "lost_work" else 1.0))
                for name, value in hours.items()
            ],
            "variance_gpu_s2": 0.0,
            "shared_gpu_seconds": 0.0,
            "habit_gpu_s2": 0.0,
            "n_attempts": [4 if name == "lost_work" else 0 for name in hours],
            "rule_gpu_seconds": [7200 if name == "lost_work" else 0 for name in hours],
        }
    )
    return goodput_ledger(rows, prices=prices or {}, notes=NOTES)


def _waterfall(hours: dict[str, float], mode: Mode = "light") -> dict[str, Any]:
    figure: dict[str, Any] = ledger_waterfall.figure(_ledger(hours), mode=mode).to_dict()
    return figure


def _linear(colour: str) -> list[float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


def _luminance(colour: str) -> float:
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), _linear(colour), strict=True))


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + WHITE) / (low + WHITE)


def _lab(colour: str, seen: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """CIE Lab (D65) of a colour as an eye sees it."""
    rgb = _linear(colour)
    red, green, blue = (
        min(1.0, max(0.0, sum(w * c for w, c in zip(row, rgb, strict=True)))) for row in seen
    )
    xyz = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def test_every_bucket_has_a_place_and_a_colour() -> None:
    assert set(STACK) == set(BUCKETS)
    assert all(set(buckets.COLOURS[mode]) == set(BUCKETS) for mode in MODES)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bucket", BUCKETS)
def test_a_bucket_stands_out_from_the_page(mode: Mode, bucket: str) -> None:
    background = template.PALETTES[mode].background
    assert _contrast(buckets.colour(bucket, mode), background) >= 3.0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seen", [NORMAL, DEUTERANOPIA, PROTANOPIA])
def test_neighbours_are_told_apart_by_every_eye(
    mode: Mode, seen: tuple[tuple[float, ...], ...]
) -> None:
    for one, other in itertools.pairwise(STACK):
        pair = [_lab(buckets.colour(name, mode), seen) for name in (one, other)]
        apart = sum((a - b) ** 2 for a, b in zip(*pair, strict=True)) ** 0.5
        assert apart > 14, (one, other, apart)


def test_the_waterfall_leads_from_capacity_to_productive() -> None:
    figure = _waterfall(HOURS)
    assert figure["layout"]["yaxis"]["ticktext"] == [
        "Capacity", "Drained", "Idle", "Held by jobs", "Lost to failures", "Start-up", "Productive",
    ]  # fmt: skip
    bars = figure["data"][0]
    ends = [base + length for base, length in zip(bars["base"], bars["x"], strict=True)]
    assert ends == pytest.approx([100, 95, 85, 85, 82, 80, 80])
    assert bars["customdata"][4][0] == "lost_work"
    assert figure["layout"]["xaxis"]["title"]["text"] == "Share of capacity (%)"


def test_the_axis_says_where_it_starts() -> None:
    figure = _waterfall(HOURS)
    start = figure["layout"]["xaxis"]["range"][0]
    assert start == pytest.approx(75)
    assert "the axis starts at 75 %" in figure["layout"]["title"]["subtitle"]["text"]
    cuts = [s for s in figure["layout"]["shapes"] if s["line"]["width"] == 2]
    assert len(cuts) == 6  # two through each of the three bars from zero


def test_a_fleet_that_is_mostly_idle_has_an_axis_from_zero() -> None:
    figure = _waterfall({"productive": 10, "idle": 90})
    assert figure["layout"]["xaxis"]["range"] == [0, 100]
    assert "axis starts" not in (figure["layout"]["title"]["subtitle"]["text"] or "")


def test_whiskers_stand_at_the_bounds_of_estimates() -> None:
    whiskers = _waterfall(HOURS)["data"][1]
    place = list(whiskers["x"]).index(pytest.approx(82))
    assert whiskers["error_x"]["array"][place] == pytest.approx(1.5)
    assert whiskers["error_x"]["arrayminus"][place] == pytest.approx(1.5)
    assert len(whiskers["x"]) == 3  # not for what records fix


def test_everything_productive_is_still_drawn() -> None:
    figure = _waterfall({"productive": 10})
    assert figure["layout"]["yaxis"]["ticktext"] == ["Held by jobs", "Productive"]
    assert figure["layout"]["xaxis"]["range"][0] < 100
    assert figure["layout"]["xaxis"]["title"]["text"] == "Share of the GPU-hours that jobs held (%)"


def test_the_table_has_costs_where_a_price_is_known() -> None:
    assert "cost" not in _ledger(HOURS).table()
    priced = _ledger(HOURS, {"c": (2.5, "EUR")}).table()
    assert priced.set_index("bucket").loc["lost_work", "cost_EUR"] == 75.0
    assert priced["gpu_hours"].sum() == 1000.0


def _days(n: int, first: pd.Timestamp = FIRST) -> pd.DataFrame:
    rows = [
        ((first + pd.Timedelta(days=day)).date(), name, value)
        for day in range(n)
        for name, value in (("productive", 80.0), ("idle", 20.0))
    ]
    return pd.DataFrame(rows, columns=["day", "bucket", "gpu_hours"])


def _over_time(by_day: pd.DataFrame, last: pd.Timestamp = LAST, **more: Any) -> dict[str, Any]:
    over_time = hours_over_time(by_day, span=(FIRST, last), recorded=more.get("recorded", ()))
    figure: dict[str, Any] = ledger_over_time.figure(over_time).to_dict()
    return figure


def test_days_stand_side_by_side_productive_at_the_bottom() -> None:
    figure = _over_time(_days(7))
    assert [trace["name"] for trace in figure["data"]] == ["Productive", "Idle"]
    assert list(figure["data"][0]["y"]) == [80.0] * 7
    assert figure["layout"]["yaxis"]["title"]["text"] == "GPU-hours per day"
    ticks = list(figure["layout"]["xaxis"]["tickvals"])
    assert len(ticks) == len(set(ticks)) == 7  # a day is named once


def test_days_without_a_record_are_hatched() -> None:
    figure = _over_time(_days(5))
    gaps = figure["data"][-1]
    assert gaps["name"] == "not collected"
    assert len(gaps["x"]) == 2
    assert gaps["marker"]["pattern"]["shape"] == "/"


def test_an_idle_day_is_no_gap_where_a_job_is_recorded() -> None:
    by_day = _days(7)
    third = by_day["day"].eq((FIRST + pd.Timedelta(days=2)).date())
    by_day = by_day[~(third & by_day["bucket"].eq("productive"))]
    assert _over_time(by_day)["data"][-1]["name"] == "not collected"
    recorded = {FIRST + pd.Timedelta(days=2)}
    assert _over_time(by_day, recorded=recorded)["data"][-1]["name"] == "Idle"


def test_a_recorded_day_without_such_a_job_is_nothing_held_and_no_gap() -> None:
    of_account = _days(7)[lambda rows: rows["bucket"].eq("productive")].iloc[:5]
    recorded = pd.date_range(FIRST, LAST, inclusive="left")
    figure = _over_time(of_account, recorded=set(recorded))
    assert [trace["name"] for trace in figure["data"]] == ["Productive"]
    assert list(figure["data"][0]["y"]) == [80.0] * 5 + [0.0] * 2


def test_long_periods_are_drawn_by_week_as_means_per_day() -> None:
    figure = _over_time(_days(100), FIRST + pd.Timedelta(days=100))
    assert len(figure["data"][0]["x"]) == 15
    assert set(figure["data"][0]["y"]) == {80.0}
    assert "mean of the week" in figure["layout"]["yaxis"]["title"]["text"]


def _groups() -> LossesByGroup:
    rows = [
        ("129-256", "productive", 90.0), ("129-256", "lost_work", 10.0),
        ("1", "productive", 50.0), ("2-8", "productive", 30.0), ("2-8", "startup", 10.0),
        (None, "idle", 500.0),
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["size_class", "bucket", "gpu_hours"])
    return losses_by_group(frame, "size_class")


def test_groups_are_shares_of_what_their_jobs_held() -> None:
    found = _groups().rows.set_index(["group", "bucket"])["percent"]
    assert found["129-256", "lost_work"] == 10.0
    assert found["2-8", "startup"] == 25.0
    assert "idle" not in found.index.get_level_values("bucket")


def test_sizes_stand_from_small_to_large_with_losses_from_zero() -> None:
    figure = ledger_by_group.figure(_groups()).to_dict()
    assert figure["layout"]["yaxis"]["ticktext"] == ["1 GPU", "2 to 8 GPUs", "129 to 256 GPUs"]
    assert [trace["name"] for trace in figure["data"]] == ["Start-up", "Lost to failures"]
    assert figure["layout"]["xaxis"]["rangemode"] == "tozero"
    texts = [note["text"] for note in figure["layout"]["annotations"]]
    assert "90 % of 100 GPU-h productive" in texts


def test_jobs_without_an_account_are_a_group_of_their_own() -> None:
    rows = [("<b>x</b>", "productive", 9.0), (None, "productive", 1.0)]
    frame = pd.DataFrame(rows, columns=["account", "bucket", "gpu_hours"])
    figure = ledger_by_group.figure(losses_by_group(frame, "account")).to_dict()
    assert figure["layout"]["yaxis"]["ticktext"] == ["&lt;b>x&lt;/b>", "none stated"]


def test_of_many_groups_the_largest_are_drawn() -> None:
    rows = [(f"a{n:02d}", "productive", float(n + 1)) for n in range(30)]
    frame = pd.DataFrame(rows, columns=["account", "bucket", "gpu_hours"])
    figure = ledger_by_group.figure(losses_by_group(frame, "account")).to_dict()
    assert len(figure["layout"]["yaxis"]["ticktext"]) == 20
    assert figure["layout"]["yaxis"]["ticktext"][0] == "a29"
    assert "10 more in the download" in figure["layout"]["title"]["subtitle"]["text"]
