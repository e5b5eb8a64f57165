"""Rows of text with a label that people gave, from a CSV or Parquet file."""

from __future__ import annotations

import difflib
import re
import tempfile
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import SourceError
from data.ingest.source import opened
from data.ingest.tabular import opened_table

if TYPE_CHECKING:
    from collections.abc import Sequence

_EPOCH = re.compile(r"\d{9,10}(?:\.\d+)?$")
_SLASHED = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{2}|\d{4})(?:[ T]+(.+))?$")
_CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
_DOTTED = "."
_LARGEST_MONTH = 12
_MIDNIGHT = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class LabelledText:
    """Rows in the order of the file."""

    rows: tuple[tuple[str, ...], ...]
    """One text a column asked for; empty where the file has none."""
    labels: tuple[str, ...]
    times: tuple[datetime | None, ...]
    """In UTC; None where unreadable, or where no column was named."""
    n_unlabelled: int
    """Rows left out because they have no label."""
    n_broken: int
    """Records left out because their fields do not fit the header."""


def read_labelled_text(
    name: str, text: Sequence[str], label: str, *, time: str | None = None
) -> LabelledText:
    """The labelled rows of a file; `-` is standard input.

    Raises
    ------
    SourceError
        Where the file cannot be read, lacks a column, or the text holds the label itself.
    """
    if label in text:
        raise SourceError(f"--label {label!r} is among --text: the answer is no part of the text")
    with tempfile.TemporaryDirectory() as folder, opened(name, Path(folder)) as found:
        header, records = opened_table(found.source, ",", None)
        wanted = [_column(name, column, header) for column in (*text, label)]
        time_column = None if time is None else _column(name, time, header)
        rows: list[tuple[str, ...]] = []
        labels: list[str] = []
        times: list[Any] = []
        n_unlabelled = n_broken = 0
        for record in records:
            if record.values is None:
                n_broken += 1
                continue
            *texts, answer = (_text(record.values[column]) for column in wanted)
            if not answer.strip():
                n_unlabelled += 1
                continue
            rows.append(tuple(texts))
            labels.append(answer.strip())
            times.append(None if time_column is None else record.values[time_column])
    return LabelledText(tuple(rows), tuple(labels), parsed_times(times), n_unlabelled, n_broken)


def parsed_times(values: Sequence[Any]) -> tuple[datetime | None, ...]:
    """Times of one column: ISO, seconds since 1970, or day and month with a year behind them.

    Day and month stand as in the whole column: the day comes first where dots divide them, or
    where a first number is above 12 and no second one is. A time without a zone is UTC.
    """
    texts = [value if isinstance(value, datetime | date) else _text(value) for value in values]
    slashed = [
        found for one in texts if isinstance(one, str) and (found := _SLASHED.match(one.strip()))
    ]
    day_first = any(int(found[1]) > _LARGEST_MONTH for found in slashed) and not any(
        int(found[3]) > _LARGEST_MONTH for found in slashed
    )
    return tuple(_time(one, day_first=day_first) for one in texts)


def _time(value: str | date, *, day_first: bool) -> datetime | None:
    """A time in UTC; None where it is none."""
    try:
        if isinstance(value, datetime):
            return _utc(value)
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        if _EPOCH.match(value.strip()):
            return datetime.fromtimestamp(float(value), UTC)
        if slashed := _SLASHED.match(value.strip()):
            return _slashed_time(slashed, day_first=day_first or slashed[2] == _DOTTED)
        return _utc(datetime.fromisoformat(value.strip()))
    except (ValueError, OverflowError):
        return None


def _slashed_time(found: re.Match[str], *, day_first: bool) -> datetime:
    """A time such as 11/29/2003 7:00."""
    first, second, year = int(found[1]), int(found[3]), int(found[4])
    day, month = (first, second) if day_first else (second, first)
    if len(found[4]) == 2:
        year += 2000 if year < 70 else 1900  # as POSIX reads two digits
    clock: datetime | None = _MIDNIGHT
    if found[5]:
        clock = next(filter(None, (_clock(found[5], form) for form in _CLOCKS)), None)
    if clock is None:
        raise ValueError(found[5])
    return datetime(
        year, month, day, clock.hour, clock.minute, clock.second, clock.microsecond, tzinfo=UTC
    )


def _clock(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
    except ValueError:
        return None


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _text(value: Any) -> str:
    """A cell as text; unknown is empty."""
    if value is None or value != value:
        return ""
    return value if isinstance(value, str) else str(value)


def _column(name: str, wanted: str, header: Sequence[str]) -> str:
    """The column of the header that was meant; case and outer blanks do not count."""
    if wanted in header:
        return wanted
    alike = [column for column in header if column.strip().casefold() == wanted.strip().casefold()]
    if len(alike) == 1:
        return alike[0]
    near = difflib.get_close_matches(wanted, header, n=1)
    remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(header)}"
    raise SourceError(f"{name}: has no column {wanted!r}: {remedy}")
