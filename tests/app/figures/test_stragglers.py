"""Figures of traced runs: cells and bars stand where the numbers say, axes carry units."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from analytics.training.stragglers.fleet import WastedDistribution
from analytics.training.stragglers.slowdown import Contribution, Slowdowns, SlowestWorkers, Worker
from app.figures.training import (
    before_after,
    fleet_waste,
    slowdown_bars,
    step_slowdown,
    worker_curve,
    worker_heat_map,
)

if TYPE_CHECKING:
    from app.figures.template import Mode

MODES: tuple[Mode, ...] = ("light", "dark")
BY_WORKER = np.array([[1.0, 1.1], [1.6, 0.98], [1.02, 1.0]])
"""Three data-parallel ranks, two stages."""
TRACES = pd.DataFrame(
    {"trace_id": ["b", "a"], "name": "n", "slowdown": [1.5, 1.2], "wasted_ratio": [1 / 3, 1 / 6],
     "cause": "worker", "gpu_hours": 1.0}
)  # fmt: skip


def _slowest(curve: dict[int, Any]) -> SlowestWorkers:
    """One worker is the slowest 3 %."""
    return SlowestWorkers((Worker(0, 0, None),), Contribution(2.0, 2.0, 2.0, 2.0), curve)


@pytest.fixture
def slow() -> Slowdowns:
    """A job of two steps and three by two workers, S_w at least 1 by the approximation."""
    nothing = Contribution(2.0, 2.0, 2.0, 2.0)
    return Slowdowns(
        steps=np.array([9, 10]),
        traced_seconds=np.array([3.0, 2.0]),
        original_seconds=np.array([2.8, 1.8]),
        step_slowdown=np.array([1.4, 1.2]),
        ideal_seconds=2.0,
        ideal_spread_seconds=0.0,
        slowdown=1.3,
        launch_slowdown=1.0,
        by_type={"gc": 1.0},
        by_stage=np.ones(2),
        by_dp=np.ones(3),
        by_worker_exact=BY_WORKER,
        stages=(nothing, nothing),
        slowest=SlowestWorkers((), nothing, {1: None}),
        launch=None,
        dropped_steps=(),
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_heat_map_has_stages_in_rows_and_ranks_in_columns(slow: Slowdowns, mode: Mode) -> None:
    drawn = worker_heat_map.figure(slow, {(1, 0): "gpu<7>"}, name="x", mode=mode).to_dict()
    cells = drawn["data"][0]
    assert cells["z"] == [[1.0, 1.6, 1.02], [1.1, 0.98, 1.0]]
    assert (cells["zmin"], cells["zmax"]) == (1.0, 1.5)
    assert cells["customdata"][0][1] == "dp 1, stage 0<br>gpu&lt;7><br>slowdown by it alone 1.600"
    assert "node unknown" in cells["customdata"][1][1]
    written = {
        (x, y): text
        for trace in drawn["data"][2:]
        for x, y, text in zip(trace["x"], trace["y"], trace["text"], strict=True)
    }
    assert written[1, 0] == "1.60"
    assert len(written) == 6
    picked = dict(drawn["data"][1]["customdata"])
    assert picked["gpu<7>"].startswith("dp 1, stage 0<br>")
    assert drawn["layout"]["yaxis"]["range"] == [1.5, -0.5]


def test_many_ranks_are_coloured_without_numbers(slow: Slowdowns) -> None:
    many = replace(slow, by_worker_exact=np.array([[1.0, 1.2]] * 500))
    drawn = worker_heat_map.figure(many, {}, name="x").to_dict()
    assert [trace["type"] for trace in drawn["data"]] == ["heatmap", "bar"]
    assert len(drawn["layout"]["xaxis"]["tickvals"]) <= 26


@pytest.mark.parametrize(
    ("slowest", "end", "said"),
    [(1.0, 1.1, "1.1"), (1.12, 1.25, "1.25"), (1.5, 1.5, "1.5"), (3.0, 1.5, "≥ 1.5")],
)
def test_colours_end_above_the_slowest_or_where_those_of_smon_do(
    slow: Slowdowns, slowest: float, end: float, said: str
) -> None:
    two = replace(slow, by_worker_exact=np.array([[1.0], [slowest]]))
    cells = worker_heat_map.figure(two, {}, name="x").to_dict()["data"][0]
    assert (cells["zmin"], cells["zmax"]) == (1.0, end)
    assert list(cells["colorbar"]["ticktext"]) == ["1.0", said]


def test_both_ways_of_counting_stand_in_the_download(slow: Slowdowns) -> None:
    frame = worker_heat_map.frame(slow, {(1, 0): "gpu7"})
    assert frame.loc[2].to_dict() == {
        "dp_rank": 1,
        "stage": 0,
        "node": "gpu7",
        "slowdown_exact": 1.6,
        "slowdown_min": 1.0,
    }


@pytest.mark.parametrize("slowdown", [{"gc": 1.0}, {"stage 0": 1.3, "stage 1": 0.97}, {}])
def test_bars_begin_at_one_and_say_their_value(slowdown: dict[str, float]) -> None:
    drawn = slowdown_bars.figure(slowdown, "stage").to_dict()
    bars, values = drawn["data"]
    assert bars["base"] == 1.0
    ends = dict(zip(bars["y"], bars["x"], strict=True))
    assert ends == pytest.approx({name: value - 1.0 for name, value in slowdown.items()})
    assert [text.strip() for text in values["text"]] == [
        f"{v:.3f}" for v in sorted(slowdown.values())
    ]
    low, high = drawn["layout"]["xaxis"]["range"]
    assert low <= min([1.0, *slowdown.values()])
    assert high > max([1.0, *slowdown.values()])
    assert "ratio" in drawn["layout"]["xaxis"]["title"]["text"]


def test_steps_stand_in_order_with_the_jobs_slowdown(slow: Slowdowns) -> None:
    drawn = step_slowdown.figure(slow).to_dict()
    assert drawn["data"][0]["y"] == [1.4, 1.2]
    assert {shape["y0"] for shape in drawn["layout"]["shapes"]} == {1.3, 1.1}


@pytest.mark.parametrize("curve", [{1: 0.5, 2: 0.9, 4: 1.1}, {1: None}, {1: -0.2}])
def test_the_curve_shows_shares_beyond_all_and_none(curve: dict[int, Any]) -> None:
    drawn = worker_curve.figure(_slowest(curve)).to_dict()
    known = [100 * value for value in curve.values() if value is not None]
    assert drawn["data"][0]["y"] == pytest.approx(known)
    low, high = drawn["layout"]["yaxis"]["range"]
    assert low < min([0, *known])
    assert high > max([100, *known])
    assert "%" in drawn["layout"]["yaxis"]["title"]["text"]


def test_waste_of_traces_stands_beside_the_published_percentiles() -> None:
    drawn = fleet_waste.figure(WastedDistribution.of([0.2, 0.1]), TRACES).to_dict()
    ours, published = drawn["data"]
    assert ours["x"] == pytest.approx([10, 20])
    assert ours["y"] == pytest.approx([50, 100])
    assert published["x"] == [7.8, 21.3, 45.0]
    nothing = fleet_waste.figure(WastedDistribution.of([]), TRACES[:0])
    assert nothing.to_dict()["data"][0]["x"] == []


def test_before_and_after_keep_their_order() -> None:
    seconds = {"as it ran": 3.0, "this fixed": 2.0, "all ideal": 1.5}
    drawn = before_after.figure(seconds).to_dict()
    assert drawn["data"][0]["x"] == [3.0, 2.0, 1.5]
    assert "(s)" in drawn["layout"]["xaxis"]["title"]["text"]


@pytest.mark.parametrize("mode", MODES)
def test_a_figure_draws_in_both_modes(slow: Slowdowns, mode: Mode) -> None:
    figures = [
        slowdown_bars.figure({"a": 1.1}, "type", mode=mode),
        step_slowdown.figure(slow, mode=mode),
        worker_curve.figure(_slowest({1: 0.3}), mode=mode),
        fleet_waste.figure(WastedDistribution.of([0.1]), TRACES, mode=mode),
        before_after.figure({"as it ran": 1.0}, mode=mode),
    ]
    for figure in figures:
        assert figure.to_dict()["layout"]["title"]["text"]
