"""The last digit of logged numbers, in decimals, significant digits and bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.training.last_digit import last_digit

NUMBERS = np.random.default_rng(1).lognormal(size=200)


@given(st.integers(0, 8))
def test_decimals_are_found(n: int) -> None:
    assert last_digit(np.round(NUMBERS * 100, n), np.array([50.0]))[0] == pytest.approx(10.0**-n)


@given(st.integers(3, 8))
def test_significant_digits_are_found(n: int) -> None:
    written = np.array([float(f"{value:.{n - 1}e}") for value in NUMBERS * 1e-12])
    assert last_digit(written, np.array([5e-12]))[0] == pytest.approx(10.0 ** (-12 - n + 1))


def test_bits_of_a_bfloat16_are_found() -> None:
    short = (NUMBERS.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    assert last_digit(short.astype(float), np.array([1.0, 3.0])).tolist() == [2**-7, 2**-6]


def test_full_doubles_have_next_to_none() -> None:
    assert last_digit(NUMBERS, np.array([1.0]))[0] < 1e-12
    assert last_digit(np.zeros(3), np.array([0.0, 2.0])).tolist() == [0.0, 0.0]
    assert last_digit(np.empty(0), np.ones((1, 1))).tolist() == [[0.0]]
