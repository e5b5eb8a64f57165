"""Medians by partition alone: those of NumPy import numpy.ma, an eighth of a small what-if."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.floating[Any]]


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
    n = moved.shape[-1]
    ordered = np.partition(moved, (*{(n - 1) // 2, n // 2, n - 1},), axis=-1)
    middle = ordered[..., (n - 1) // 2 : n // 2 + 1].mean(axis=-1)
    last = ordered[..., -1]  # NaN sorts last
    found: Floats = np.where(np.isnan(last), last, middle)
    return found


def low_median(values: Floats, axis: int | tuple[int, ...]) -> Floats:
    """Lower of the two middle values of an even number: the better half of two or four peers."""
    axes = (axis,) if isinstance(axis, int) else axis
    moved = np.moveaxis(values, axes, range(-len(axes), 0))
    flat = moved.reshape(*moved.shape[: values.ndim - len(axes)], -1)
    middle = (flat.shape[-1] - 1) // 2
    found: Floats = np.partition(flat, middle, axis=-1)[..., middle]
    return found
