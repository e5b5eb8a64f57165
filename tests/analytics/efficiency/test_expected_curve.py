"""The expected ETTR by size is that of each size by itself."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.efficiency.beside_expected import expected_curve
from analytics.efficiency.expected_ettr import EttrSettings, expected_ettr
from analytics.efficiency.habits import Habit
from analytics.estimate import Estimate, unknown

SIZES = [8.0, 1024.0, 16_384.0]
RATE = Estimate(6.5, 5.0, 8.0, 0.9, 100)
HOURLY = Habit(interval_s=3600, write_s=300, restart_s=600)


def test_each_size_is_the_exact_form_of_that_size() -> None:
    found = expected_curve(RATE, habit=HOURLY, queue_hours=0.5, run_hours=48.0, gpus=SIZES)
    assert found is not None
    for place, gpus in enumerate(SIZES):
        for rate, long, short in zip((6.5, 8.0, 5.0), *found.lines.values(), strict=True):
            alone = expected_ettr(
                EttrSettings(
                    gpus=gpus, rate_per_1000_node_days=rate, restart_min=10.0, write_min=5.0,
                    interval_min=60.0, queue_min=30.0, run_days=2.0,
                )
            )  # fmt: skip
            assert long[place] == pytest.approx(alone.exact)
            assert short[place] == pytest.approx(alone.exact_of_run)


def test_larger_jobs_get_less_and_bounds_enclose() -> None:
    found = expected_curve(RATE, habit=HOURLY, queue_hours=0.0, run_hours=10.0, gpus=SIZES)
    assert found is not None
    long_run, (value, lower, upper) = found.lines.values()
    assert (np.diff(long_run[0]) < 0).all()
    assert (lower <= value).all()
    assert (value <= upper).all()


def test_nodes_of_other_sizes_fail_as_often_as_there_are_nodes() -> None:
    four = expected_curve(RATE, habit=HOURLY, queue_hours=0.0, run_hours=10.0, gpus=[512],
                          gpus_per_node=4)  # fmt: skip
    eight = expected_curve(RATE, habit=HOURLY, queue_hours=0.0, run_hours=10.0, gpus=[1024])
    assert four is not None
    assert eight is not None
    assert four.lines["expected_long_run"][0] == eight.lines["expected_long_run"][0]


def test_an_unknown_rate_has_no_curve_and_one_of_0_has_no_failures() -> None:
    costs = {"habit": HOURLY, "queue_hours": 0.0, "run_hours": 1000.0, "gpus": [8.0, 8000.0]}
    assert expected_curve(unknown(0.9, 0), **costs) is None
    found = expected_curve(Estimate(0.0, 0.0, 3.0, 0.9, 0), **costs)
    assert found is not None
    value, lower, _ = found.lines["expected_long_run"]
    assert value == pytest.approx([60 / 65, 60 / 65])
    assert (lower < value).all()
