"""Rate ratios as a figure: what is drawn, cut off and left out."""

from __future__ import annotations

from analytics.reliability.rate_regression import rate_ratios
from app.figures.reliability import forest
from app.figures.reliability import rate_ratios as drawing


def test_ratios_stand_on_a_logarithmic_axis_and_unknown_bounds_are_cut_off() -> None:
    nodes = [f"n{at}" for at in range(18)]
    levels = ["old"] * 8 + ["<b>new</b>"] * 5 + ["silent"] * 5
    counts = [1, 2, 1, 0, 2, 1, 1, 2, 4, 3, 5, 4, 6, 0, 0, 0, 0, 0]
    found = rate_ratios(nodes, levels, counts, [100.0] * 18)
    chart = drawing.figure(found, by="driver").to_dict()
    axis = chart["layout"]["xaxis"]
    assert axis["type"] == "log"
    assert axis["title"]["text"] == "Rate ratio to old, adjusted"
    lines = {trace["y"][0]: trace["x"] for trace in chart["data"] if trace["mode"] == "lines"}
    assert len(lines) == 3
    assert min(lines["silent"]) == forest.LEAST  # its lower bound is 0
    assert not any("<b>" in name for name in lines)
    told = drawing.frame(found, by="driver")
    assert told["driver"].tolist() == ["old", "<b>new</b>", "silent"]
    assert told["failures"].tolist() == [10, 22, 0]
