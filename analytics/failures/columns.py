"""Columns of frames as integers: times in microseconds, keys as codes, overlaps of intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from analytics.arrays import Bools, Ints
    from analytics.frames import Columns

NEVER = int(np.iinfo(np.int64).min)
"""An unknown time, in microseconds."""
SECOND = 1_000_000
"""Microseconds of a second."""
MINUTE = 60 * SECOND
"""Microseconds of a minute."""
_NUMBERS = ("n_gpus", "confidence", "xid", "sxid")


@dataclass(frozen=True)
class Spans:
    """Intervals at places: place code (-1 unknown), first and last microsecond, whose they are."""

    place: Ints
    first: Ints
    last: Ints
    member: Ints

    def known(self) -> Spans:
        """Those whose place and times are known and whose end is not before their start."""
        return self.where((self.place >= 0) & (self.first != NEVER) & (self.last >= self.first))

    def where(self, keep: Bools) -> Spans:
        """Some of them, in the order given."""
        return Spans(self.place[keep], self.first[keep], self.last[keep], self.member[keep])


def require(name: str, frame: pd.DataFrame | Columns, columns: Sequence[str]) -> None:
    """The frame has these columns.

    Raises
    ------
    ShapeError
        Where one is missing.
    """
    missing = [column for column in columns if column not in frame]
    if missing:
        raise ShapeError(
            f"{name} must have the columns {', '.join(columns)}, got none named "
            f"{', '.join(missing)}: select them in the query"
        )


def microseconds(times: pd.Series | NDArray[np.datetime64]) -> Ints:
    """Microseconds since 1970 in UTC; `NEVER` where unknown. Times without a zone are UTC.

    Examples
    --------
    >>> microseconds(pd.Series(["1970-01-01T00:01:00Z", None])).tolist()
    [60000000, -9223372036854775808]
    """
    if times.dtype.kind == "M":
        found: Ints = np.asarray(times, dtype="datetime64[us]").astype(np.int64)
        return found
    mixed = "ISO8601" if times.dtype == object else None
    return microseconds(pd.Series(pd.to_datetime(times, utc=True, format=mixed)))


def times(microseconds_utc: Ints) -> pd.Series:
    """The opposite of `microseconds`: UTC-aware times, NaT where unknown."""
    return pd.Series(microseconds_utc.view("datetime64[us]")).dt.tz_localize("UTC")


def columns_of(table: pd.DataFrame | Columns) -> dict[str, NDArray[Any]]:
    """A table's columns: times in microseconds, numbers as floats, text with None for unknown.

    Arrays are taken as queries give them, or as this function did.

    Examples
    --------
    >>> table = columns_of(pd.DataFrame({"node": ["a", None], "n_gpus": [8, None]}))
    >>> [values.tolist() for values in table.values()]
    [['a', None], [8.0, nan]]
    """
    return {name: _values(name, table[name]) for name in map(str, table)}


def _values(name: str, column: pd.Series | NDArray[Any]) -> NDArray[Any]:
    """One column as `columns_of` gives it."""
    if column.dtype.kind == "i" and name not in _NUMBERS:
        return np.asarray(column)
    if name.endswith("_at"):
        return microseconds(column)
    if name in _NUMBERS:
        if isinstance(column, np.ndarray) and column.dtype.kind in "fi":
            return column.astype(float)
        return pd.to_numeric(pd.Series(column)).to_numpy(dtype=float, na_value=np.nan)
    values = np.array(column, dtype=object)
    unknown = pd.isna(values)
    if unknown.any():
        values[unknown] = None
    return values


def taken(columns: Columns, rows: NDArray[Any]) -> Columns:
    """These rows of a table."""
    return {name: values[rows] for name, values in columns.items()}


def codes(frame: pd.DataFrame | Columns, columns: Sequence[str]) -> Ints:
    """Number of each row's combination of values, from 0; unknown values are a value of their own.

    Examples
    --------
    >>> codes(pd.DataFrame({"a": ["x", "x", None, None], "b": [1, 2, 1, 1]}), ["a", "b"]).tolist()
    [0, 1, 2, 2]
    """
    found = np.zeros(len(frame[columns[0]]), dtype=np.int64)
    if not len(found):
        return found
    for column in columns:
        values, uniques = pd.factorize(frame[column])
        if column == columns[0] and values.min() >= 0:  # numbered as they should be already
            found = values.astype(np.int64)
        else:
            found = pd.factorize(found * (len(uniques) + 1) + values + 1)[0].astype(np.int64)
    return found


def joint_codes(parts: Sequence[pd.DataFrame | Columns], columns: Sequence[str]) -> list[Ints]:
    """Codes of the same columns over several frames, in one numbering; -1 where one is unknown.

    Examples
    --------
    >>> left, right = pd.DataFrame({"node": ["a", "b"]}), pd.DataFrame({"node": [None, "b"]})
    >>> [part.tolist() for part in joint_codes([left, right], ["node"])]
    [[0, 1], [-1, 1]]
    """
    joined = {
        column: np.concatenate([np.asarray(part[column], dtype=object) for part in parts])
        for column in columns
    }
    found = codes(joined, columns)
    for values in joined.values():
        found[pd.isna(values)] = -1
    return np.split(found, np.cumsum([len(part[columns[0]]) for part in parts])[:-1])


def chained(spans: Spans, gap: int) -> tuple[Ints, Ints]:
    """Pairs of members whose intervals at one place follow each other within `gap` microseconds.

    Only neighbours are paired: whatever a chain of such gaps connects is connected by the pairs.
    """
    spans = spans.known()
    order = np.lexsort((spans.member, spans.last, spans.first, spans.place))
    place, first, member = spans.place[order], spans.first[order], spans.member[order]
    moments, rank = np.unique(np.concatenate([first, spans.last[order]]), return_inverse=True)
    reach = np.maximum.accumulate(place * (len(moments) + 1) + rank[len(first) :])
    until = moments[(reach - place * (len(moments) + 1)).clip(min=0)] if len(place) else first
    near = (place[1:] == place[:-1]) & (first[1:] - until[:-1] <= gap)
    return member[:-1][near], member[1:][near]


def overlaps(left: Spans, right: Spans) -> tuple[Ints, Ints]:
    """Positions in `left` and `right` of intervals at one place that share a moment (ends count).

    Examples
    --------
    >>> jobs = Spans(*(np.array(v) for v in ([0, 1], [10, 10], [20, 20], [0, 1])))
    >>> events = Spans(*(np.array(v) for v in ([0, 0], [20, 21], [25, 25], [0, 1])))
    >>> [found.tolist() for found in overlaps(jobs, events)]
    [[0], [0]]
    """
    order = np.lexsort((right.last, right.first, right.place))
    ends = (left.first, left.last, right.first[order], right.last[order])
    moments, ranks = np.unique(np.concatenate(ends), return_inverse=True)
    width = len(moments) + 1
    parts = np.split(ranks, np.cumsum([len(part) for part in ends])[:-1])
    begins = right.place[order] * width + parts[2]
    until = right.place[order] * width + parts[3]
    low = np.searchsorted(np.maximum.accumulate(until), left.place * width + parts[0], "left")
    high = np.searchsorted(begins, left.place * width + parts[1], "right")
    counts = np.maximum(high - low, 0)
    rows = np.repeat(np.arange(len(counts)), counts)
    offsets = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = low[rows] + offsets
    meets = until[found] >= (left.place * width + parts[0])[rows]
    return rows[meets], order[found[meets]]
