"""What every reader does with a text that is not quite as it should be: one table for all."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import duckdb
import pytest

from data.errors import SourceError
from data.ingest.formats.source import opened
from data.ingest.reader import Options
from data.ingest.readers import known_readers
from data.publish import schema
from tests.data.ingest.test_limits import SAMPLES, stated_for

RECORDS = 20
"""Of each sample, beside its first lines."""
TIME = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?"
    rb"|\d{4}-\d\d-\d\d-\d\d\.\d\d\.\d\d"
    rb"|\d\d/\d\d/\d{4} \d\d:\d+"
    rb"|(?<!\d)1[67]\d{8}(\d{3}|\d{6})?(?!\d)"
    rb"|[A-Z][a-z]{2} +\d+ \d\d:"
)


class Read(NamedTuple):
    """What became of a text."""

    kept: int
    rejected: int
    tables: dict[str, int]


@cache
def store() -> duckdb.DuckDBPyConnection:
    """An empty store: a job's log asks whose job it is."""
    connection = duckdb.connect(config={"threads": 1})
    schema.update(connection, from_version=0)
    return connection


def read(name: str, content: bytes) -> Read:
    source, file, _ = SAMPLES[name]
    stated = {name: value for name, value in stated_for(source).items() if name != "mapping"}
    mapping = "pnnl" if source == "failure-log" else None
    options = Options(year=2026, timezone="UTC", mapping=mapping, **stated)
    with TemporaryDirectory() as folder, store().cursor() as connection:
        connection.execute("SET TimeZone='UTC'")
        path = Path(folder) / file
        path.write_bytes(content)
        with opened(str(path), Path(folder)) as found:
            batch = known_readers()[source].read(found, options, connection)
            sizes = {table: _size(rows) for table, rows in batch.tables.items()}
    skipped = sum(batch.skipped_by_reason.values())
    assert batch.rows_read == batch.rows_kept + skipped + batch.rejected.total
    return Read(batch.rows_kept, batch.rejected.total, sizes)


def _size(rows: object) -> int:
    return rows.count("*").fetchone()[0] if hasattr(rows, "fetchone") else len(rows)  # type: ignore[attr-defined, arg-type]


def head(content: bytes) -> list[bytes]:
    return content.splitlines(keepends=True)[: RECORDS + 2]


def same(plain: Read, changed: Read) -> bool:
    return changed == plain


def at_most_one_lost(plain: Read, changed: Read) -> bool:
    """One record may be rejected, and none is added."""
    return plain.kept - 1 <= changed.kept <= plain.kept and changed.rejected <= 1


def all_kept(plain: Read, changed: Read) -> bool:
    return changed.kept == plain.kept and changed.rejected <= 1


def each_twice(plain: Read, changed: Read) -> bool:
    """The merge keeps one of each; a reader may already."""
    return plain.kept <= changed.kept <= 2 * plain.kept and not changed.rejected


def wrong_time(lines: list[bytes]) -> bytes:
    last = len(lines) - 1
    return b"".join([*lines[:last], TIME.sub(b"yesterday", lines[last], count=1)])


CHANGES: dict[str, tuple[Callable[[list[bytes]], bytes], Callable[[Read, Read], bool]]] = {
    "a byte order mark": (lambda lines: b"\xef\xbb\xbf" + b"".join(lines), same),
    "CRLF": (lambda lines: b"".join(lines).replace(b"\n", b"\r\n"), same),
    "no end of line": (lambda lines: b"".join(lines).rstrip(b"\n"), same),
    "blank lines": (lambda lines: b"".join([lines[0], *(line + b"\n" for line in lines[1:])]), same),
    "NULs at the end": (lambda lines: b"".join(lines) + b"\0" * 40 + b"\n", all_kept),
    "a byte that is no UTF-8": (lambda lines: b"".join(lines) + b"\xff\n", all_kept),
    "cut in the last record": (
        lambda lines: b"".join(lines)[: -len(lines[-1]) // 2 - 1],
        at_most_one_lost,
    ),
    "each record twice": (lambda lines: b"".join([lines[0], *(2 * line for line in lines[1:])]),
                          each_twice),
    "a time that is none": (wrong_time, at_most_one_lost),
}  # fmt: skip
WITHOUT_TIMES = {"trace", "job log", "nodes", "sinfo", "infiniband", "wandb chart"}
"""No time that anybody could write in words."""
WHOLE_TEXT = {"trace, Parquet"}
"""No lines."""


def more_lines(plain: Read, changed: Read) -> bool:
    """Of a log every line counts, also one that is blank."""
    return changed.kept > plain.kept and not changed.rejected


OTHERWISE: dict[tuple[str, str], Callable[[Read, Read], bool] | None] = {
    ("trace", "cut in the last record"): None,
    ("trace", "each record twice"): None,
    ("trace", "NULs at the end"): None,
    ("trace", "a byte that is no UTF-8"): None,
    ("job log", "blank lines"): more_lines,
    ("job log", "NULs at the end"): more_lines,
    ("job log", "a byte that is no UTF-8"): more_lines,
}
"""What holds instead of the table; None where the file is refused: a trace is analysed as a whole,
so that one record that is broken or there twice refuses it."""


@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - WHOLE_TEXT))
def test_a_text_that_is_not_quite_right_loses_nothing_without_a_word(name: str) -> None:
    lines = head(SAMPLES[name][2])
    plain = read(name, b"".join(lines))
    assert plain.kept
    broken = {}
    for change, (make, usually) in CHANGES.items():
        holds = OTHERWISE.get((name, change), usually)
        without = change == "a time that is none" and name in WITHOUT_TIMES
        assert (make(lines) == b"".join(lines)) == without, change
        try:
            changed = read(name, make(lines))
        except SourceError as error:
            if holds is not None or "\n" in str(error):
                broken[change] = str(error)
        else:
            if holds is None or not holds(plain, changed):
                broken[change] = f"{plain} {changed}"
    assert not broken
