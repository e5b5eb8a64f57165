"""One unit of the last digit that a series of numbers was logged with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from analytics.arrays import Floats

LOOKED_AT: Final = 4096
"""Values by which digits are told."""
_DECIMALS, _DIGITS, _BITS = 13, 16, 53
"""More than any double holds."""


def last_digit(values: Floats, at: Floats) -> Floats:
    """One unit of the last digit of the values, where they are as large as `at`.

    Digits are decimals (`%.3f`), significant ones (`%.3e`) or bits of the mantissa (bfloat16): of
    each the fewest that hold all values, and of these three the coarsest. Misleads where values are
    few and round for another reason.

    Parameters
    ----------
    values : numpy.ndarray, shape (n,)
        Finite; of none the unit is 0.
    at : numpy.ndarray
        Sizes, 0 or more.

    Returns
    -------
    numpy.ndarray
        Of the shape of `at`; 0 where it is.

    Examples
    --------
    >>> last_digit(np.array([1.25, 3.5, 2.75, 1.3]), np.array([2.0]))
    array([0.01])
    """
    some = np.linspace(0, len(values) - 1, min(len(values), LOOKED_AT)).astype(int)
    known = np.abs(np.unique(values[some]))
    known = known[known > 0]
    if not len(known):
        return np.zeros(at.shape)
    units = [
        np.full(at.shape, 10.0 ** -_fewest([known * 10.0**k for k in range(_DECIMALS)])),
        _power(10.0, at) * 10.0 ** -_fewest([known / _power(10.0, known) * 10.0**k
                                             for k in range(_DIGITS)]),
        _power(2.0, at) * 2.0 ** -_fewest([known / _power(2.0, known) * 2.0**k
                                           for k in range(_BITS)]),
    ]  # fmt: skip
    found: Floats = np.where(at > 0, np.max(units, axis=0), 0.0)
    return found


def _power(base: float, size: Floats) -> Floats:
    """The largest power of a base that is no more than a size; 1 for 0."""
    found: Floats = base ** np.floor(np.log2(np.where(size > 0, size, 1.0)) / np.log2(base))
    return found


def _fewest(scaled: list[Floats]) -> int:
    """How many further digits make all values whole numbers."""
    for n, each in enumerate(scaled):
        if (np.abs(each - np.round(each)) <= 4 * np.finfo(np.float64).eps * each).all():
            return n
    return len(scaled)
