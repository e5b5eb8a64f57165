"""Figures of a period played again: bars that follow from each other, a curve with its least."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analytics.efficiency.habits import Habit, Habits
from analytics.efficiency.what_if import Change, what_if
from analytics.estimate import Estimate
from app.figures.efficiency import lost_by_interval, what_if_waterfall
from tests.analytics.efficiency.simulated_cluster import Cluster

HOURLY = Habit(interval_s=3600, write_s=60, restart_s=300)
STATED = Habits(HOURLY, (HOURLY,) * 4, "configured", 0, None)
STEPS = (
    ("As it was", Estimate(45_000.0, 42_000.0, 49_000.0, 0.9, 800)),
    ("Without the nodes", Estimate(1_200.0, 300.0, 2_600.0, 0.9, 3)),
    ("Every 20 min", Estimate(-5_000.0, -6_000.0, -4_000.0, 0.9, 300)),
)


def test_each_bar_begins_where_the_one_before_ends_and_the_last_is_what_is_left() -> None:
    rows = what_if_waterfall.frame(STEPS)
    assert rows["to_gpu_hours"].tolist() == [45_000.0, 43_800.0, 48_800.0, 48_800.0]
    assert rows["from_gpu_hours"].tolist()[1:3] == [45_000.0, 43_800.0]
    drawn = what_if_waterfall.figure(STEPS).to_dict()
    assert drawn["layout"]["xaxis"]["title"]["text"] == "GPU-hours lost (axis starts at 40,000)"
    texts = [note["text"] for note in drawn["layout"]["annotations"]]
    assert texts[1] == "<b>Without the nodes</b> -1,200 (-2,600 to -300)"
    assert texts[2] == "<b>Every 20 min</b> +5,000 (4,000 to 6,000)"


def test_a_bar_alone_starts_at_nothing() -> None:
    few = (STEPS[0], ("Without the nodes", Estimate(40_000.0, 30_000.0, 44_000.0, 0.9, 9)))
    drawn = what_if_waterfall.figure(few).to_dict()
    assert drawn["layout"]["xaxis"]["title"]["text"] == "GPU-hours lost"
    assert drawn["layout"]["xaxis"]["range"][0] == 0.0


def test_bars_of_one_height_are_drawn_from_nothing() -> None:
    """Nothing is changed, a change regains nothing, interruptions cost nothing."""
    nothing, none_lost = (Estimate(0.0, 0.0, 0.0, 0.9, n) for n in (0, 4))
    for steps in (
        STEPS[:1],
        (STEPS[0], ("Without the nodes", nothing)),
        (("As it was", none_lost),),
    ):
        drawn = what_if_waterfall.figure(steps).to_dict()["layout"]
        assert drawn["xaxis"]["title"]["text"] == "GPU-hours lost"
        assert drawn["xaxis"]["range"][0] == 0.0 < drawn["xaxis"]["range"][1]
    assert drawn["annotations"][0]["text"] == "<b>As it was</b> 0"


def test_the_curve_marks_its_least_and_says_its_units() -> None:
    cluster = Cluster.drawn(np.random.default_rng(3), spread=0.0)
    attempts = cluster.attempts(cluster.month(np.random.default_rng(4)))
    habits = {"several_nodes": STATED, "one_node": STATED}
    found = what_if(attempts, habits, cluster.exposure(), Change())
    drawn = lost_by_interval.figure(found).to_dict()
    (best,) = (trace for trace in drawn["data"] if trace["name"] == "best")
    assert best["x"][0] == found.best_min.value
    assert best["y"][0] == pytest.approx(found.curve["gpu_hours"].min())
    assert "min" in drawn["layout"]["xaxis"]["title"]["text"]
    assert drawn["layout"]["yaxis"]["title"]["text"] == "GPU-hours of runs on several nodes"
    assert drawn["layout"]["xaxis"]["range"][1] == math.log10(1440)
