"""Headline numbers: value, interval, n and change."""

from __future__ import annotations

import pytest

from analytics.estimate import Estimate, unknown
from app.answers.content import counted, estimated
from app.words import terms

NOW = Estimate(6.5, 5.8, 7.3, 0.9, 100)


def test_a_rate_shows_value_interval_level_and_n() -> None:
    shown = estimated(terms.FAILURE_RATE, "rate", NOW)
    assert (shown.value, shown.basis) == ("6.50", "5.80 to 7.30 (90 %), n = 100")
    assert shown.change is None


def test_a_duration_without_failures_shows_its_bound_once() -> None:
    bound = Estimate(None, 50.0, None, 0.9, 0)
    shown = estimated(terms.NODE_MTTF, "mttf", bound)
    assert (shown.value, shown.basis) == ("at least 2.08 d", "one-sided 95 %, n = 0")


def test_what_is_unknown_is_a_word_with_its_n() -> None:
    shown = estimated(terms.FAILURE_RATE, "rate", unknown(0.9, 309))
    assert (shown.value, shown.basis) == ("unknown", "n = 309")


def test_an_unknown_count_is_not_zero() -> None:
    shown = counted(terms.OUT_OF_SERVICE, None, of=256, noun="nodes")
    assert shown.value == "unknown"


@pytest.mark.parametrize(
    ("before", "certain"),
    [(Estimate(5.0, 4.5, 5.7, 0.9, 90), True), (Estimate(5.9, 5.1, 6.8, 0.9, 90), False)],
    ids=["intervals apart", "intervals overlap"],
)
def test_a_change_is_certain_only_where_intervals_do_not_overlap(
    before: Estimate, certain: bool
) -> None:
    change = estimated(terms.FAILURE_RATE, "rate", NOW, before=before).change
    assert change is not None
    assert change.certain is certain
    assert change.ratio == pytest.approx(6.5 / before.value - 1)


@pytest.mark.parametrize("before", [None, unknown(0.9, 0), Estimate(0.0, 0.0, 1.0, 0.9, 0)])
def test_there_is_no_change_on_nothing(before: Estimate | None) -> None:
    assert estimated(terms.FAILURE_RATE, "rate", NOW, before=before).change is None
