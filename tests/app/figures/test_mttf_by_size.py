"""The figure of MTTF by job size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.figures.reliability import mttf_by_size

if TYPE_CHECKING:
    from analytics.reliability.mttf import MttfReport


def _named(figure: dict, name: str) -> list[dict]:
    return [trace for trace in figure["data"] if trace["name"] == name]


def test_both_axes_are_logarithmic_and_carry_units(report: MttfReport) -> None:
    layout = mttf_by_size.figure(report).to_dict()["layout"]
    assert layout["xaxis"]["type"] == layout["yaxis"]["type"] == "log"
    assert layout["xaxis"]["title"]["text"] == "Size of the job (GPUs, log scale)"
    assert "running time, min to years" in layout["yaxis"]["title"]["text"]
    assert "1 d" in layout["yaxis"]["ticktext"]


def test_the_projection_reaches_131072_gpus_and_is_written_out(report: MttfReport) -> None:
    figure = mttf_by_size.figure(report).to_dict()
    lines = _named(figure, "projection")
    assert max(max(trace["x"]) for trace in lines) == 131_072
    texts = [trace["text"][0] for trace in lines if "text" in trace]
    assert any(text.strip().endswith("at 131,072") for text in texts)
    assert lines[0]["line"]["dash"] == "solid"
    assert lines[1]["line"]["dash"] == "dot"


def test_intervals_stand_on_the_measured_dots(report: MttfReport) -> None:
    (measured,) = _named(mttf_by_size.figure(report).to_dict(), "measured")
    largest = report.by_size[-1].mttf_hours
    assert measured["x"] == [256]
    assert measured["y"][0] + measured["error_y"]["array"][0] == pytest.approx(largest.upper)
    assert measured["y"][0] - measured["error_y"]["arrayminus"][0] == pytest.approx(largest.lower)
    assert "16 failures in 1,340 h" in measured["customdata"][0]


def test_a_class_without_failures_is_an_arrow_from_its_lower_bound(report: MttfReport) -> None:
    bounds = _named(mttf_by_size.figure(report).to_dict(), "no failure: lower bound")
    assert [trace["x"][0] for trace in bounds] == [1, 8]
    assert bounds[0]["y"][0] == pytest.approx(24 * 28 * 50.0 / 2.996, rel=1e-3)
    assert "at least" in bounds[0]["customdata"][0]
    assert "one-sided 95 %" in bounds[0]["customdata"][0]


def test_without_any_failure_the_projection_is_a_bound(quiet_report: MttfReport) -> None:
    figure = mttf_by_size.figure(quiet_report).to_dict()
    assert not _named(figure, "projection interval")
    assert any("at least" in note["text"] for note in figure["layout"]["annotations"])


def test_series_are_named_directly_not_by_a_legend(report: MttfReport) -> None:
    figure = mttf_by_size.figure(report, note="demo · synthetic data").to_dict()
    texts = [note["text"] for note in figure["layout"]["annotations"]]
    assert any(text.startswith("measured") for text in texts)
    assert any(text.startswith("projected") for text in texts)
    assert figure["layout"]["template"]["layout"]["showlegend"] is False
    assert figure["layout"]["title"]["subtitle"]["text"].endswith(" · demo · synthetic data")


def test_the_frame_holds_what_is_drawn(report: MttfReport) -> None:
    frame = mttf_by_size.frame(report)
    assert set(frame["series"]) == {"measured", "projection"}
    assert len(frame) == len(report.by_size) + len(report.projection)
    assert frame.loc[0, "mttf_hours"] is None or frame["mttf_hours"].isna()[0]
