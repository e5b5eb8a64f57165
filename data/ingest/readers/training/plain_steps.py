"""Columns of steps that hold plainly good numbers, judged in NumPy.

Judging each record in SQL costs as much as parsing it. Where all columns are numbers and no value
is in doubt nothing is to be judged; wherever one is, SQL decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from data.ingest.readers.training.fields import EARLIEST_S, EPOCH_UNITS, LARGEST_RANK, LATEST_S
from data.ingest.readers.training.quantities import DURATIONS, NUMBERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from data.ingest.readers.training.quantities import Column

    Floats = NDArray[np.float64]

NUMERIC = frozenset(("step", "rank", "logged_at", *NUMBERS, *DURATIONS))
"""Quantities that this way knows."""
_LARGEST = 9e15
_BLOCK = 1 << 18
"""Values that are worked on at once, so that no second column is held."""


def plainly_good(
    columns: Mapping[str, Floats], known: Mapping[str, Column]
) -> dict[str, Floats] | None:
    """The columns of training_metrics of a file, in their units; None where a value is in doubt.

    `columns` holds each quantity under its name; it is changed in place.
    """
    for quantity in known.keys() & {"step", "rank"}:
        largest = LARGEST_RANK if quantity == "rank" else _LARGEST
        if not all(_is_whole(block, largest) for block in _blocks(columns[quantity])):
            return None
    found = {name: columns[name] for name in known if name not in DURATIONS}
    for quantity in known.keys() & DURATIONS.keys():
        for block in _blocks(columns[quantity]):
            if (block < 0).any() or np.isinf(block).any():
                return None
            block *= known[quantity].factor
        found[DURATIONS[quantity]] = columns[quantity]
    if "logged_at" in known and not _to_seconds(columns["logged_at"]):
        return None
    return found


def _blocks(column: Floats) -> list[Floats]:
    return [column[begin : begin + _BLOCK] for begin in range(0, len(column), _BLOCK)]


def _is_whole(block: Floats, largest: float) -> bool:
    """Whether all values are whole numbers; NaN is none."""
    return bool((np.abs(block) < largest).all() and (block == np.floor(block)).all())


def _to_seconds(times: Floats) -> bool:
    """Turns times since 1970 into seconds, to the microsecond; whether all have one known unit."""
    if not len(times):
        return True
    first, last = times.min(), times.max()
    for units, micros in EPOCH_UNITS:
        if first >= EARLIEST_S * units and last < LATEST_S * units:
            for block in _blocks(times):
                block[:] = np.floor(block * micros + 0.5) / 1e6
            return True
    return False
