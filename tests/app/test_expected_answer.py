"""What the interval of a failure rate leaves open of the expected ETTR, in words and figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analytics.efficiency.expected_ettr import EttrSettings, expected_ettr
from analytics.efficiency.published_ettr import ettr_range
from analytics.estimate import Estimate, unknown
from app.answers.efficiency import expected

JOB = EttrSettings(
    gpus=4096, rate_per_1000_node_days=6.5, restart_min=5, write_min=2, interval_min=60
)
SEEN = Estimate(6.5, 5.0, 8.0, 0.9, 100)
NONE_SEEN = Estimate(0.0, 0.0, 2.5, 0.9, 0)


def said(rate: Estimate | None) -> str:
    return expected.answer(JOB, rate_per_1000_node_days=rate).notes[0]


def test_bounds_of_the_ettr_are_those_of_the_rate() -> None:
    found = ettr_range(JOB, SEEN)
    alone = [expected_ettr(replace(JOB, rate_per_1000_node_days=r)) for r in (6.5, 8.0, 5.0)]
    assert [found.ettr.value, found.ettr.lower, found.ettr.upper] == [
        pytest.approx(each.exact) for each in alone
    ]
    assert found.interval_min == tuple(
        pytest.approx(each.optimal_interval_min) for each in alone[1:]
    )


def test_no_failure_seen_is_no_rate_of_0() -> None:
    found = ettr_range(JOB, NONE_SEEN)
    assert found.ettr.value is None
    assert found.ettr.lower < found.ettr.upper < 1.0
    assert found.interval_min[0] is not None
    text = said(NONE_SEEN)
    assert "No failure was seen in this selection: at most 2.50" in text
    assert "min or longer" in text


def test_an_unknown_rate_gives_a_range_that_says_it_is_assumed() -> None:
    found = ettr_range(JOB, unknown(0.9, 0))
    assert (found.ettr.value, found.ettr.conf_level, found.ettr.assumed) == (None, None, True)
    assert found.rate_per_1000_node_days.lower == 2.34
    assert "is unknown: the values are of RSC-1's" in said(unknown(0.9, 0))
    assert "assumed" in said(unknown(0.9, 0))


def test_a_rate_of_which_only_bounds_are_known_keeps_them() -> None:
    found = ettr_range(JOB, Estimate(None, 0.5, 12.0, None, 3))
    assert (found.rate_per_1000_node_days.lower, found.rate_per_1000_node_days.upper) == (0.5, 12.0)
    assert said(Estimate(None, 0.5, 12.0, None, 3)).startswith(
        "The failure rate of this selection lies anywhere from 0.500 to 12.0 per 1,000 node-days."
    )


def test_a_measured_rate_says_what_its_interval_leaves_open() -> None:
    text = said(SEEN)
    assert text.startswith("Over the interval of the measured rate (5.00 to 8.00 per 1,000")
    assert "the best interval is" in text


def test_nobody_is_told_that_checkpoints_are_never_needed() -> None:
    for rate in (None, SEEN, NONE_SEEN, unknown(0.9, 0)):
        answer = expected.answer(
            replace(JOB, rate_per_1000_node_days=0.0), rate_per_1000_node_days=rate
        )
        assert not any("never needed" in note for note in answer.notes)
