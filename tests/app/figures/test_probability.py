"""Probability plots: points on the line where the family is the true one, and none without deaths."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.reliability.lifetime_families import fits
from analytics.reliability.lifetimes import Lives, kaplan_meier
from app.figures.reliability import probability


@pytest.mark.parametrize("family", ["Weibull", "log-normal"])
def test_points_lie_near_the_line_of_their_family(family: str) -> None:
    chance = np.random.default_rng(1)
    age = chance.weibull(1.5, 400) if family == "Weibull" else np.exp(chance.normal(size=400))
    lives = Lives.of(age, np.ones(400, dtype=bool))
    (fit,) = [fit for fit in fits(lives) if fit.family == family]
    chart = probability.figure(kaplan_meier(lives), fit, unit="days", death="death").to_dict()
    points, line = chart["data"]
    at = np.log(points["x"])
    off = np.array(points["y"]) - np.interp(at, np.log(line["x"]), line["y"])
    assert np.abs(off[20:-20]).max() < 0.35
    assert chart["layout"]["yaxis"]["ticktext"]


def test_without_deaths_nothing_is_drawn() -> None:
    lives = Lives.of([1.0, 2.0, 3.0, 4.0, 6.0], [True] * 5)
    alive = Lives.of([1.0, 2.0], [False, False])
    chart = probability.figure(kaplan_meier(alive), fits(lives)[0], unit="", death="death")
    assert not chart.data
