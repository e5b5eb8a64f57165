"""Lines of logs as a log store gives them back: each with a time and labels around it.

A line whose labels, or the file that they name, say a job is one of that job's log; any other is
read as one of a kernel log, with host and time of the labels where it has none of its own.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from data.errors import SourceError
from data.ingest.formats.json_records import JsonRecords
from data.ingest.formats.json_text import json_value
from data.ingest.reader import RecordError
from data.ingest.readers.logs.job_log import (
    LONGEST_LINE,
    PATTERNS,
    SCHEMA,
    LogName,
    line_rank,
    log_name,
)
from data.ingest.readers.logs.kernel_line import Prefix
from data.ingest.readers.logs.kernel_log import KernelLog, may_matter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import duckdb

    from data.ingest.formats.json_records import Found
    from data.ingest.reader import Batch, Options, Source
    from data.limits import Limits

HOSTS = (
    "kubernetes_node_name", "_hostname", "hostname", "host_hostname", "host_name", "node_name",
    "nodename", "node", "host", "agent_hostname", "instance",
)  # fmt: skip
"""Labels that name the host of a line, likeliest first."""
JOBS = ("slurm_job_id", "slurm_jobid", "job_id", "jobid")
"""Labels that name the job; `job` is what Loki calls the collector's task."""
FILES = ("filename", "log_file_path", "file", "path")
MESSAGES = ("message", "log", "msg", "event_original")
TIMES = ("@timestamp", "__realtime_timestamp", "timestamp", "time")
_TRANSPORTS = ("_transport", "transport", "__journal__transport", "journald_transport")
_PROGRAMS = ("syslog_identifier", "__journal_syslog_identifier", "identifier", "appname", "program")
_OF_KERNEL = frozenset(
    ("kernel", "kern", "nv-fabricmanager", "nvidia-fabricmanager", "fabricmanager")
)
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?\s?(Z|UTC|[+-]\d\d:?\d\d)?"
)
_NUMBER = re.compile(r"\d{10,19}")
OPTIONS = ("node", "boot_at", "year", "pattern", "first_lines", "last_lines")
"""Options that say something to a reader of a log store."""
_PORT = re.compile(r":\d{1,5}$")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_S, _MS, _US = 10**9, 10**6, 10**3
"""Nanoseconds."""
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
        return None if self.at_ns is None else _EPOCH + timedelta(microseconds=self.at_ns // _US)

    def said(self, names: Iterable[str]) -> str | None:
        """The first of these labels that it has."""
        return next((self.labels[name] for name in names if self.labels.get(name)), None)


def labels_of(record: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Texts and numbers of an object, those of objects inside it under joined names.

    Examples
    --------
    >>> labels_of({"host": {"name": "gpu1"}, "@timestamp": 7, "tags": ["x"]})
    {'host_name': 'gpu1', '@timestamp': '7'}
    """
    found: dict[str, str] = {}
    for name, value in record.items():
        joined = before + name.lower().replace(".", "_")
        if isinstance(value, dict):
            found |= labels_of(value, f"{joined}_")
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            found[joined] = str(value)
    return found


def nanoseconds(text: str) -> int:
    """Nanoseconds since 1970 of a time: RFC 3339, or seconds, ms, us or ns since 1970.

    A time without a zone is UTC, as log stores have it.

    Raises
    ------
    RecordError
        Where it is none.

    Examples
    --------
    >>> nanoseconds("2024-03-01T12:00:00.123456789Z"), nanoseconds("1709294400")
    (1709294400123456789, 1709294400000000000)
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        number = int(text)
        return number * next(unit for unit in (_S, _MS, _US, 1) if number * unit < 2**63)
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise RecordError("impossible time")
    day, clock, fraction, zone = found.groups()
    try:
        at = datetime.fromisoformat(f"{day}T{clock}{(zone or 'Z').replace('UTC', 'Z')}")
        since = at - _EPOCH
    except (ValueError, OverflowError):
        raise RecordError("impossible time") from None
    return (since.days * 86_400 + since.seconds) * _S + int((fraction or "0").ljust(9, "0"))


def stored_line(text: str, labels: Mapping[str, str], at: str | None, limits: Limits) -> StoredLine:
    """A line; one that is an object of JSON itself is looked into for its message and labels."""
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
    return StoredLine(text, labels, None if at is None else nanoseconds(at))


def lines_of(
    keys: tuple[str, ...],
    unwrap: Callable[[dict[str, Any], Limits], Iterator[StoredLine | RecordError | str]],
) -> Callable[[Source, Options, duckdb.DuckDBPyConnection], Batch]:
    """What reads a file of a log store: faults of the kernel as rows of `health_events`, lines of
    jobs as rows of `job_logs`.

    `keys` are those of JsonRecords. `unwrap` gives the lines of a record, and RecordError in place
    of one that cannot be read.
    """

    def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
        records = JsonRecords(source, keys, options.limits)
        return _StoredLines(source, options, connection, unwrap).read(records)

    return read


@dataclass
class _StoredLines:
    """What has been read of one file so far."""

    source: Source
    options: Options
    connection: duckdb.DuckDBPyConnection
    unwrap: Callable[[dict[str, Any], Limits], Iterator[StoredLine | RecordError | str]]
    n_lines: int = 0
    n_taken: int = 0
    n_of_jobs: int = 0
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def read(self, records: JsonRecords) -> Batch:
        """All of the file.

        Raises
        ------
        SourceError
            Where it holds no line of a log.
        """
        self.kernel = KernelLog(self.source, self.options)
        self.connection.execute("DROP TABLE IF EXISTS stored_job_lines")
        lines = self._lines(records)
        while piece := list(islice(lines, _AT_ONCE)):
            matters = may_matter([line.text for _, line in piece])
            for (found, line), may in zip(piece, matters, strict=True):
                self._take(found, line, may=may)
            self._pack()
            self.options.progress(f"{self.source.name}: {self.n_lines:,} lines")
        log = self.kernel
        if self.n_lines == 0 and not log.rejected:
            raise SourceError(
                f"{self.source.name}: none of its records holds a line of a log "
                f"({', '.join(MESSAGES)}): give the logs of the kernel or of jobs"
            )
        batch = self.kernel.counted()
        if self.n_of_jobs:
            batch.tables["job_logs"] = self.connection.sql("FROM stored_job_lines")
            batch.rows_kept += self.n_of_jobs
        batch.notices += records.notices()
        return batch

    def _lines(self, records: Iterable[Found]) -> Iterator[tuple[Found, StoredLine]]:
        """Every line with the record that it stands in; the others are counted."""
        log = self.kernel
        for found in records:
            if isinstance(found.value, RecordError):
                log.rejected.reject(found.line_no, str(found.value), found.raw)
            elif not isinstance(found.value, dict):
                log.rejected.reject(found.line_no, "not a JSON object", found.raw)
            else:
                for line in self.unwrap(found.value, self.options.limits):
                    if isinstance(line, StoredLine):
                        self.n_lines += 1
                        yield found, line
                    elif isinstance(line, str):
                        log.skipped[line] += 1
                    else:
                        log.rejected.reject(found.line_no, str(line), found.raw)

    def _take(self, found: Found, line: StoredLine, *, may: bool) -> None:
        """Puts one line into its place."""
        self.n_taken += 1
        log = self.kernel
        name = self._job(line)
        if name is not None and line.at_ns is None:
            log.rejected.reject(found.line_no, "line of a job without a time", found.raw)
        elif name is not None:
            self.rows.append(self._of_job(name, line))
        elif not may:
            log.skipped["no_fault"] += 1
        elif not _may_be_kernels(line):
            log.skipped["not_from_kernel"] += 1
        else:
            host = line.said(HOSTS)
            self.kernel.beside = Prefix(None if host is None else _PORT.sub("", host), line.at)
            self.kernel.take_line(found.line_no, f"{line.text}\n", place=self.n_taken)

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
        at = line.at
        self.kernel.saw(self.kernel.cluster, at)
        host, path = name.node or line.said(HOSTS) or self.options.node, line.said(FILES)
        file = PurePosixPath(path).name if path else _NAMELESS
        rank = name.rank if name.rank is not None else line_rank(line.text)
        text = line.text.rstrip("\r\n")[-LONGEST_LINE:]
        host = None if host is None else _PORT.sub("", host)
        return (self.kernel.cluster, name.job_id, file, _line_no(line), at, host, rank, text)

    def _pack(self) -> None:
        """Lays the lines of jobs aside, where DuckDB keeps them on disk if they are many."""
        if not self.rows:
            return
        columns = zip(SCHEMA, zip(*self.rows, strict=True), strict=True)
        rows = pa.table([pa.array(values, of.type) for of, values in columns], schema=SCHEMA)
        self.connection.register("stored_piece", rows)
        self.connection.execute(
            "CREATE TEMP TABLE IF NOT EXISTS stored_job_lines AS FROM stored_piece LIMIT 0; "
            "INSERT INTO stored_job_lines FROM stored_piece"
        )
        self.connection.unregister("stored_piece")
        self.rows.clear()


def _may_be_kernels(line: StoredLine) -> bool:
    """Whether no label says that another program wrote it, and it is no record of one."""
    if line.text.startswith("{"):
        return False
    writers = {line.said(_TRANSPORTS), line.said(_PROGRAMS)} - {None}
    return not writers or bool(writers & _OF_KERNEL)


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
    room = next(unit for unit in (_S, _MS, _US, 1) if at_ns % unit == 0)
    digest = sha256(json.dumps(line.text).encode()).digest()
    return at_ns + int.from_bytes(digest[:6]) % room
