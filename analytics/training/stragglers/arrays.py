"""Medians, quantiles and distinct values without numpy.ma, an eighth of a small what-if."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.floating[Any]]
    Times: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]

_SHORT: Final = 128
"""Length up to which sorting a row takes less than to divide it."""


def median(values: ArrayLike, axis: int | None = None) -> Floats:
    """The middle value, the mean of the two middle ones of an even number; None for all axes.

    In the precision of the values, to the last digit what `np.median` gives; NaN where one is.

    Examples
    --------
    >>> float(median([3.0, 1.0, 2.0, 10.0]))
    2.5
    """
    given = np.asarray(values)
    moved = given.ravel() if axis is None else np.moveaxis(given, axis, -1)
    half = moved.shape[-1] // 2
    ordered = _ordered(moved, half)
    middle = ordered[..., half]
    if moved.shape[-1] % 2 == 0:
        middle = (ordered[..., :half].max(axis=-1) + middle) / 2
    largest = moved.max(axis=-1)  # NaN where one is
    return np.where(np.isnan(largest), largest, middle)


def low_median(values: Floats, axis: int | tuple[int, ...]) -> Floats:
    """Lower of the two middle values of an even number: the better half of two or four peers."""
    axes = (axis,) if isinstance(axis, int) else axis
    moved = np.moveaxis(values, axes, range(-len(axes), 0))
    flat = moved.reshape(*moved.shape[: values.ndim - len(axes)], -1)
    middle = (flat.shape[-1] - 1) // 2
    return np.asarray(_ordered(flat, middle)[..., middle])


def _ordered(rows: Floats, place: int) -> Floats:
    """Rows with the right value at a place, and none before it that is greater.

    A division by several places at once takes five to ten times as long as one by a single place.
    """
    if rows.shape[-1] <= _SHORT:
        return np.sort(rows, axis=-1)
    return np.partition(rows, place, axis=-1)


def quantiles(values: Times, shares: Sequence[float]) -> list[float]:
    """Quantiles of values, linear between neighbours as those of `np.quantile`.

    Examples
    --------
    >>> quantiles(np.array([3.0, 1.0, 2.0]), [0.25, 1.0])
    [1.5, 3.0]
    """
    places = np.multiply(shares, len(values) - 1)
    found: list[float] = np.interp(places, np.arange(len(values)), np.sort(values)).tolist()
    return found


def distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Distinct values in order, and of each value its place there; np.unique imports numpy.ma."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    new = np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(values)]
    place = np.empty(len(values), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return ordered[new], place
