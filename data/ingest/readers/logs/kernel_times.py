"""When a line of a kernel log was written: years, zones and boots that it does not name."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from data.ingest.reader import Options, RecordError, Source
from data.ingest.rows import LocalClock

if TYPE_CHECKING:
    from data.ingest.readers.logs.prefix import Prefix

_YEARS_BETWEEN_LEAPS = 8  # at most, around 1900 and 2100
_AHEAD = timedelta(hours=14)  # a log's clock may be that far east of the clock of the file


class KernelTimes(LocalClock):
    """Turns what a line says of its time into UTC and counts what it lacked."""

    def __init__(self, source: Source, options: Options, cluster: str) -> None:
        super().__init__(options)
        self._source, self._cluster = source, cluster
        self._n_yearless = self._n_uptime = self._n_timeless = 0
        self._years: set[int] = set()

    def instant(self, prefix: Prefix) -> datetime | None:
        """When the line was written; None where it does not say or says what does not exist."""
        try:
            if prefix.time is None:
                return self._since_boot(prefix.uptime_s)
            time = prefix.time if prefix.has_year else self._with_year(prefix.time)
        except (ValueError, OverflowError):  # 29 February of a common year, a boot too long ago
            self._n_timeless += 1
            return None
        if prefix.zone is None:
            return self.utc(time, self._cluster)
        try:
            return self.utc_of_named_zone(time, self._cluster, prefix.zone)
        except ValueError as error:
            raise RecordError(str(error)) from None
        except OverflowError:  # at the first or last year that a date may have
            self._n_timeless += 1
            return None

    def notices(self) -> list[str]:
        """What had to be assumed or stays unknown."""
        notices = super().notices()
        if self._n_yearless:
            years = " and ".join(map(str, sorted(self._years)))
            origin = (
                "as --year says"
                if self._options.year is not None
                else f"by the file's modification time {self._source.modified_at:%Y-%m-%d} (pass "
                "--year to say otherwise)"
            )
            notices.append(f"times without a year, read as {years} {origin}: {self._n_yearless:,}")
        if self._n_uptime:
            notices.append(
                "events with seconds since boot only, their time stays unknown (pass --boot-at "
                f"with the time of the boot): {self._n_uptime:,}"
            )
        if self._n_timeless:
            notices.append(
                f"events without any time, or at one that does not exist: {self._n_timeless:,}"
            )
        return notices

    def _since_boot(self, uptime_s: float | None) -> datetime | None:
        boot_at = self._options.boot_at
        if uptime_s is not None and boot_at is not None:
            return boot_at + timedelta(seconds=uptime_s)
        self._n_uptime += uptime_s is not None
        self._n_timeless += uptime_s is None
        return None

    def _with_year(self, time: datetime) -> datetime:
        """A time without a year, put in `--year` or the last year before the file's own time."""
        if self._options.year is not None:
            dated = time.replace(year=self._options.year)
        else:
            latest = self._source.modified_at.replace(tzinfo=None) + _AHEAD
            dated = _latest_before(time, latest)
        self._n_yearless += 1
        self._years.add(dated.year)
        return dated


def _latest_before(time: datetime, latest: datetime) -> datetime:
    """`time` in the latest year in which it is not after `latest`, for 29 February a leap year."""
    for year in range(latest.year, latest.year - _YEARS_BETWEEN_LEAPS - 1, -1):
        with suppress(ValueError):  # 29 February
            if (dated := time.replace(year=year)) <= latest:
                return dated
    raise ValueError(time)
