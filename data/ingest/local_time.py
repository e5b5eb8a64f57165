"""Local times of a source as UTC; what had to be assumed is counted and said."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from data.errors import SourceError

if TYPE_CHECKING:
    from data.ingest.reader import Options

_UTC_NAMES = frozenset({"UTC", "GMT", "Z"})


class LocalClock:
    """Turns wall-clock times of a cluster into UTC.

    The zone is `--timezone`, else the cluster's in site.toml, else `default_zone` (what a column
    mapping states), else UTC, which is reported as an assumption.
    """

    def __init__(self, options: Options, default_zone: str | None = None) -> None:
        self._options, self._default_zone = options, default_zone
        self._n_assumed_utc = self._n_repeated = self._n_skipped = 0

    def utc(self, local: datetime, cluster: str) -> datetime:
        """The instant of a naive wall-clock time, or of an aware one whatever the cluster.

        Of an hour that the clocks repeat the first is taken; a time that they skip is read with
        the offset before the change.
        """
        if local.tzinfo is not None:
            return local.astimezone(UTC)
        name = self._zone_name(cluster)
        if name is None:
            self._n_assumed_utc += 1
        if name is None or name == "UTC":
            return local.replace(tzinfo=UTC)
        there = local.replace(tzinfo=zone(name))
        first, second = there.utcoffset(), there.replace(fold=1).utcoffset()
        if first is not None and second is not None and first != second:
            self._n_repeated += first > second
            self._n_skipped += first < second
        return there.astimezone(UTC)

    def utc_of_named_zone(self, local: datetime, cluster: str, abbreviation: str) -> datetime:
        """The instant of a wall-clock time whose zone is only abbreviated, e.g. `CET`.

        Raises
        ------
        ValueError
            Where the cluster's zone does not use that abbreviation at that time.
        """
        if abbreviation in _UTC_NAMES:
            return local.replace(tzinfo=UTC)
        there = local.replace(tzinfo=zone(self._zone_name(cluster) or "UTC"))
        for candidate in (there, there.replace(fold=1)):
            if candidate.tzname() == abbreviation:
                return candidate.astimezone(UTC)
        raise ValueError("zone on the line is not the cluster's: pass --timezone")

    def notices(self) -> list[str]:
        """What had to be assumed, one sentence each."""
        counts = [
            (self._n_assumed_utc, "times without a zone, read as UTC (pass --timezone)"),
            (self._n_repeated, "times in an hour that the clocks repeat, read as its first"),
            (self._n_skipped, "times in an hour that the clocks skip, read as if before it"),
        ]
        return [f"{text}: {n:,}" for n, text in counts if n]

    def _zone_name(self, cluster: str) -> str | None:
        """Zone of a cluster; None where nobody stated it."""
        stated = self._options.timezone or self._options.timezones.get(cluster)
        return stated or self._default_zone


@cache
def zone(name: str) -> ZoneInfo:
    """The IANA zone called `name`; SourceError where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SourceError(
            f"time zone {name!r} is unknown: give an IANA name such as Europe/Berlin"
        ) from None
