"""An estimate keeps its interval through every change of unit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.estimate import Estimate, unknown

POSITIVE = st.floats(1e-6, 1e6)


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    lower, value, upper = sorted(draw(st.tuples(POSITIVE, POSITIVE, POSITIVE)))
    return Estimate(value, lower, upper, 0.9, draw(st.integers(0, 1000)))


@given(estimates(), POSITIVE)
def test_a_change_of_unit_moves_value_and_bounds_alike(found: Estimate, factor: float) -> None:
    scaled = found.scaled(factor)
    assert (scaled.value, scaled.lower, scaled.upper) == (
        found.value * factor,
        found.lower * factor,
        found.upper * factor,
    )
    assert (scaled.conf_level, scaled.n) == (found.conf_level, found.n)


@given(estimates(), POSITIVE)
def test_the_inverse_keeps_its_bounds_in_order(found: Estimate, numerator: float) -> None:
    inverse = found.inverted(numerator)
    assert inverse.lower <= inverse.value <= inverse.upper
    assert inverse.value == numerator / found.value


def test_a_rate_of_zero_has_an_unknown_mttf_with_a_lower_bound() -> None:
    mttf = Estimate(0.0, 0.0, 0.125, 0.9, 0).inverted(24.0)
    assert mttf == Estimate(None, 192.0, None, 0.9, 0)


def test_what_is_unknown_stays_unknown() -> None:
    nothing = unknown(0.9, 3)
    assert nothing.scaled(1000.0) == nothing
    assert nothing.inverted(24.0) == nothing
    assert nothing.widened(None, None) == nothing


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (1.0, 9.0, (1.0, 9.0)),
        (3.0, 5.0, (2.0, 6.0)),
        (1.0, 5.0, (1.0, 6.0)),
        (None, 9.0, (2.0, 9.0)),
    ],
)
def test_widening_takes_the_wider_bound_on_each_side(
    lower: float | None, upper: float | None, expected: tuple[float, float]
) -> None:
    widened = Estimate(4.0, 2.0, 6.0, 0.9, 7).widened(lower, upper)
    assert (widened.lower, widened.upper) == expected
    assert widened.value == 4.0
