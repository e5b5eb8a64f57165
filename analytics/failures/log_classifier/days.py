"""The days and hours that lines of a log name."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

DAY = re.compile(r"\b\d{4}-\d\d-\d\d")
"""A day as most loggers write it."""
_DAY_ALONE = re.compile(r"\W*\d{4}-\d\d-\d\d(?![T ]?\d\d:)")
_STAMP = re.compile(r"\b(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)")
_LONG = timedelta(hours=1)
_TIME_OF_DAY = re.compile(r"\b\d\d?:\d\d\b")
_LONGEST_JOB = 14
"""Days before the end of a log after which what it tells of is no part of the job."""


def _hour(line: str) -> datetime | None:
    """The first day with a time that a line names."""
    found = _STAMP.search(line)
    if found is None:
        return None
    try:
        return datetime.fromisoformat(f"{found[1]}T{found[2]}")
    except ValueError:  # digits that are no time
        return None


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG_DAY = re.compile(
    r"\b([A-Z][a-z]{2}) {1,2}(\d{1,2}) \d\d:\d\d:\d\d(?:\.\d+)? (20\d\d)\b"
    r"|(\d{1,2})月 {1,2}(\d{1,2}) \d\d:\d\d:\d\d (20\d\d)\b"
)
_AMERICAN_DAY = re.compile(r"\b([01]\d)/([0-3]\d)/(20\d\d)\b")


def _days(text: str) -> list[str]:
    """Days that a text names, as 2026-01-05: also those of `dmesg -T` and of event logs of BMCs."""
    days = DAY.findall(text)
    days += [f"{year}-{month}-{day}" for month, day, year in _AMERICAN_DAY.findall(text)]
    for found in _LONG_DAY.finditer(text):
        name, day, year, number, its_day, its_year = found.groups()
        if name is None:
            days.append(f"{its_year}-{int(number):02d}-{int(its_day):02d}")
        elif name.lower() in _MONTHS:
            days.append(f"{year}-{_MONTHS.index(name.lower()) + 1:02d}-{int(day):02d}")
    return days


class Times:
    """The days and hours that lines of a log name, and how long before its end they lie."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines

    @cached_property
    def _last(self) -> str:
        last = (max(found) for line in reversed(self._lines) if (found := _days(line)))
        plain = (max(found) for line in reversed(self._lines) if (found := DAY.findall(line)))
        return max(next(last, ""), next(plain, ""))

    @cached_property
    def _last_hour(self) -> datetime | None:
        return next((at for line in reversed(self._lines) if (at := _hour(line))), None)

    def is_hours_before_the_end(self, shown: str) -> bool:
        """Whether a line's time lies an hour or more before the last one of the log."""
        at = _hour(shown)
        last = self._last_hour if at is not None else None
        return at is not None and last is not None and last - at >= _LONG

    def is_past(self, shown: str) -> bool:
        """Whether a line begins with a day and has no time, or names only days of weeks ago."""
        named = _days(shown)
        if not named:
            return False
        if _DAY_ALONE.match(shown) and not _TIME_OF_DAY.search(shown):
            return True
        try:
            age = date.fromisoformat(self._last) - date.fromisoformat(max(named))
        except ValueError:  # digits that are no day
            return False
        return age.days > _LONGEST_JOB
