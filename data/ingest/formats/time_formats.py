"""How a mapping says that times are written: `iso`, `epoch`, or a pattern of strptime."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.reader import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterable

ISO = "iso"
EPOCH = "epoch"
"""Seconds since 1970."""


def checked(origin: str, formats: Iterable[str]) -> tuple[str, ...]:
    """The formats, none of which strptime refuses; `origin` is what a mistake is reported for.

    Raises
    ------
    SourceError
        For a directive that strptime does not know.
    """
    kept = tuple(formats)
    for time_format in kept:
        try:
            datetime.strptime("", time_format)  # noqa: DTZ007 - only the format is of interest
        except ValueError as error:
            if "bad directive" in str(error) or "stray %" in str(error):
                raise SourceError(f"{origin}: time_format {time_format!r}: {error}") from None
    return kept


@lru_cache(maxsize=65536)
def read(text: str, formats: tuple[str, ...]) -> datetime:
    """A time in the first format that fits, without a zone where it states none.

    Raises
    ------
    RecordError
        Where none fits.
    """
    for time_format in formats:
        try:
            if time_format == ISO:
                return datetime.fromisoformat(text)
            if time_format == EPOCH:
                return datetime.fromtimestamp(float(text), UTC)
            return datetime.strptime(text, time_format)  # noqa: DTZ007 - local, see LocalClock
        except (ValueError, OverflowError, OSError):
            continue
    raise RecordError("impossible time")
