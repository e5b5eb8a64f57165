"""Numbers are written so that rounding neither hides nor invents anything."""

from __future__ import annotations

import pytest

from app.words import numbers


@pytest.mark.parametrize(
    ("ratio", "written"),
    [
        (1.0 - 2**-53, "100 %"),
        (1.0 - 1e-12, "100 %"),
        (0.99981, "99.98 %"),
        (12.5, "1,250 %"),
        (9.996, "1,000 %"),
        (1e-7, "0.0000100 %"),
        (-0.0, "0 %"),
        (-0.034, "-3.4 %"),
    ],
    ids=str,
)
def test_a_percentage_has_no_noise_no_exponent_and_no_negative_zero(
    ratio: float, written: str
) -> None:
    assert numbers.percent(ratio) == written


def test_a_third_of_an_hour_is_not_written_as_none() -> None:
    assert numbers.count(1 / 3) == "0.333"
    assert numbers.count(-0.2) == "-0.200"
    assert (numbers.count(0), numbers.count(0.7)) == ("0", "1")
