"""Rows that readers make record by record: gathered and counted, dated, typed, and given keys."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import pandas as pd

from data.errors import SourceError
from data.hostlist import HostListError
from data.ingest.reader import Batch, Options, RecordError, Rejections
from data.tables import records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from data.publish.writer import Rows

PROGRESS_RECORDS = 200_000
_UTC_NAMES = frozenset({"UTC", "GMT", "Z"})


class LocalClock:
    """Turns wall-clock times of a cluster into UTC.

    The zone is `--timezone`, else the cluster's in site.toml, else `default_zone` (what a column
    mapping states), else the one that was remembered, else UTC, which is reported as an assumption.
    `local` are the clusters of which a time was read in the zone of the cluster.
    """

    def __init__(self, options: Options, default_zone: str | None = None) -> None:
        self._options, self._default_zone = options, default_zone
        self._n_assumed_utc = self._n_repeated = self._n_skipped = 0
        self.local: set[str] = set()

    def utc(self, local: datetime, cluster: str) -> datetime:
        """The instant of a naive wall-clock time, or of an aware one whatever the cluster.

        Of an hour that the clocks repeat the first is taken; a time that they skip is read with
        the offset before the change.
        """
        if local.tzinfo is not None:
            return local.astimezone(UTC)
        name = self._zone_name(cluster)
        if self._default_zone is None or name != self._default_zone:
            self.local.add(cluster)
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

        Where nobody stated the cluster's zone, the abbreviation counts if it means one offset in
        every zone of the IANA database that uses it.

        Raises
        ------
        ValueError
            Where the cluster's zone does not use that abbreviation at that time.
        """
        if abbreviation in _UTC_NAMES:
            return local.replace(tzinfo=UTC)
        name = self._zone_name(cluster)
        offsets = _offsets(local.year).get(abbreviation, set()) if name is None else set()
        if len(offsets) == 1:
            return local.replace(tzinfo=timezone(min(offsets))).astimezone(UTC)
        there = local.replace(tzinfo=zone(name or "UTC"))
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
        return self._options.zone_of(cluster, self._default_zone)


@cache
def _offsets(year: int) -> dict[str, set[timedelta]]:
    """What each abbreviation of a zone means in a year: EDT one offset, CST three."""
    offsets: dict[str, set[timedelta]] = {}
    for name in available_timezones():
        for month in (1, 7):
            there = datetime(year, month, 1, tzinfo=ZoneInfo(name))
            offset = there.utcoffset()
            if offset is not None:
                offsets.setdefault(there.tzname() or "", set()).add(offset)
    return offsets


@cache
def zone(name: str) -> ZoneInfo:
    """The IANA zone called `name`; SourceError where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SourceError(
            f"time zone {name!r} is unknown: give an IANA name such as Europe/Berlin"
        ) from None


_KINDS = {
    "VARCHAR": "string",
    "INTEGER": "Int64",
    "BIGINT": "Int64",
    "DOUBLE": "Float64",
    "BOOLEAN": "boolean",
    "TIMESTAMPTZ": "datetime64[us, UTC]",
}
"""Type of a table's column -> type of the same column of a frame."""


@dataclass
class Tally:
    """What became of the records of one input so far."""

    options: Options
    clock: LocalClock
    rejected: Rejections = field(default_factory=Rejections, init=False)
    skipped: Counter[str] = field(default_factory=Counter, init=False)
    n_kept: int = field(default=0, init=False)
    """Records of which rows were made."""
    clusters: set[str] = field(default_factory=set, init=False)
    first_at: datetime | None = field(default=None, init=False)
    last_at: datetime | None = field(default=None, init=False)
    told: Counter[str] = field(default_factory=Counter, init=False)
    """What users must know of single records, and how often."""
    notices: list[str] = field(default_factory=list, init=False)
    """What they must know of the input."""

    def saw(self, cluster: str, *times: datetime | None) -> None:
        """Notes whose records these are, and when they are of."""
        self.clusters.add(cluster)
        for at in times:
            if at is not None:
                if self.first_at is None or at < self.first_at:
                    self.first_at = at
                if self.last_at is None or at > self.last_at:
                    self.last_at = at

    def batch(self, table: str, rows: Rows) -> Batch:
        """All of the input; its rows belong to one table."""
        return Batch(
            {table: rows},
            rows_kept=self.n_kept,
            skipped_by_reason={reason: n for reason, n in self.skipped.items() if n},
            rejected=self.rejected.ordered(),
            first_at=self.first_at,
            last_at=self.last_at,
            clusters=tuple(sorted(self.clusters)),
            local=frozenset(self.clock.local),
            notices=self.all_notices(),
        )

    def all_notices(self) -> list[str]:
        """What users must know: of times, of single records, of the input."""
        told = (f"{text}: {n:,}" for text, n in self.told.items() if n)
        return [*self.clock.notices(), *told, *self.notices]


@dataclass
class Gathered(Tally):
    """The same, with the rows that were made record by record."""

    make: Callable[[Any, Any], Iterable[Any] | str]
    """Of a record, and of this, its rows or a reason to skip it; RecordError where it cannot be
    read."""
    rows: list[Any] = field(default_factory=list, init=False)

    def take_all(self, name: str, records: Iterable[tuple[int, str, Any]]) -> None:
        """Puts all records of a file into their places: line, text and content of each."""
        for n_taken, (line_no, raw, record) in enumerate(records, 1):
            self.take(line_no, raw, record)
            if n_taken % PROGRESS_RECORDS == 0:
                self.options.progress(f"{name}: {n_taken:,} records")

    def take(self, line_no: int, raw: str, record: Any) -> None:
        """Puts one record into its place; a RecordError stands for one that cannot be read."""
        try:
            if isinstance(record, RecordError):
                raise record
            made = self.make(record, self)
        except (RecordError, HostListError) as error:
            self.rejected.reject(line_no, str(error), raw)
            return
        if isinstance(made, str):
            self.skipped[made] += 1
        else:
            self.rows.extend(made)
            self.n_kept += 1


def typed_frame(
    table: str, rows: Sequence[Any], columns: Sequence[str], **texts: Sequence[str] | str
) -> pd.DataFrame:
    """Rows as a frame of the types that the table's columns have, with further texts."""
    declared = records()[table].columns
    frame = pd.DataFrame(rows, columns=list(columns), dtype="object").astype(
        {name: _KINDS[declared[name].type] for name in columns}
    )
    for name, text in texts.items():
        values = [text] * len(frame) if isinstance(text, str) else list(text)
        frame[name] = pd.array(values, dtype="string")
    return frame


def occurrence_keys(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Keys of records from sources that have none: 24 hex digits of SHA-256 over `columns`.

    The occurrence number of a row is hashed with it: true duplicates within a file stay apart
    (occurrence 1, 2, ...), the same file twice gives the same keys, and of overlapping files the
    one with most occurrences decides how many are kept.
    """
    seen: Counter[str] = Counter()
    keys = []
    text = frame[list(columns)].astype("string").fillna("\x00")
    for values in text.itertuples(index=False, name=None):
        row = "\x1f".join(values)
        seen[row] += 1
        keys.append(hashlib.sha256(f"{row}\x1e{seen[row]}".encode()).hexdigest()[:24])
    return keys
