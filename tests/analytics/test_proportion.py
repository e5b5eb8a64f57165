"""A proportion has Clopper and Pearson's interval."""

from __future__ import annotations

import pytest
from scipy import stats

from analytics.errors import OutOfRangeError
from analytics.proportion import proportion


@pytest.mark.parametrize(("hits", "total"), [(3, 20), (1, 1), (0, 7), (999, 1000)])
def test_the_interval_is_clopper_and_pearsons(hits: int, total: int) -> None:
    found = proportion(hits, total, 0.95)
    exact = stats.binomtest(hits, total).proportion_ci(0.95, method="exact")
    assert (found.value, found.n) == (hits / total, total)
    assert (found.lower, found.upper) == pytest.approx((exact.low, exact.high))


def test_none_and_all_have_one_sided_bounds() -> None:
    assert proportion(0, 10).lower == 0.0
    assert proportion(10, 10).upper == 1.0


def test_of_nothing_the_share_is_unknown() -> None:
    assert proportion(0, 0).value is None


@pytest.mark.parametrize(("hits", "total", "level"), [(3, 2, 0.9), (-1, 2, 0.9), (1, 2, 90)])
def test_what_makes_no_sense_is_refused(hits: int, total: int, level: float) -> None:
    with pytest.raises(OutOfRangeError, match="must be"):
        proportion(hits, total, level)
