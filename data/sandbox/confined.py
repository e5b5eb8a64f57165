"""The confined process: it opens the snapshot, locks every door, runs one statement and ends."""

import ctypes
import datetime
import json
import os
import resource
import signal
import struct
import sys
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import _duckdb as duckdb  # the engine alone starts in half the time of the package around it
import pytz  # noqa: F401  DuckDB wants it for times with a zone, when no file opens any more

from data.errors import QueryError
from data.sandbox import judge, wire
from data.sandbox.child import confine, die_first
from data.sandbox.wire import QueryLimits

THREADS = max(1, min(2, (os.cpu_count() or 1) // 2))
"""Of one query: it never takes every processor of the machine."""


def answer() -> NoReturn:
    """Waits for a request on standard input; writes its rows, or why not, to standard output."""
    datetime.datetime.strptime("1", "%d")  # noqa: DTZ007  loads what no file can be opened for later
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
        text, place = _reason(error, sql)
        text = text.replace(f"{Path(database).parent}{os.sep}", "")
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
    statement = judge.only_statement(con, request["sql"], str(Path(request["database"]).parent))
    parameters = judge.bound(statement, dict(request["parameters"]))
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


LONGEST_WORD = 30
"""Characters of the text at the place that are told."""
LONGEST_REASON = 2_000
"""Characters: some of DuckDB's messages list every function there is."""


class Place(NamedTuple):
    """A stretch of a query's text, counted from 1."""

    line: int
    column: int
    length: int


def _reason(error: Exception, sql: str) -> tuple[str, Place | None]:
    """The reason on one line, and where in the text it lies; None where no place is known.

    DuckDB's `errors_as_json` gives the place as an offset in bytes and a length.
    """
    message = str(error) or type(error).__name__
    kind, brace, told = message.partition("{")
    if not brace:
        return " ".join(message.split()), None
    try:
        fields: dict[str, Any] = json.loads("{" + told)
        text = str(fields["exception_message"])
    except (ValueError, LookupError):
        return " ".join(message.split()), None
    if kind.startswith("Out of Memory"):  # the advice that follows names locked settings
        return f"{kind}{text.splitlines()[0]}: narrow the query or aggregate first", None
    place = _place(fields.get("location"), sql)
    reason = " ".join(f"{kind}{text}".split())[:LONGEST_REASON]
    if place is None:
        return reason, None
    at = sql.split("\n")[place.line - 1][place.column - 1 :][:LONGEST_WORD]
    return f"{reason} (line {place.line}, column {place.column}, at: {' '.join(at.split())})", place


def _place(location: object, sql: str) -> Place | None:
    """A place from DuckDB's "[offset,length]", in bytes, of the text."""
    try:
        offset, length = (int(part) for part in str(location).strip("[]").split(","))
    except ValueError:
        return None
    text = sql.encode()
    if not 0 <= offset < len(text):
        return None
    before = text[:offset].decode(errors="ignore")
    word = text[offset : offset + length].decode(errors="ignore")
    line = before.count("\n") + 1
    return Place(line, len(before) - (before.rfind("\n") + 1) + 1, max(len(word.split("\n")[0]), 1))


_CREATE_RULESET, _RESTRICT_SELF = 444, 446  # the same on every architecture
_VERSION = 1
_NO_NEW_PRIVILEGES = 38  # prctl
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""Rights over files that each version of the interface knows; later ones know 16."""
_ALL_OF_TWO = 0b11
"""Of the network to bind and connect TCP, of scopes abstract sockets and signals."""


def reach_nothing() -> bool:
    """Takes from this thread, and all it starts from now on, files by path, TCP and signals.

    What is open stays open. Returns whether the kernel offers it (Linux 5.13 and later, unless it
    was built or started without).

    References
    ----------
    Linux, Documentation/userspace-api/landlock.rst.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    if version < 1:
        return False
    taken = [(1 << _FILE_RIGHTS.get(version, 16)) - 1]
    taken += [_ALL_OF_TWO] * ((version >= 4) + (version >= 6))
    asked = struct.pack(f"{len(taken)}Q", *taken)
    rules = libc.syscall(_CREATE_RULESET, asked, ctypes.c_size_t(len(asked)), ctypes.c_uint32(0))
    if rules < 0:
        return False
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    held = libc.syscall(_RESTRICT_SELF, rules, ctypes.c_uint32(0)) == 0
    os.close(rules)
    return bool(held)
