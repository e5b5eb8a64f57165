"""Logs that the readers of events know, line by line, as Parquet that every engine reads."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.formats.source import opened, without_long_lines
from data.ingest.reader import Options
from data.ingest.readers import known_readers
from data.reduce.engine import REJECTED, SKIPPED, told_here
from data.reduce.event_columns import part_of
from data.reduce.events import ALIKE, SCANNED
from data.reduce.inputs import JSON, TEXT, Partition, bytes_of, on_disk, unpacked

if TYPE_CHECKING:
    import pyarrow as pa

    from data.ingest.reader import Batch, Reader

_HEAD = 16_384
_SAMPLED_BYTES = 8 << 20
_TABLE = "health_events"
_NO_TIME = f"{REJECTED}its time is none"


def is_read_by_line(partition: Partition) -> bool:
    """Whether a reader of events reads the file: every log, and JSON of a form that one knows."""
    return partition.form == TEXT or (partition.form == JSON and _reader(partition) is not None)


def unfold(partition: Partition, path: Path, zone: str, cluster: str | None) -> list[str]:
    """Writes the records of a log to Parquet; what has to be known of them.

    Raises
    ------
    SourceError
        Where the file is empty, damaged or no log of events.
    """
    import duckdb
    import pyarrow.parquet as pq

    reader = _reader(partition) or known_readers()["kernel-log"]
    options = Options(cluster=cluster, default_cluster="", timezone=None if zone == "UTC" else zone)
    with (
        TemporaryDirectory() as folder,
        on_disk(partition, path.parent) as file,
        opened(str(file), Path(folder), called=partition.path, partial=False) as found,
        without_long_lines(found, options.limits, Path(folder)) as source,
        duckdb.connect() as connection,
    ):
        batch = reader.read(source, options, connection)
        batch.rejected.extend(source.too_long)
        pq.write_table(_rows(batch, partition), path)
    return [f"{partition.path}: {told_here(text)}" for text in batch.notices]


def beginning(partition: Partition, path: Path) -> Partition:
    """The first lines of a log, laid aside."""
    with bytes_of(partition) as packed:
        text = unpacked(partition, packed).read(_SAMPLED_BYTES)
    path.write_bytes(text[: text.rfind(b"\n") + 1] or text)
    return partition._replace(path=str(path), form=TEXT, size=path.stat().st_size)


@cache
def _reader(partition: Partition) -> Reader | None:
    """The only reader of events that knows how the file begins; None where none does."""
    try:
        with bytes_of(partition) as packed:
            head = unpacked(partition, packed).read(_HEAD).decode("utf-8", "replace")
    except SourceError:
        return None
    found = [one for one in known_readers().values() if one.fills == (_TABLE,) and one.sniff(head)]
    return found[0] if len(found) == 1 else None


def _rows(batch: Batch, partition: Partition) -> pa.Table:
    """All records: the kept with what they say, of others only why they are not."""
    import pandas as pd
    import pyarrow as pa

    frame: pd.DataFrame = batch.tables[_TABLE]  # type: ignore[assignment]
    texts = {
        name: (frame[name] if name in frame else pd.Series("", frame.index))
        .astype("string").fillna("").tolist()
        for name in (*ALIKE, "message")
    }  # fmt: skip
    known = frame["observed_at"].notna()
    columns = {
        **{name: pa.array(said, pa.string()) for name, said in texts.items()},
        "at_us": pa.array([_micros(at) if is_known else None for at, is_known in
                           zip(frame["observed_at"], known, strict=True)], pa.int64()),
        "part": pa.array([part_of(partition.path)] * len(frame), pa.int64()),
        "is_local": pa.array([False] * len(frame), pa.bool_()),
        "verdict": pa.array([None if each else _NO_TIME for each in known], pa.string()),
    }  # fmt: skip
    kept = pa.table(columns).select([*SCANNED, "is_local", "verdict"])
    lost = [
        *((SKIPPED + reason, n) for reason, n in batch.skipped_by_reason.items()),
        *((REJECTED + told_here(reason), n) for reason, n in batch.rejected.by_reason.items()),
    ]
    return pa.concat_tables([kept, *(_lost(kept.schema, *each) for each in lost)])


def _lost(schema: pa.Schema, verdict: str, n: int) -> pa.Table:
    """So many records of which only is known why they are not kept."""
    import pyarrow as pa

    said = {"verdict": verdict, "is_local": False}
    return pa.table(
        [pa.repeat(pa.scalar(said.get(each.name), each.type), n) for each in schema], schema
    )


def _micros(at: datetime) -> int:
    """Whole microseconds since 1970."""
    since = at - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
