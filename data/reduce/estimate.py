"""What a reduction would read, and what it would take, by a measured sample of it."""

from __future__ import annotations

import gzip
import resource
import secrets
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import zstandard

from data.reduce.engine import Found
from data.reduce.inputs import PARQUET, Partition, partitions
from data.reduce.plan import HOUR_US
from data.reduce.running import EVENTS, Request, duckdb_engine, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from data.reduce.duckdb_engine import DuckDBEngine

SAMPLE_ROWS = 1_000_000
_SAMPLE_BYTES = 1 << 20
_KIB = 1024


def estimate(request: Request) -> dict[str, Any]:
    """Files, bytes and rows that are new or changed, with the seconds and memory they would take.

    The largest file's first million rows are reduced, and time and memory taken as proportional to
    rows, memory up to the rows that are held at once. It misleads where other files are of another
    form, and where series are many more than the sample shows.

    Raises
    ------
    DataError
        Where the inputs or the folder cannot be used.
    """
    given = partitions(request.inputs, request.out, texts=request.kind == EVENTS)
    manifest = opened(request)
    known = manifest.inputs
    new = [
        one
        for one in given
        if one.path not in known or known[one.path].identity != one.identity
    ]  # fmt: skip
    told: dict[str, Any] = {
        "files": len(given),
        "files_new": len(new),
        "bytes_new": sum(one.size for one in new),
        "rows_estimated": 0,
        "sample_rows": 0,
        "seconds_estimated": None,
        "memory_bytes_estimated": None,
    }
    filled = [one for one in new if one.size]
    if not filled:
        return told
    with TemporaryDirectory() as folder:
        aside = Path(folder) / secrets.token_hex(4)
        with closing(duckdb_engine(aside, manifest)) as engine:
            n_rows, most_rows = _rows(engine, filled), engine.most_rows
            measured = _measured(engine, max(filled, key=lambda one: one.size), Path(folder))
    n_sample, seconds, base, taken = measured
    if n_sample:
        held = min(n_rows, request.most_rows or most_rows)
        told["seconds_estimated"] = round(seconds * n_rows / n_sample, 1)
        told["memory_bytes_estimated"] = round(base + taken * held / n_sample)
    return told | {"rows_estimated": n_rows, "sample_rows": n_sample}


def _rows(engine: DuckDBEngine, new: Sequence[Partition]) -> int:
    """How many rows the files hold: Parquet says it, of texts their first lines."""
    of_parquet = [one.path for one in new if one.form == PARQUET]
    n_rows = engine.count(of_parquet) if of_parquet else 0
    return n_rows + sum(_lines(one) for one in new if one.form != PARQUET)


def _lines(partition: Partition) -> int:
    """How many lines a text has, by those of its beginning."""
    with Path(partition.path).open("rb") as packed:
        suffix = Path(partition.path).suffix.lower()
        text: Any = packed
        if suffix == ".gz":
            text = gzip.GzipFile(fileobj=packed)
        elif suffix == ".zst":
            text = zstandard.ZstdDecompressor().stream_reader(packed)
        n_lines = text.read(_SAMPLE_BYTES).count(b"\n")
        return int(n_lines * partition.size / max(1, packed.tell()))


def _measured(
    engine: DuckDBEngine, partition: Partition, folder: Path
) -> tuple[int, float, int, int]:
    """Rows of a sample, the seconds that it takes, the memory before it, and what it adds."""
    base = _peak()
    began = time.monotonic()
    sample = engine.sample(partition, SAMPLE_ROWS)
    found = engine.survey(sample)
    hours = [int(begin) for begin in found.hours]
    if hours:
        engine.begin(found.metrics, [], 0)
        period = min(hours), max(hours) + HOUR_US
        engine.reduce(Found([sample], ()), period, (0, 1), folder)
    return found.rows, time.monotonic() - began, base, _peak() - base


def _peak() -> int:
    """The most memory that this process took, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
