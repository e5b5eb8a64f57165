"""The figure of the mean cumulative function."""

from __future__ import annotations

import numpy as np

from analytics.reliability.availability import Spans
from analytics.reliability.mean_cumulative import mean_cumulative
from app.figures.reliability import mean_cumulative as drawing


def test_the_line_rises_within_its_band_beside_one_rate() -> None:
    there = Spans(np.arange(3), np.zeros(3, np.int64), np.full(3, 86_400 * 90))
    found = mean_cumulative(there, np.array([0, 1, 1]), np.array([10, 20, 30]) * 86_400)
    drawn = drawing.figure(found).to_dict()
    band, line, straight = drawn["data"]
    assert line["y"][-1] == straight["y"][-1] == 1.0
    assert max(band["y"]) > 1.0
    assert drawn["layout"]["yaxis"]["title"]["text"] == "Failures per node (ratio)"


def test_without_nodes_nothing_is_drawn() -> None:
    nothing = np.zeros(0, np.int64)
    found = mean_cumulative(Spans(nothing, nothing, nothing), nothing, nothing)
    assert drawing.figure(found).to_dict()["data"] == []
