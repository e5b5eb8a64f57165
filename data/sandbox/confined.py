"""The confined process: it opens the snapshot, locks every door, runs one statement and ends."""

import datetime
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn, Self

import _duckdb as duckdb  # the engine alone starts in half the time of the package around it
import pytz  # noqa: F401  DuckDB wants it for times with a zone, when no file opens any more

from data.errors import QueryError
from data.sandbox import judge, reason, wire
from data.sandbox.child import confine, die_first
from data.sandbox.landlock import reach_nothing
from data.sandbox.wire import QueryLimits

THREADS = max(1, min(2, (os.cpu_count() or 1) // 2))
"""Of one query: it never takes every processor of the machine."""
ROWS_AT_ONCE, VALUES_AT_ONCE = 100, 20_000
"""Taken from DuckDB in one piece."""
MOST_PIVOTED = 1_000
"""Columns that a PIVOT makes at most."""
NESTED = 10_000
"""Levels of a parsed query; DuckDB parses none that is deeper."""


def answer() -> NoReturn:
    """Waits for a request on standard input; writes its rows, or why not, to standard output."""
    datetime.datetime.strptime("1", "%d")  # noqa: DTZ007  loads what no file can be opened for later
    sys.setrecursionlimit(NESTED)
    die_first()
    asked = sys.stdin.buffer.readline()
    if not asked.endswith(b"\n"):  # whoever started this process is gone
        os._exit(0)
    request = json.loads(asked, object_hook=wire.restore)
    limits = QueryLimits(**request["limits"])
    # Ends this process even where its parent is gone; the default action needs no Python code.
    signal.setitimer(signal.ITIMER_REAL, limits.wall_seconds + 1.0)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing but the answer reaches the parent
    respond(request, lambda: _confined(request["database"], limits), out)
    out.flush()
    os._exit(0)  # giving back a gigabyte in good order takes time


def respond(
    request: dict[str, Any], connect: Callable[[], duckdb.DuckDBPyConnection], out: IO[bytes]
) -> None:
    """Judges a query, runs it and writes its rows, or why not, for the parent to read."""
    folder, limits = str(Path(request["database"]).parent), QueryLimits(**request["limits"])
    try:
        con = connect()
        statement, parameters = judge.only_statement(
            con, request["sql"], folder, dict(request["parameters"])
        )
        con.execute(statement, parameters or None)
        _write_rows(con, out, limits)
    except Exception as error:  # noqa: BLE001  any doubt is a refusal, and its reason must arrive
        text, place = reason.told(error, request["sql"], folder)
        out.write(wire.line({"error": text, "place": place}))


def _confined(database: str, limits: QueryLimits) -> duckdb.DuckDBPyConnection:
    """The snapshot, open in a process that can reach nothing else."""
    con = locked(database, limits, first=reach_nothing)
    # Only now: the snapshot is open.
    confine(
        {
            resource.RLIMIT_AS: limits.address_space_mb * 2**20,
            resource.RLIMIT_CPU: limits.cpu_seconds,
            resource.RLIMIT_NOFILE: 0,  # what is open stays open; no file or socket comes after
            resource.RLIMIT_FSIZE: 0,
            resource.RLIMIT_CORE: 0,
        }
    )
    return con


def locked(
    database: str, limits: QueryLimits, *, first: Callable[[], object] = lambda: None
) -> duckdb.DuckDBPyConnection:
    """The snapshot, read-only, with every door of DuckDB's locked.

    `first` is done once it is open, before DuckDB starts threads: so that Landlock holds them too.
    """
    con = duckdb.connect(
        database,
        read_only=True,
        config={
            "enable_external_access": False,
            "python_enable_replacements": False,
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
            "allow_community_extensions": False,
            "allow_persistent_secrets": False,
            "memory_limit": f"{limits.memory_mb}MB",
            "threads": 1,
            "temp_directory": "",
        },
    )
    con.execute("SET TimeZone = 'UTC'")  # once locked it would be refused
    con.execute("SET errors_as_json = true")
    con.execute(f"SET pivot_limit = {MOST_PIVOTED}")
    # Without external access DuckDB still lets a query open the snapshot's own file, for writing
    # too: EXPLAIN ANALYZE COPY ... TO that path emptied it, read-only connection or not.
    con.execute("SET disabled_filesystems = 'LocalFileSystem'")
    first()
    con.execute(f"SET threads = {THREADS}")
    con.execute("SET lock_configuration = true")
    return con


def _write_rows(con: duckdb.DuckDBPyConnection, out: IO[bytes], limits: QueryLimits) -> None:
    head = _Head.of(con.description or [], limits)
    out.write(head.line)
    taken = _Taken()
    # Small batches: a row may hold megabytes, and this process's memory is limited.
    at_once = max(1, min(ROWS_AT_ONCE, VALUES_AT_ONCE // max(head.n_all, 1)))
    truncated = False
    while not truncated and (batch := con.fetchmany(at_once)):
        for whole in batch:
            row = whole[: head.n_shown]
            text = wire.line([wire.encode(value, limits.max_levels) for value in row])
            taken.add(len(text), wire.n_values(row) - 1, head.n_bytes_of_names)
            if taken.is_beyond(limits):
                truncated = True
                break
            out.write(text)
    if truncated and taken.n_rows == 1 and limits.max_rows > 0:
        raise QueryError(
            f"the first row is larger than {limits.max_bytes:,} bytes, or holds more than "
            f"{limits.max_values:,} values: select less"
        )
    out.write(wire.line({"truncated": truncated}))


@dataclass(frozen=True)
class _Head:
    """The columns of an answer: those that are shown, and how many there are in all."""

    line: bytes
    n_shown: int
    n_all: int
    n_bytes_of_names: int

    @classmethod
    def of(cls, described: Sequence[tuple[Any, ...]], limits: QueryLimits) -> Self:
        """The first columns, as many as the limits let through."""
        names: list[str] = []
        types: list[str] = []
        n_bytes = 0
        for name, type_, *_ in described[: limits.max_columns]:
            said = (name, str(type_).strip('"'))
            n_bytes += len(wire.line(said))
            if n_bytes > limits.max_head_bytes:
                break
            names.append(said[0])
            types.append(said[1])
        if described and not names:
            raise QueryError(
                f"name and type of the first column take more than {limits.max_head_bytes:,} "
                "bytes: give it a shorter name, or select a part of it"
            )
        left_out = len(described) - len(names)
        line = wire.line({"columns": names, "types": types, "columns_left_out": left_out})
        return cls(line, len(names), len(described), len(wire.line(names)))


@dataclass
class _Taken:
    """What the rows take so far."""

    n_rows: int = 0
    n_bytes: int = 0
    n_values: int = 0
    n_named_bytes: int = 0

    def add(self, n_bytes: int, n_values: int, n_named_bytes: int) -> None:
        """Counts one more row."""
        self.n_rows += 1
        self.n_bytes += n_bytes
        self.n_values += n_values
        self.n_named_bytes += n_named_bytes

    def is_beyond(self, limits: QueryLimits) -> bool:
        """Whether the last row was one too many."""
        return (
            self.n_rows > limits.max_rows
            or self.n_bytes > limits.max_bytes
            or self.n_values > limits.max_values
            or self.n_named_bytes > limits.max_named_bytes
        )
