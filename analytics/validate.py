"""The gate for inputs: validated once at the public boundary, trusted inside."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from analytics.errors import OutOfRangeError, ShapeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from analytics.arrays import Floats


def conf_level(value: float) -> float:
    """The confidence level, refused outside (0, 1)."""
    if not 0 < value < 1:
        remedy = f"pass {value / 100:g} for {value:g} %" if 1 < value < 100 else "pass e.g. 0.90"
        raise OutOfRangeError("conf_level", "in (0, 1)", value, remedy)
    return value


def positive(name: str, value: float, remedy: str) -> float:
    """A number greater than 0."""
    if not (value > 0 and _is_finite(value)):
        raise OutOfRangeError(name, "a finite number > 0", value, remedy)
    return value


def nonnegative(name: str, value: float, remedy: str) -> float:
    """A number that is 0 or greater."""
    if not (value >= 0 and _is_finite(value)):
        raise OutOfRangeError(name, "a finite number >= 0", value, remedy)
    return value


def finite_array(name: str, values: ArrayLike) -> Floats:
    """A one-dimensional array of finite numbers."""
    return _array(name, values, rule="finite throughout", least=-np.inf)


def nonnegative_array(name: str, values: ArrayLike) -> Floats:
    """A one-dimensional array of finite numbers >= 0."""
    return _array(name, values, rule="finite and >= 0 throughout", least=0.0)


def count_array(name: str, values: ArrayLike) -> Floats:
    """A one-dimensional array of whole numbers >= 0."""
    array = nonnegative_array(name, values)
    broken = array[array != np.floor(array)]
    if broken.size:
        raise OutOfRangeError(name, "whole numbers throughout", broken[0], "pass counts")
    return array


def same_length(**arrays: Floats) -> None:
    """Arrays that belong together have one length."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ShapeError(f"arrays that belong together differ in length ({found}): align them")


def _is_finite(value: float) -> bool:
    """Also of integers beyond any float."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _array(name: str, values: ArrayLike, *, rule: str, least: float) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{name} must be a sequence of numbers: pass floats or ints") from None
    if array.ndim != 1:
        raise ShapeError(f"{name} must have one dimension, got {array.ndim}: pass a flat sequence")
    bad = array[~(np.isfinite(array) & (array >= least))]
    if bad.size:
        raise OutOfRangeError(name, rule, bad[0], "drop or mend that entry")
    return array
