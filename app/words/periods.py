"""Periods: how documents call them, how files are named by them, how an address names them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from app.words import numbers
from app.words.plain import file_name

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL_CLUSTERS = "all-clusters"
"""In names of files whose content is of several."""
MARGIN = timedelta(days=7)
"""Either side of the time that a link is about."""
LONGEST_NAME = 60
"""Letters of one name in the name of a file: systems take 255 in all."""
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Period:
    """A period [from_at, to_at), open where an end is None; whole weeks and months have names."""

    from_at: datetime | None
    to_at: datetime | None
    timezone: str = "UTC"
    """In which a week or month may be whole; what is neither is told in UTC."""

    def widened(self, margin: timedelta) -> Period:
        """The same with so much more on either side; an open end stays open.

        >>> from datetime import UTC
        >>> at = datetime(2026, 11, 16, tzinfo=UTC)
        >>> Period(at, at).widened(MARGIN).words
        '9 Nov 2026 00:00 to 23 Nov 2026 00:00 UTC'
        """
        first = None if self.from_at is None else self.from_at - margin
        last = None if self.to_at is None else self.to_at + margin
        return Period(first, last, self.timezone)

    @property
    def words(self) -> str:
        """What documents say.

        >>> from datetime import datetime, UTC
        >>> week = datetime(2026, 11, 16, tzinfo=UTC), datetime(2026, 11, 23, tzinfo=UTC)
        >>> Period(*week).words
        'Week 47, 16-22 November 2026 (UTC)'
        >>> Period(datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)).words
        'February 2026 (UTC)'
        >>> Period(datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 2, 3, tzinfo=UTC)).words
        '1 Feb 2026 00:00 to 3 Feb 2026 00:00 UTC'
        """
        whole = self._whole()
        if whole is None:
            return numbers.period(self.from_at, self.to_at, "UTC")
        first, after, zone = whole
        return f"{_called(first, after)} ({zone})"

    @property
    def file_part(self) -> str:
        """What names of files say; the last day is within.

        >>> from datetime import datetime, UTC
        >>> week = datetime(2026, 11, 16, tzinfo=UTC), datetime(2026, 11, 23, tzinfo=UTC)
        >>> Period(*week).file_part, Period(week[0], datetime(2026, 11, 18, tzinfo=UTC)).file_part
        ('2026-W47', '2026-11-16-to-2026-11-17')
        >>> Period(*week, "Europe/Berlin").file_part, Period(None, None).file_part
        ('2026-W47', 'all-time')
        """
        whole = self._whole()
        if whole is None:
            return self._dates()
        first, after, _ = whole
        year, number, _ = first.isocalendar()
        return f"{year}-W{number:02d}" if _is_week(first, after) else f"{first:%Y-%m}"

    def _dates(self) -> str:
        zone = ZoneInfo(self.timezone)
        first = None if self.from_at is None else f"{self.from_at.astimezone(zone):%Y-%m-%d}"
        end = self.to_at
        if end is not None and end != self.from_at:
            end -= _MOMENT
        last = None if end is None else f"{end.astimezone(zone):%Y-%m-%d}"
        if first is None:
            return "all-time" if last is None else f"until-{last}"
        if last is None:
            return f"from-{first}"
        return first if first == last else f"{first}-to-{last}"

    def _whole(self) -> tuple[date, date, str] | None:
        """First day, the one after the last, and the zone of a whole week or month; else None."""
        if self.from_at is None or self.to_at is None:
            return None
        for zone in (self.timezone, "UTC"):
            begin, end = (at.astimezone(ZoneInfo(zone)) for at in (self.from_at, self.to_at))
            days = begin.date(), end.date()
            midnights = begin.time() == end.time() == time()
            if midnights and (_is_week(*days) or _is_month(*days)):
                return (*days, zone)
        return None


def file_stem(what: str, during: Period, clusters: Sequence[str], *, synthetic: bool) -> str:
    """Name of a file without its ending; `clusters` are those that its content is of.

    >>> file_stem("fleet", Period(None, None), ["a-b"], synthetic=False)
    'faultline-a-b-all-time-fleet'
    >>> file_stem("fleet", Period(None, None), ["a/b"], synthetic=False)
    'faultline-a-b-c14cdd-all-time-fleet'
    >>> file_stem("fleet", Period(None, None), ["a", "b"], synthetic=True)
    'faultline-all-clusters-synthetic-all-time-fleet'
    >>> file_stem("fleet", Period(None, None), [], synthetic=False)
    'faultline-all-time-fleet'
    """
    cluster = clusters if len(clusters) < 2 else [ALL_CLUSTERS]
    marked = ["synthetic"] if synthetic else []
    named = [_in_a_file(name) for name in cluster]
    return "-".join(["faultline", *named, *marked, during.file_part, _in_a_file(what)])


def _in_a_file(name: str) -> str:
    """A name in that of a file; one that cannot stand there as it is has a mark of its own, so that
    no file takes the place of another's.
    """
    plain = file_name(name)
    if plain == name and len(plain) <= LONGEST_NAME:
        return plain
    mark = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:6]
    return f"{plain[: LONGEST_NAME - len(mark) - 1]}-{mark}"


def custom_period(first: datetime | None, last: datetime | None) -> dict[str, str]:
    """The period between two times as an address names it, in their zone, to the minute; an end
    that is None is open.

    >>> from datetime import datetime
    >>> custom_period(datetime(2026, 1, 1, 12), datetime(2026, 1, 2))
    {'period': 'custom', 'from': '2026-01-01T12:00', 'to': '2026-01-02T00:00'}
    >>> custom_period(None, None)
    {'period': 'all'}
    """
    ends = {"from": first, "to": last}
    known = {name: f"{at:%Y-%m-%dT%H:%M}" for name, at in ends.items() if at is not None}
    return {"period": "custom", **known} if known else {"period": "all"}


def _is_week(first: date, after: date) -> bool:
    return first.weekday() == 0 and after - first == timedelta(days=7)


def _is_month(first: date, after: date) -> bool:
    return first.day == after.day == 1 and (first + timedelta(days=31)).replace(day=1) == after


def _called(first: date, after: date) -> str:
    """A whole week by its ISO number and days, or a month by its name."""
    if not _is_week(first, after):
        return f"{first:%B %Y}"
    last = after - timedelta(days=1)
    begin = f"{first.day}-" if first.month == last.month else f"{first.day} {first:%B} to "
    if first.year != last.year:
        begin = f"{first.day} {first:%B %Y} to "
    return f"Week {first.isocalendar().week}, {begin}{last.day} {last:%B %Y}"
