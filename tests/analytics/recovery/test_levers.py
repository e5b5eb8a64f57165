"""Levers: each place is the exact form at its rate, interval, restart and wait."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analytics.efficiency.ettr_forms import ettr_exact
from analytics.efficiency.expected_ettr import EttrSettings
from analytics.errors import OutOfRangeError
from analytics.estimate import Estimate
from analytics.recovery.levers import levers

JOB = EttrSettings(
    gpus=512, rate_per_1000_node_days=8.0, restart_min=6.0, write_min=2.0, interval_min=40.0,
    queue_min=20.0,
)  # fmt: skip
RATE = Estimate(8.0, 6.0, 10.0, 0.9, 80)
RATIOS, WEIGHTS = [1.0, 9.0, 1.0, 3.0], [1.0, 1.0, 2.0, 1.0]


def test_every_place_is_the_exact_form_there() -> None:
    found = levers(JOB, RATE, ratios=RATIOS, weights=WEIGHTS, enough=[0.0, 0.9], swap_min=1.0)
    assert [each.value for each in found.rates] == pytest.approx(
        [8.0, 8.0 * (6 / 4) / 3, 8.0 / 3, 8.0 / 3]
    )
    assert found.mttf_hours[1].value == pytest.approx(24_000 / 64 / 4.0)
    assert found.mttf_hours[1].upper == pytest.approx(24_000 / 64 / 3.0)
    for bound, rate in enumerate((4.0, 5.0, 3.0)):  # value, then bounds of ETTR
        exact = ettr_exact(
            64 * rate / 1440e3, 12.0, 20.0, write_min=2.0, queue_min=0.9 * 1.0 + 0.1 * 20.0
        )
        at = (np.argmin(abs(found.intervals_min - 20)), np.argmin(abs(found.restarts_min - 12)))
        assert found.ettr[1, 1, at[0], at[1], bound] == pytest.approx(float(exact))


def test_nodes_of_one_rate_are_drained_in_vain_and_a_stated_rate_has_no_bounds() -> None:
    found = levers(
        replace(JOB, queue_min=0.0), Estimate(8.0, None, None, 0.9, 0), ratios=[1.0] * 30,
        weights=[2.0] * 30, enough=[0.0], swap_min=1.0,
    )  # fmt: skip
    assert len(found.rates) == 11
    assert {round(each.value or 0, 9) for each in found.rates} == {8.0}
    assert np.isnan(found.ettr[..., 1:]).all()


def test_without_nodes_there_is_nothing_to_drain() -> None:
    with pytest.raises(OutOfRangeError, match="at least one node"):
        levers(JOB, RATE, ratios=[], weights=[], enough=[0.0], swap_min=1.0)
