"""An ad hoc query from the outside: ask, wait or cancel, and read what was answered."""

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.current import CORRUPT, damaged
from data.errors import QueryError
from data.sandbox import process, wire
from data.sandbox.wire import QueryLimits

if TYPE_CHECKING:
    from data.sandbox.process import ConfinedProcess

MAX_AT_ONCE = 4
"""Queries that one server runs at the same time."""


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
    """True where rows were left out, beyond one of the limits."""
    seconds: float
    columns_left_out: int = 0
    """Columns beyond max_columns or max_head_bytes."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, made distinct: a, a_2."""
        names: dict[str, None] = {}
        places: dict[str, int] = {}
        for column in self.columns:
            name, place = column, places.get(column, 1)
            while name in names:
                place += 1
                name = f"{column}_{place}"
            names[name] = None
            places[column] = place
        return tuple(names)


_DEFAULT_LIMITS = QueryLimits()
_places = threading.BoundedSemaphore(MAX_AT_ONCE)


class RunningQuery:
    """One SELECT or EXPLAIN over a snapshot, under way in a confined process.

    It is safe to ask from several threads.

    Parameters
    ----------
    database
        File of a published snapshot; it is opened read-only.
    sql
        The statement.
    limits
        Time, memory and size it may take.
    parameters
        Values of the parameters that it may name, as `$name`.

    Raises
    ------
    QueryError
        The text is too long or none, or too many queries run.
    """

    def __init__(
        self,
        database: Path,
        sql: str,
        limits: QueryLimits = _DEFAULT_LIMITS,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.limits = limits
        self.started = time.monotonic()
        self.seconds = 0.0
        """Until its end; 0 while it runs."""
        self._database = database.resolve()
        self._request = _request(self._database, sql, limits, parameters or {})
        self._cancelled = False
        self._answer: QueryResult | QueryError | None = None
        self._ended = threading.Event()
        if not _places.acquire(blocking=False):
            raise QueryError(
                f"{MAX_AT_ONCE} queries run on this server already: try again once one has ended"
            )
        try:
            self._process: ConfinedProcess = process.take()
            threading.Thread(target=self._run, daemon=True, name="ad hoc query").start()
        except (OSError, RuntimeError) as error:  # no memory, process, thread or file to be had
            _places.release()
            why = getattr(error, "strerror", None) or error  # without the path of a program
            raise QueryError(f"the query cannot be started ({why}): try again later") from error

    @property
    def elapsed_seconds(self) -> float:
        """How long it has run."""
        return self.seconds if self._ended.is_set() else time.monotonic() - self.started

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it has ended, at the latest after this many seconds."""
        return self._ended.wait(seconds)

    def cancel(self) -> None:
        """Ends it: its process is killed. One that has ended already keeps its answer."""
        self._cancelled = True
        self._process.kill()

    def result(self) -> QueryResult:
        """Its rows, once it has ended.

        Raises
        ------
        QueryError
            The query was refused, failed, was cancelled or outran a limit; one line.
        """
        self.wait()
        if isinstance(self._answer, QueryError):
            raise self._answer
        assert self._answer is not None  # set before the end was
        return self._answer

    def _run(self) -> None:
        try:
            deadline = self.started + self.limits.wall_seconds
            output = self._process.ask(self._request, self.limits, deadline)
            self._answer = _read(output, self._database, time.monotonic() - self.started)
        except QueryError as error:
            self._answer = error
        except Exception as error:  # noqa: BLE001  a thread's error would be lost
            self._answer = QueryError(f"the query's process failed ({type(error).__name__})")
        finally:
            self.seconds = time.monotonic() - self.started
            if self._cancelled and isinstance(self._answer, QueryError):
                self._answer = QueryError(f"the query was cancelled after {self.seconds:.1f} s")
            _places.release()
            self._ended.set()
            process.refill()


def run_query(
    database: Path,
    sql: str,
    limits: QueryLimits = _DEFAULT_LIMITS,
    parameters: Mapping[str, Any] | None = None,
) -> QueryResult:
    """Rows of one SELECT or EXPLAIN over a snapshot, read in a confined process.

    Takes what `RunningQuery` takes.

    Raises
    ------
    QueryError
        The query was refused, failed or outran a limit; the message is one line.
    """
    running = RunningQuery(database, sql, limits, parameters)
    try:
        return running.result()
    except BaseException:  # Ctrl-C: the process must not outlive the wait
        running.cancel()
        running.wait()
        raise


def _request(database: Path, sql: str, limits: QueryLimits, parameters: Mapping[str, Any]) -> bytes:
    """The request as one line."""
    try:
        size = len(sql.encode())
    except UnicodeEncodeError as error:
        raise QueryError(f"the query is not valid text: {error}") from None
    if size > limits.max_sql_bytes:
        raise QueryError(f"the query is longer than {limits.max_sql_bytes:,} bytes: shorten it")
    return wire.line(
        {
            "database": str(database),
            "sql": sql,
            "limits": asdict(limits),
            "parameters": [[name, wire.encode(value)] for name, value in parameters.items()],
        }
    )


def _read(output: bytes, database: Path, seconds: float) -> QueryResult:
    """The result in an answer; raises what the confined process says went wrong."""
    try:
        *body, last = wire.read(output)
        if "error" in last:
            place = last["place"]
            raise QueryError(
                _told(str(last["error"]), database), None if place is None else _place(place)
            )
        return QueryResult(
            columns=tuple(body[0]["columns"]),
            types=tuple(body[0]["types"]),
            rows=[tuple(row) for row in body[1:]],
            truncated=bool(last["truncated"]),
            seconds=seconds,
            columns_left_out=int(body[0]["columns_left_out"]),
        )
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise QueryError(f"the query's answer cannot be read: {error}") from error


def _told(error: str, database: Path) -> str:
    """What went wrong; of a damaged snapshot with the ways back, without the store's folder."""
    if not error.startswith(CORRUPT):
        return error
    return str(damaged(database, error)).replace(f"{database.parent}{os.sep}", "")


def _place(told: list[int]) -> tuple[int, int, int]:
    line, column, length = (int(number) for number in told)
    return line, column, length
