"""The survival curve: steps, band and family, and lives of which none ended."""

from __future__ import annotations

import numpy as np

from analytics.reliability.lifetime_families import fits
from analytics.reliability.lifetimes import Lives, kaplan_meier
from app.figures.reliability import survival

WORDS = {"unit": "years", "nouns": "parts", "death": "death"}


def test_the_curve_falls_in_steps_within_its_band() -> None:
    rng = np.random.default_rng(0)
    lives = Lives.of(np.ceil(10 * rng.weibull(2.0, 60)), rng.random(60) < 0.8)
    curve = kaplan_meier(lives)
    drawn = survival.figure(curve, fits(lives)[:1], **WORDS).to_dict()
    band, steps, family = drawn["data"]
    assert steps["y"][0] == 1.0
    assert steps["y"][-1] == curve.survival[-1]
    assert len(steps["x"]) == len(steps["y"]) == 2 * len(curve.age) + 2
    assert list(np.diff(steps["y"]) <= 0) == [True] * (len(steps["y"]) - 1)
    assert max(band["y"]) <= 1.0
    assert family["name"] == fits(lives)[0].family
    assert drawn["layout"]["xaxis"]["title"]["text"] == "Time (years) · shaded: 90 % interval"
    assert drawn["layout"]["yaxis"]["title"]["text"] == "Share without death"


def test_where_none_died_nothing_is_drawn_but_the_axes() -> None:
    curve = kaplan_meier(Lives.of([1.0, 2.0], [False, False]))
    assert survival.figure(curve, (), **WORDS).to_dict()["data"] == []
