"""The figure of the trend: stretches of one rate over the weeks, and what was changed."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from analytics.estimate import Estimate
from app.figures.reliability import trend

if TYPE_CHECKING:
    from analytics.reliability.mttf import GroupRate

BEFORE, AFTER = Estimate(3.0, 2.0, 4.0, 0.9, 30), Estimate(6.0, 5.0, 7.0, 0.9, 60)
DAY = date(2026, 1, 14)


def test_each_stretch_is_a_line_and_the_last_one_is_named(weeks: tuple[GroupRate, ...]) -> None:
    stretches = [(date(2026, 1, 5), DAY, BEFORE), (DAY, date(2026, 2, 1), AFTER)]
    changes = [(DAY, date(2026, 1, 12), date(2026, 1, 16))]
    drawn = trend.figure(weeks, stretches, changes, [(DAY, DAY, "driver 1 to <2>")]).to_dict()
    steps = [trace for trace in drawn["data"] if trace["name"] == "one rate"]
    assert [list(trace["y"]) for trace in steps] == [[3.0, 3.0], [6.0, 6.0]]
    texts = [note["text"] for note in drawn["layout"]["annotations"]]
    assert texts == ["now: 6.00", "driver 1 to &lt;2>"]
    spans = [(shape["x0"], shape["x1"]) for shape in drawn["layout"]["shapes"]]
    assert [f"{begin:%d} {end:%d}" for begin, end in spans] == ["12 17", "14 15"]


def test_without_a_change_no_step_is_drawn(weeks: tuple[GroupRate, ...]) -> None:
    drawn = trend.figure(weeks, [(date(2026, 1, 5), DAY, BEFORE)], [], []).to_dict()
    assert not any(trace["name"] == "one rate" for trace in drawn["data"])
    assert drawn["layout"]["yaxis"]["title"]["text"] == "Failures per 1,000 node-days"
