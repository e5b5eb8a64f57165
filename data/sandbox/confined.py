"""The confined process: it opens the snapshot, locks every door, runs one statement and ends."""

import datetime
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import IO, Any, NoReturn

import _duckdb as duckdb  # the engine alone starts in half the time of the package around it
import pytz  # noqa: F401  DuckDB wants it for times with a zone, when no file opens any more

from data.errors import QueryError
from data.sandbox import judge, reason, wire
from data.sandbox.child import confine, die_first
from data.sandbox.landlock import reach_nothing
from data.sandbox.wire import QueryLimits

THREADS = max(1, min(2, (os.cpu_count() or 1) // 2))
"""Of one query: it never takes every processor of the machine."""
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
    database, sql = request["database"], request["sql"]
    try:
        _answer(request, limits, out)
    except Exception as error:  # noqa: BLE001  any doubt is a refusal, and its reason must arrive
        text, place = reason.told(error, sql, str(Path(database).parent))
        out.write(wire.line({"error": text, "place": place}))
    out.flush()
    os._exit(0)  # giving back a gigabyte in good order takes time


def _answer(request: dict[str, Any], limits: QueryLimits, out: IO[bytes]) -> None:
    con = _connect(request["database"], limits)
    reach_nothing()
    con.execute(f"SET threads = {THREADS}")  # started only now, so that Landlock holds them too
    con.execute("SET lock_configuration = true")
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
    folder = str(Path(request["database"]).parent)
    statement, parameters = judge.only_statement(
        con, request["sql"], folder, dict(request["parameters"])
    )
    con.execute(statement, parameters or None)
    _write_rows(con, out, limits)


def _connect(database: str, limits: QueryLimits) -> duckdb.DuckDBPyConnection:
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
    return con


def _write_rows(con: duckdb.DuckDBPyConnection, out: IO[bytes], limits: QueryLimits) -> None:
    described = con.description or []
    head = {
        "columns": [d[0] for d in described],
        "types": [str(d[1]).strip('"') for d in described],
    }
    out.write(wire.line(head))
    n_rows, n_bytes, truncated = 0, 0, False
    # Small batches: a row may hold megabytes, and this process's memory is limited.
    while not truncated and (batch := con.fetchmany(100)):
        for row in batch:
            text = wire.line([wire.encode(value) for value in row])
            n_bytes += len(text)
            if n_rows == limits.max_rows or n_bytes > limits.max_bytes:
                truncated = True
                break
            out.write(text)
            n_rows += 1
    if truncated and n_rows == 0 and limits.max_rows > 0:
        raise QueryError(f"the first row is larger than {limits.max_bytes:,} bytes: select less")
    out.write(wire.line({"truncated": truncated}))
