"""Rows that readers make record by record: gathered and counted, typed, and given keys."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from data.hostlist import HostListError
from data.ingest.reader import RAW_LIMIT, Batch, Options, RecordError, Rejected
from data.tables import records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from data.ingest.local_time import LocalClock

_KINDS = {
    "VARCHAR": "string",
    "INTEGER": "Int64",
    "DOUBLE": "Float64",
    "BOOLEAN": "boolean",
    "TIMESTAMPTZ": "datetime64[us, UTC]",
}
"""Type of a table's column -> type of the same column of a frame."""


@dataclass
class Gathered:
    """What was made of the records of one input so far."""

    options: Options
    clock: LocalClock
    make: Callable[[Any, Gathered], Iterable[Any] | str]
    """Of a record its rows, or a reason to skip it; RecordError where it cannot be read."""
    rows: list[Any] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    n_kept: int = 0
    """Records of which rows were made."""
    clusters: set[str] = field(default_factory=set)
    first_at: datetime | None = None
    last_at: datetime | None = None

    def take(self, line_no: int, raw: str, record: Any) -> None:
        """Puts one record into its place."""
        try:
            made = self.make(record, self)
        except (RecordError, HostListError) as error:
            self.rejected.append(Rejected(line_no, str(error), raw[:RAW_LIMIT]))
            return
        if isinstance(made, str):
            self.skipped[made] += 1
        else:
            self.rows.extend(made)
            self.n_kept += 1

    def saw(self, cluster: str, *times: datetime | None) -> None:
        """Notes whose records these are, and when they are of."""
        self.clusters.add(cluster)
        for at in times:
            if at is not None:
                self.first_at = at if self.first_at is None else min(self.first_at, at)
                self.last_at = at if self.last_at is None else max(self.last_at, at)

    def batch(self, table: str, rows: pd.DataFrame) -> Batch:
        """All of the input; its rows belong to one table."""
        return Batch(
            {table: rows},
            rows_kept=self.n_kept,
            skipped_by_reason={reason: n for reason, n in self.skipped.items() if n},
            rejected=sorted(self.rejected, key=lambda record: record.line_no),
            first_at=self.first_at,
            last_at=self.last_at,
            clusters=tuple(sorted(self.clusters)),
            notices=self.clock.notices(),
        )


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


def health_frame(rows: Sequence[HealthRow], source: str, key: Sequence[str]) -> pd.DataFrame:
    """Rows of `health_events` with `source` and, over the columns `key`, `event_id`."""
    frame = typed_frame("health_events", rows, HealthRow._fields, source=source)
    frame["event_id"] = pd.array(occurrence_keys(frame, key), dtype="string")
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
