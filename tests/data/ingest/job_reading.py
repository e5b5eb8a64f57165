"""Reads a text by one of the readers of accounting."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import duckdb

from data.ingest.formats.source import opened
from data.ingest.reader import Options
from data.ingest.readers import known_readers

if TYPE_CHECKING:
    from data.ingest.reader import Batch

Jobs = list[dict[str, Any]]


def read_jobs(source: str, content: str | bytes | Path, **options: Any) -> tuple[Batch, Jobs]:
    """What became of a file: the batch, and its jobs as records with None for what is unknown."""
    with TemporaryDirectory() as folder, duckdb.cursor() as connection:
        connection.execute("SET TimeZone='UTC'")
        path = content if isinstance(content, Path) else Path(folder) / "given"
        if not isinstance(content, Path):
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        with opened(str(path), Path(folder)) as found:
            batch = known_readers()[source].read(found, Options(**options), connection)
            rows = batch.tables["jobs"]
            jobs = [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]
    skipped = sum(batch.skipped_by_reason.values())
    assert batch.rows_read == batch.rows_kept + skipped + batch.rejected.total
    assert batch.rows_kept == len(jobs)
    return batch, jobs


def rejected(batch: Batch) -> list[tuple[int, str]]:
    """Line and reason of each rejected record."""
    return [(row.line_no, row.reason) for row in batch.rejected]


def takers(head: str) -> list[str]:
    """The readers that take a file for theirs."""
    return [name for name, reader in known_readers().items() if reader.sniff(head)]
