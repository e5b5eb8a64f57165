"""What a reduction would read, and what it would take, by a measured sample of it."""

from __future__ import annotations

import math
import resource
import secrets
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from data.reduce.engines import duckdb_engine
from data.reduce.inputs import PARQUET, bytes_of, partitions, unpacked
from data.reduce.kinds import KINDS
from data.reduce.running import opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from data.reduce.engine import Sampling
    from data.reduce.inputs import Partition
    from data.reduce.running import Request

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
    given = partitions(request.inputs, request.out, KINDS[request.kind].forms)
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
        with closing(duckdb_engine(aside, manifest, request)) as engine:
            n_rows, most_rows = _rows(engine, filled), request.most_rows or engine.most_rows
            largest = max(filled, key=lambda one: one.size)
            measured = _measured(engine, largest, Path(folder))
    n_sample, seconds, base, taken = measured
    if n_sample:
        held = min(n_rows, most_rows)
        told["seconds_estimated"] = math.ceil(10 * seconds * n_rows / n_sample) / 10
        told["memory_bytes_estimated"] = round(base + taken * held / n_sample)
    return told | {"rows_estimated": n_rows, "sample_rows": n_sample}


def _rows(engine: Sampling, new: Sequence[Partition]) -> int:
    """How many rows the files hold: Parquet says it, of texts their first lines."""
    of_parquet = [one.path for one in new if one.form == PARQUET]
    n_rows = engine.count(of_parquet) if of_parquet else 0
    return n_rows + sum(_lines(one) for one in new if one.form != PARQUET)


def _lines(partition: Partition) -> int:
    """How many lines a text has, by those of its beginning."""
    with bytes_of(partition) as packed:
        text = unpacked(partition, packed)
        n_lines = text.read(_SAMPLE_BYTES).count(b"\n")
        return int(n_lines * partition.size / max(1, packed.tell()))


def _measured(engine: Sampling, partition: Partition, folder: Path) -> tuple[int, float, int, int]:
    """Rows of a sample, the seconds that it takes, the memory before it, and what it adds."""
    base = _peak()
    began = time.monotonic()
    sample = engine.sample(partition, SAMPLE_ROWS)
    n_rows = engine.try_out(sample, folder)
    return n_rows, time.monotonic() - began, base, _peak() - base


def _peak() -> int:
    """The most memory that this process took, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
