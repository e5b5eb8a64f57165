"""The figures of failure rates by group and over time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.figures.reliability import rate_by_group, rate_over_time

if TYPE_CHECKING:
    from analytics.reliability.mttf import GroupRate, MttfReport

UNIT = "Failures per 1,000 node-days"


def _named(figure: dict, name: str) -> list[dict]:
    return [trace for trace in figure["data"] if trace["name"] == name]


def test_racks_are_sorted_from_the_highest_rate_and_n_stands_beside(
    racks: tuple[GroupRate, ...], report: MttfReport
) -> None:
    figure = rate_by_group.figure(racks, by="rack", overall=report.rate).to_dict()
    (dots,) = _named(figure, "failure rate")
    assert dots["y"][0] == "r39"
    assert dots["x"] == sorted(dots["x"], reverse=True)
    assert figure["layout"]["xaxis"]["title"]["text"] == UNIT
    texts = [note["text"] for note in figure["layout"]["annotations"]]
    assert "39 in 100 node-days" in texts
    assert any(text.startswith("all: ") for text in texts)


def test_groups_beyond_the_figure_are_announced(
    racks: tuple[GroupRate, ...], report: MttfReport
) -> None:
    figure = rate_by_group.figure(racks, by="rack", overall=report.rate, note="demo").to_dict()
    assert "11 more in the download" in figure["layout"]["title"]["subtitle"]["text"]


def test_ages_keep_their_order(racks: tuple[GroupRate, ...], report: MttfReport) -> None:
    figure = rate_by_group.figure(racks[:5], by="node_age", overall=report.rate).to_dict()
    (dots,) = _named(figure, "failure rate")
    assert list(dots["y"]) == ["r00", "r01", "r02", "r03", "r04"]


def test_a_week_in_which_nothing_ran_is_a_hatched_gap(
    weeks: tuple[GroupRate, ...], report: MttfReport
) -> None:
    figure = rate_over_time.figure(weeks, overall=report.rate).to_dict()
    lines = _named(figure, "failure rate")
    assert [len(line["x"]) for line in lines] == [2, 1]
    (gap,) = _named(figure, "no exposure")
    assert [str(week.date()) for week in gap["x"]] == ["2026-01-19"]
    assert gap["marker"]["pattern"]["shape"] == "/"


def test_axes_of_the_rate_over_time_carry_units(
    weeks: tuple[GroupRate, ...], report: MttfReport
) -> None:
    layout = rate_over_time.figure(weeks, overall=report.rate).to_dict()["layout"]
    assert layout["yaxis"]["title"]["text"] == UNIT
    assert layout["xaxis"]["title"]["text"] == "Week beginning (Monday) · shaded: 90 % interval"


def test_a_week_alone_shows_its_interval(weeks: tuple[GroupRate, ...], report: MttfReport) -> None:
    alone = _named(rate_over_time.figure(weeks, overall=report.rate).to_dict(), "failure rate")[1]
    assert alone["error_y"]["array"][0] > 0


def test_a_first_week_of_a_few_hours_is_said_and_does_not_set_the_scale(
    weeks: tuple[GroupRate, ...], report: MttfReport
) -> None:
    first = weeks[0]
    tiny = replace(first.estimate.rate, value=0.2, lower=0.01, upper=4.0)
    part = replace(first, estimate=replace(first.estimate, exposure=2.0, rate=tiny))
    figure = rate_over_time.figure((part, *weeks[1:]), overall=report.rate, note="demo").to_dict()
    told = figure["layout"]["xaxis"]["title"]["text"]
    assert "week of 5 Jan 2026: in part, may exceed the axis" in told
    assert figure["layout"]["yaxis"]["range"][1] < 1000 * 4.0
