"""Health events: what their readers share, whoever found them.

A reader states how records lie in a file and what one of them tells; `events_of` does the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from data.errors import SourceError
from data.ingest.formats.json_records import JsonRecords
from data.ingest.reader import Batch, Options, RecordError, Source
from data.ingest.rows import Gathered, LocalClock, occurrence_keys, typed_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import duckdb

KEY = ("cluster", "node", "observed_at", "check_name", "severity", "message")
"""Columns that tell events apart of which no GPU is named."""
_EARLIEST_S, _LATEST_S = 946_684_800, 4_102_444_800  # 2000 to 2100: milliseconds lie outside


class HealthRow(NamedTuple):
    """One observation; the columns of `health_events` that a reader fills."""

    cluster: str
    node: str
    observed_at: datetime | None
    check_name: str
    message: str | None
    gpu: str | None = None
    severity: str | None = None
    xid: int | None = None
    sxid: int | None = None
    job_id: str | None = None


@dataclass
class HealthLog(Gathered):
    """What was made of the records of one file so far."""

    source: Source
    around: dict[str, object] = field(default_factory=dict, init=False)
    """What stands in the objects of JSON around a record."""


def events_of(
    records: Callable[[Source, HealthLog], Iterable[tuple[int, str, Any]]],
    event: Callable[[Any, HealthLog], Sequence[HealthRow] | str],
    kind: str,
    give: str,
    *,
    key: Sequence[str] = KEY,
) -> Callable[[Source, Options, duckdb.DuckDBPyConnection], Batch]:
    """What reads a file of health events into rows of `health_events`.

    Parameters
    ----------
    records
        Of a file every record: its line, its text and its content, which is a RecordError where it
        cannot be read.
    event
        Of a record its rows, or why it is skipped; RecordError where it cannot be read.
    kind : str
        What the store calls where the rows come from.
    give : str
        What holds such records, for whoever gave a file without any: SourceError.
    key : sequence of str
        Columns that tell events apart.
    """

    def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
        log = HealthLog(options, LocalClock(options), event, source)
        log.take_all(source.name, records(source, log))
        for row in log.rows:
            log.saw(row.cluster, row.observed_at)
        batch = log.batch("health_events", health_frame(log.rows, kind, key))
        if batch.rows_read == 0:
            raise SourceError(f"{source.name}: holds no records: give {give}")
        return batch

    return read


def health_frame(rows: Sequence[HealthRow], source: str, key: Sequence[str]) -> pd.DataFrame:
    """Rows of `health_events` with `source` and, over the columns `key`, `event_id`."""
    frame = typed_frame("health_events", rows, HealthRow._fields, source=source)
    frame["event_id"] = pd.array(occurrence_keys(frame, key), dtype="string")
    return frame


def json_objects(
    *keys: str, grouped: bool = False
) -> Callable[[Source, HealthLog], Iterator[tuple[int, str, Any]]]:
    """The objects of a file of JSON, by the `keys` of JsonRecords."""

    def records(source: Source, log: HealthLog) -> Iterator[tuple[int, str, Any]]:
        reading = JsonRecords(source, keys, log.options.limits, grouped=grouped)
        for line_no, raw, value in reading:
            log.around = reading.around
            is_record = isinstance(value, dict | RecordError)
            yield line_no, raw, value if is_record else RecordError("not a JSON object")
        log.around = reading.around
        log.notices += reading.notices()

    return records


def text_of(value: object) -> str | None:
    """A text without surrounding space, or a number as text; None where there is none."""
    if value is None or isinstance(value, dict | list):
        return None
    return str(value).strip() or None


def instant_of(value: object, cluster: str, clock: LocalClock, *, or_ms: bool = False) -> datetime:
    """A time in seconds since 1970, a number or a text, or as ISO 8601.

    With `or_ms` a number that is too large for seconds counts milliseconds.

    Raises
    ------
    RecordError
        Where it is none, or seconds of another time than the years 2000 to 2099.
    """
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError
        try:
            seconds = float(value)
        except ValueError:
            return clock.utc(datetime.fromisoformat(str(value).strip()), cluster)
        if or_ms and seconds >= _LATEST_S:
            seconds /= 1_000
        if not _EARLIEST_S <= seconds < _LATEST_S:
            raise ValueError
        return datetime.fromtimestamp(seconds, UTC)
    except (TypeError, ValueError, OverflowError):
        raise RecordError("impossible time") from None
