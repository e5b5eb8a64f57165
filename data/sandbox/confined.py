"""The confined process: it opens the snapshot, locks every door, runs one statement and ends."""

import json
import os
import re
import resource
import signal
import sys
from typing import IO, NoReturn

import duckdb
import pytz  # noqa: F401  DuckDB wants it for times with a zone, when no file opens any more

from data.errors import QueryError
from data.sandbox import QueryLimits, wire


def answer() -> NoReturn:
    """Run the query on standard input and write its rows, or why not, to standard output."""
    request = json.load(sys.stdin.buffer)
    limits = QueryLimits(**request["limits"])
    # Ends this process even where its parent is gone; the default action needs no Python code.
    signal.setitimer(signal.ITIMER_REAL, limits.wall_seconds + 1.0)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing but the answer reaches the parent
    try:
        con = _connect(request["database"], limits)
        _confine(limits)
        _write_rows(con, _only_statement(con, request["sql"]), (out, limits))
    except Exception as error:  # noqa: BLE001  any doubt is a refusal, and its reason must arrive
        out.write(wire.line({"error": _one_line(error)}))
    out.flush()
    os._exit(0)  # giving back a gigabyte in good order takes time


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
            "threads": 2,
            "temp_directory": "",
        },
    )
    con.execute("SET TimeZone = 'UTC'")  # once locked it would be refused
    # Without external access DuckDB still lets a query open the snapshot's own file, for writing
    # too: EXPLAIN ANALYZE COPY ... TO that path emptied it, read-only connection or not.
    con.execute("SET disabled_filesystems = 'LocalFileSystem'")
    con.execute("SET lock_configuration = true")
    return con


def _confine(limits: QueryLimits) -> None:
    """Limits of the operating system, set once the snapshot is open."""
    for kind, value in (
        (resource.RLIMIT_AS, limits.address_space_mb * 2**20),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_NOFILE, 0),  # what is open stays open; no file or socket comes after
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:  # a batch job may already stand under a lower one
            value = min(value, hard)
        # Of the processor time the hard limit kills without saying why: it comes a second later.
        grace = 1 if kind == resource.RLIMIT_CPU and value != hard else 0
        resource.setrlimit(kind, (value, value + grace))


def _only_statement(con: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """The one SELECT or EXPLAIN in the text; the object parsed here is the one that runs."""
    try:
        kinds = [(statement, statement.type.name) for statement in con.extract_statements(sql)]
    except duckdb.Error:
        raise
    except Exception as error:  # a kind of statement that the Python API has no name for
        raise QueryError(f"only one SELECT or EXPLAIN can be run here ({error})") from error
    if not kinds:
        raise QueryError("the query is empty: write one SELECT or EXPLAIN")
    if len(kinds) > 1:
        raise QueryError(f"only one SELECT or EXPLAIN can be run here, not {len(kinds)} statements")
    statement, kind = kinds[0]
    if kind == "MULTI":
        kind = "several statements in one (a PIVOT needs its values: ON column IN (...))"
    if kind not in {"SELECT", "EXPLAIN"}:
        raise QueryError(f"only one SELECT or EXPLAIN can be run here, not {kind}")
    return statement


def _write_rows(
    con: duckdb.DuckDBPyConnection,
    statement: duckdb.Statement,
    to: tuple[IO[bytes], QueryLimits],
) -> None:
    out, limits = to
    con.execute(statement)
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


_POSITION = re.compile(r"\n+LINE (?P<line>\d+): (?P<text>.*)\n(?P<caret> *)\^", re.DOTALL)


def _one_line(error: Exception) -> str:
    """The message on one line, DuckDB's picture of the position turned into words."""
    message = str(error) or type(error).__name__
    if message.startswith("Out of Memory"):  # the advice that follows names locked settings
        message = message.partition("\n")[0] + ": narrow the query or aggregate first"
    found = _POSITION.search(message)
    if found is None:
        return " ".join(message.split())
    reason = " ".join(message[: found.start()].split())
    prefix = f"LINE {found['line']}: "
    column = len(found["caret"]) - len(prefix)
    at = found["text"][column : column + 30]
    # A long line is shown from its middle, after three dots: the column is not known then.
    where = "" if found["text"].startswith("...") else f", column {column + 1}"
    return f"{reason} (line {found['line']}{where}, at: {at})"
