"""The parent's side of an ad hoc query: start the confined process, bound it, read its answer."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from data.errors import QueryError
from data.sandbox import wire


@dataclass(frozen=True)
class QueryLimits:
    """Limits of one ad hoc query."""

    wall_seconds: float = 20.0
    cpu_seconds: int = 20
    memory_mb: int = 1024
    """DuckDB's own limit: sorts, joins and aggregates end with a clear error."""
    address_space_mb: int = 3072
    """The system's limit, for the allocations that DuckDB's own does not count."""
    max_rows: int = 10_000
    max_bytes: int = 32 * 2**20
    """Size of the encoded rows; further rows are left out."""
    max_sql_bytes: int = 100_000


@dataclass(frozen=True)
class QueryResult:
    """Rows of an ad hoc query.

    Values are Python's: int, float, Decimal, str, bytes, date, time, datetime (UTC where the
    column has a time zone), timedelta, UUID, list, tuple (fixed-size arrays), dict (structs and
    maps), None. Dates outside the years 1 to 9999 come as text, intervals with 30 days a month.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    """DuckDB's name of each column's type."""
    rows: list[tuple[Any, ...]]
    truncated: bool
    """True where rows beyond max_rows or max_bytes were left out."""
    seconds: float


_DEFAULT_LIMITS = QueryLimits()


def run_query(database: Path, sql: str, limits: QueryLimits = _DEFAULT_LIMITS) -> QueryResult:
    """Rows of one SELECT or EXPLAIN over a snapshot, read in a confined process.

    Parameters
    ----------
    database
        File of a published snapshot; it is opened read-only.
    sql
        The statement.
    limits
        Time, memory and size it may take.

    Raises
    ------
    QueryError
        The query was refused, failed or outran a limit; the message is one line.
    """
    started = time.monotonic()
    try:
        size = len(sql.encode())
    except UnicodeEncodeError as error:
        raise QueryError(f"the query is not valid text: {error}") from None
    if size > limits.max_sql_bytes:
        raise QueryError(f"the query is longer than {limits.max_sql_bytes:,} bytes: shorten it")
    request = {"database": str(database.resolve()), "sql": sql, "limits": asdict(limits)}
    output = _ask(json.dumps(request).encode(), limits, started + limits.wall_seconds)
    try:
        *body, last = wire.read(output)
        if "error" in last:
            raise QueryError(str(last["error"]))
        return QueryResult(
            columns=tuple(body[0]["columns"]),
            types=tuple(body[0]["types"]),
            rows=[tuple(row) for row in body[1:]],
            truncated=bool(last["truncated"]),
            seconds=time.monotonic() - started,
        )
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise QueryError(f"the query's answer cannot be read: {error}") from error


# Isolated mode ignores PYTHON* variables and the working directory; the project's root goes last
# on the path, so nothing in it can stand in for an installed module.
_START = (
    "import sys; sys.path.append(sys.argv[1]); from data.sandbox.confined import answer; answer()"
)
_ROOT = Path(__file__).resolve().parents[2]


def _ask(request: bytes, limits: QueryLimits, deadline: float) -> bytes:
    """What a fresh child process answers."""
    environment = {"HOME": "/", "LC_ALL": "C.UTF-8"}
    if "LD_LIBRARY_PATH" in os.environ:  # a Python from an environment module needs it to start
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    with tempfile.TemporaryFile() as stdin:  # a file, since writing to a pipe could block
        stdin.write(request)
        stdin.seek(0)
        child = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, str(_ROOT)],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    try:
        output = b"".join(_chunks(child, limits, deadline))
        status = child.wait(max(deadline - time.monotonic(), 0.0))
    except subprocess.TimeoutExpired:
        raise QueryError(_too_long(limits)) from None
    finally:
        if child.poll() is None:
            # The group, and SIGKILL: DuckDB ignores interrupts inside one long function call.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        if child.stdout is not None:
            child.stdout.close()
    if status != 0:
        raise QueryError(_cause_of_death(status, limits))
    return output


def _chunks(
    child: "subprocess.Popen[bytes]", limits: QueryLimits, deadline: float
) -> Iterator[bytes]:
    """Output of the child until it ends, the deadline passes or it is more than was agreed."""
    assert child.stdout is not None  # opened as a pipe above
    pipe = child.stdout.fileno()
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    allowed = limits.max_bytes + 2**20  # the header and the closing line come on top of the rows
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise QueryError(_too_long(limits))
        chunk = os.read(pipe, 2**16)
        if not chunk:
            return
        allowed -= len(chunk)
        if allowed < 0:
            raise QueryError("the query answered more than it may: select fewer columns")
        yield chunk


def _too_long(limits: QueryLimits) -> str:
    return (
        f"the query ran longer than {limits.wall_seconds:g} s: "
        "narrow it by time or columns, or aggregate first"
    )


def _cause_of_death(status: int, limits: QueryLimits) -> str:
    """What the end of a process without an answer means."""
    if status == -signal.SIGXCPU:
        return (
            f"the query used more than {limits.cpu_seconds} s of processor time: "
            "narrow it by time or columns, or aggregate first"
        )
    if status == -signal.SIGALRM:
        return _too_long(limits)
    return (
        f"the query ended its process (status {status}), most often by asking for more than "
        f"{limits.address_space_mb:,} MB of memory: narrow it or aggregate first"
    )
