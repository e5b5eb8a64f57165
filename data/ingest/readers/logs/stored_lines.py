"""Lines of logs as a log store gives them back: each with a time and labels around it.

A line whose labels, or the file that they name, say a job is one of that job's log; any other is
read as one of a kernel log, with host and time of the labels where it has none of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from data.errors import SourceError
from data.ingest.formats.json_text import json_value
from data.ingest.health import json_objects
from data.ingest.reader import RecordError
from data.ingest.readers.logs.job_log import (
    LONGEST_LINE,
    PATTERNS,
    SCHEMA,
    LogName,
    line_rank,
    log_name,
)
from data.ingest.readers.logs.kernel_log import KernelLog, may_matter
from data.ingest.readers.logs.labels import (
    EPOCH,
    FILES,
    HOSTS,
    JOBS,
    MESSAGES,
    OF_KERNEL,
    PROGRAMS,
    TIMES,
    TRANSPORTS,
    UNITS,
    labels_of,
    nanoseconds,
)
from data.ingest.readers.logs.prefix import Prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import duckdb

    from data.ingest.reader import Batch, Options, Source
    from data.limits import Limits

OPTIONS = ("node", "boot_at", "year", "pattern", "first_lines", "last_lines")
"""Options that say something to a reader of a log store."""
_PORT = re.compile(r":\d{1,5}$")
_AT_ONCE = 10_000
_NAMELESS = "log store"
"""What the log of a job is called of which no file is named."""


class StoredLine(NamedTuple):
    """A line and what stands around it."""

    text: str
    labels: Mapping[str, str]
    """By their names in small letters, those of nested objects joined with _."""
    at_ns: int | None
    """When it was written, nanoseconds since 1970."""

    @property
    def at(self) -> datetime | None:
        """The same to a microsecond."""
        return None if self.at_ns is None else EPOCH + timedelta(microseconds=self.at_ns // 1_000)

    @property
    def host(self) -> str | None:
        """The host that its labels name, without a port."""
        host = self.said(HOSTS)
        return None if host is None else _PORT.sub("", host)

    def said(self, names: Iterable[str]) -> str | None:
        """The first of these labels that it has."""
        return next((self.labels[name] for name in names if self.labels.get(name)), None)


class Written(NamedTuple):
    """A line as a log store gives it back."""

    text: str
    labels: Mapping[str, str]
    at: str | None
    """When it was written."""


Lines = Iterable[Written | RecordError | str]
"""Lines of a record; in place of one why it is skipped, or why it cannot be read."""


def lines_of(
    keys: tuple[str, ...], unwrap: Callable[[dict[str, Any]], Lines]
) -> Callable[[Source, Options, duckdb.DuckDBPyConnection], Batch]:
    """What reads a file of a log store: faults of the kernel as rows of `health_events`, lines of
    jobs as rows of `job_logs`; SourceError where it holds no line of a log.

    `keys` are those of JsonRecords; `unwrap` gives the lines of a record.
    """

    def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
        log = _StoredLines(source, options, connection)
        connection.execute("DROP TABLE IF EXISTS stored_job_lines")
        lines = log.lines(json_objects(*keys)(source, log), unwrap)
        while piece := list(islice(lines, _AT_ONCE)):
            matters = may_matter([line.text for _, _, line in piece])
            for (line_no, raw, line), may in zip(piece, matters, strict=True):
                log.place(line_no, raw, line, may=may)
            log.pack()
            options.progress(f"{source.name}: {log.n_lines:,} lines")
        if log.n_lines == 0 and not log.rejected:
            raise SourceError(
                f"{source.name}: none of its records holds a line of a log "
                f"({', '.join(MESSAGES)}): give the logs of the kernel or of jobs"
            )
        batch = log.counted()
        if log.n_of_jobs:
            batch.tables["job_logs"] = connection.sql("FROM stored_job_lines")
            batch.rows_kept += log.n_of_jobs
        return batch

    return read


class _StoredLines(KernelLog):
    """What has been read of one file so far: a log of the kernel, and the lines of jobs in it."""

    def __init__(
        self, source: Source, options: Options, connection: duckdb.DuckDBPyConnection
    ) -> None:
        super().__init__(source, options)
        self._connection = connection
        self.n_lines = self.n_of_jobs = self._n_placed = 0
        self._of_jobs: list[tuple[Any, ...]] = []

    def lines(
        self,
        records: Iterable[tuple[int, str, Any]],
        unwrap: Callable[[dict[str, Any]], Lines],
    ) -> Iterator[tuple[int, str, StoredLine]]:
        """Every line behind the line and text of its record; what is none is counted."""
        for line_no, raw, record in records:
            for line in (record,) if isinstance(record, RecordError) else unwrap(record):
                limits = self.options.limits
                stored = _stored(line, limits) if isinstance(line, Written) else line
                if isinstance(stored, StoredLine):
                    self.n_lines += 1
                    yield line_no, raw, stored
                elif isinstance(stored, str):
                    self.skipped[stored] += 1
                else:
                    self.rejected.reject(line_no, str(stored), raw)

    def place(self, line_no: int, raw: str, line: StoredLine, *, may: bool) -> None:
        """Puts one line into its place; `may` says whether the kernel may report a fault on it."""
        self._n_placed += 1
        name = self._job(line)
        if name is not None and line.at_ns is None:
            self.rejected.reject(line_no, "line of a job without a time", raw)
        elif name is not None:
            self._of_jobs.append(self._of_job(name, line))
        elif not may:
            self.skipped["no_fault"] += 1
        elif not _may_be_kernels(line):
            self.skipped["not_from_kernel"] += 1
        else:
            self.beside = Prefix(line.host, line.at)
            self.take_line(line_no, f"{line.text}\n", place=self._n_placed)

    def _job(self, line: StoredLine) -> LogName | None:
        """The job whose log it is; None where nothing says one."""
        job_id = line.said(JOBS)
        if job_id is not None:
            return LogName(job_id)
        path = line.said(FILES)
        return None if path is None else _named(path, self.options.pattern)

    def _of_job(self, name: LogName, line: StoredLine) -> tuple[Any, ...]:
        """A row of `job_logs`, in the order of SCHEMA."""
        self.n_of_jobs += 1
        self.saw(self.cluster, line.at)
        path = line.said(FILES)
        file = PurePosixPath(path).name if path else _NAMELESS
        rank = name.rank if name.rank is not None else line_rank(line.text)
        text = line.text.rstrip("\r\n")[-LONGEST_LINE:]
        host = name.node or line.host or self.options.node
        return (self.cluster, name.job_id, file, _line_no(line), line.at, host, rank, text)

    def pack(self) -> None:
        """Lays the lines of jobs aside, where DuckDB keeps them on disk if they are many."""
        if not self._of_jobs:
            return
        columns = zip(SCHEMA, zip(*self._of_jobs, strict=True), strict=True)
        rows = pa.table([pa.array(values, of.type) for of, values in columns], schema=SCHEMA)
        self._connection.register("stored_piece", rows)
        self._connection.execute(
            "CREATE TEMP TABLE IF NOT EXISTS stored_job_lines AS FROM stored_piece LIMIT 0; "
            "INSERT INTO stored_job_lines FROM stored_piece"
        )
        self._connection.unregister("stored_piece")
        self._of_jobs.clear()


def _stored(line: Written, limits: Limits) -> StoredLine | RecordError:
    """A line; one that is an object of JSON itself is looked into for its message and labels."""
    text, labels, at = line
    inner: object = None
    if text.startswith("{"):
        with suppress(ValueError, RecordError):
            inner = json_value(text, limits)
    if isinstance(inner, dict):
        own = labels_of(inner)
        message = next((own[name] for name in MESSAGES if own.get(name)), None)
        if message is not None:
            text, labels = message, {**labels, **own}
            at = next((own[name] for name in TIMES if own.get(name)), at)
    try:
        return StoredLine(text, labels, None if at is None else nanoseconds(at))
    except RecordError as error:
        return error


def _may_be_kernels(line: StoredLine) -> bool:
    """Whether no label says that another program wrote it, and it is no record of one."""
    if line.text.startswith("{"):
        return False
    writers = {line.said(TRANSPORTS), line.said(PROGRAMS)} - {None}
    return not writers or bool(writers & OF_KERNEL)


@lru_cache(maxsize=4096)
def _named(path: str, pattern: str | None) -> LogName | None:
    """The job in the name of a file: by the pattern, else by names that say so themselves."""
    names = (log_name(path, each) for each in ((pattern,) if pattern else PATTERNS))
    return next((name for name in names if name is not None), None)


def _line_no(line: StoredLine) -> int:
    """Where a line stands among those of its file: its place in it, else its time in nanoseconds.

    Lines of one time that is no finer than a microsecond, a millisecond or a second are told apart
    by a hash of their text below that: they have no order in the store, and none gets lost.
    """
    offset = line.labels.get("log_offset", "")
    if offset.isdecimal():
        return int(offset[:18]) + 1
    at_ns = line.at_ns or 0
    room = next(unit for unit in UNITS if at_ns % unit == 0)
    digest = sha256(json.dumps(line.text).encode()).digest()
    return at_ns + int.from_bytes(digest[:6]) % room
