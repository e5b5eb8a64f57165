"""The pictures of the lab: every cell and mitigation as it was measured, and called synthetic."""

from __future__ import annotations

import pytest

from analytics.proportion import proportion
from app.answers.training import lab
from app.figures.training import lab_detection, lab_mitigations
from app.show.drawings import style

NAMES, BITS = ("Loss", "Checksums of replicas"), (30, 2)
GRID = tuple(tuple(proportion(k, 8) for k in row) for row in ((4, 0), (8, 8)))
RATES = (proportion(1, 10), proportion(0, 0))


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_heat_map_holds_each_share(mode: str) -> None:
    chart = lab_detection.figure(NAMES, BITS, GRID, mode=mode)
    (cells,) = chart.data
    assert [list(row) for row in cells.z] == [[50.0, 0.0], [100.0, 100.0]]
    assert list(cells.x) == ["30", "2"]
    assert cells.customdata[0][0] == "Loss, bit 30: 50 % of 8 flips"
    assert chart.layout.title.subtitle.text.startswith("Synthetic")
    assert "30 to 23 the exponent" in chart.layout.title.subtitle.text
    rows = lab_detection.frame(NAMES, BITS, GRID)
    assert rows["detected_ratio"].tolist() == [0.5, 0.0, 1.0, 1.0]
    assert set(rows["n"]) == {8}


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_a_mitigation_without_flips_has_no_mark(mode: str) -> None:
    chart = lab_mitigations.figure(("Clipping", "Smoothing"), RATES, RATES, mode=mode)
    for marks in chart.data:
        assert list(marks.x) == [10.0]
        assert marks.error_x.array[0] == pytest.approx(100 * (RATES[0].upper - 0.1))
    assert chart.layout.xaxis.title.text.endswith("(%)")
    assert list(chart.layout.yaxis.ticktext) == ["Clipping", "Smoothing"]


def test_documents_draw_both() -> None:
    for chart in (
        lab.detection_chart(NAMES, BITS, GRID),
        lab.mitigation_chart(("Clipping", "Smoothing"), RATES, RATES),
    ):
        with style.applied("DejaVu Sans"):
            drawn = style.drawn(chart)
            drawn.canvas.draw()
        labels = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
        assert labels in (list(NAMES), ["Clipping", "Smoothing"])
