"""What every reader takes and gives: a Source and Options in, a Batch out.

A reader is a module below data.ingest.readers that states a `READER`, by which it is found.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from data.errors import SourceError
from data.limits import DEFAULTS, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime
    from pathlib import Path

    import duckdb
    import pandas as pd
    import pyarrow as pa

    from data.ingest.readers.tables.mapped_table import Layout


RAW_LIMIT = 2000
"""Characters of a rejected record that are kept."""
MAX_REJECTED = 100_000
"""Rejected records of one ingest that are kept with their text; all are counted."""
_REASONS_TOLD = 5


@dataclass(frozen=True)
class Rejected:
    """A record that could not be read."""

    line_no: int
    """Line in the file, from 1, where the record begins."""
    reason: str
    """Why, in words that count well: one reason a kind of fault, no values inside."""
    raw: str
    """The record as it stands, cut to RAW_LIMIT."""


class Rejections(list[Rejected]):
    """Rejected records: all are counted, the first MAX_REJECTED are kept with their text.

    `by_reason` and `total` count; as a list it holds what is kept.
    """

    def __init__(self, rows: Iterable[Rejected] = ()) -> None:
        super().__init__()
        self.by_reason: Counter[str] = Counter()
        self.extend(rows)

    @property
    def total(self) -> int:
        """How many there are."""
        return self.by_reason.total()

    def append(self, row: Rejected) -> None:
        """Counts a record, and keeps it while there is room."""
        self.reject(row.line_no, row.reason, row.raw)

    def reject(self, line_no: int, reason: str, raw: str) -> None:
        """Counts a record, and keeps the beginning of its text while there is room."""
        self.by_reason[reason] += 1
        if len(self) < MAX_REJECTED:
            super().append(Rejected(line_no, reason, raw[:RAW_LIMIT]))

    def extend(self, rows: Iterable[Rejected]) -> None:
        """Counts and keeps several, of others of this class also those that are only counted."""
        counted = Counter(rows.by_reason) if isinstance(rows, Rejections) else Counter[str]()
        for row in rows:
            self.append(row)
            counted[row.reason] -= 1
        if isinstance(rows, Rejections):
            self.by_reason += counted

    def ordered(self) -> Rejections:
        """The same in the order of their lines."""
        found = Rejections()
        found.by_reason.update(self.by_reason)
        list.extend(found, sorted(self, key=lambda row: row.line_no))
        return found


def told_rejected(by_reason: Mapping[str, int], n_read: int) -> str:
    """How many records of an input were rejected and why, on one line.

    Examples
    --------
    >>> told_rejected({"too few fields": 2, "submit is no time": 1}, 24)
    '3 of 24 records rejected: too few fields (2); submit is no time (1)'
    """
    found = Counter(by_reason).most_common()
    reasons = [f"{reason} ({count:,})" for reason, count in found[:_REASONS_TOLD]]
    if len(found) > _REASONS_TOLD:
        n_other = sum(count for _, count in found[_REASONS_TOLD:])
        reasons.append(f"{len(found) - _REASONS_TOLD:,} other reasons ({n_other:,})")
    n_rejected = sum(by_reason.values())
    return f"{n_rejected:,} of {n_read:,} records rejected: {'; '.join(reasons)}"


@dataclass(frozen=True)
class Source:
    """One input, ready to be read."""

    path: Path
    """A plain file on local disk: decompressed, valid UTF-8 (bad bytes replaced by U+FFFD)."""
    name: str
    """What the user called it; `-` for standard input."""
    modified_at: datetime
    """Modification time of the input in UTC; now for standard input."""
    n_replaced: int = 0
    """Bytes that were not UTF-8 and were replaced."""
    truncated: str | None = None
    """Why the input ended early (a cut archive), None where it did not."""
    sha256: str = ""
    """Hash of the bytes that it came from."""
    n_nuls: int = 0
    """NUL bytes, which stand as one blank a run: a crash leaves them in logs."""
    n_bytes: int = 0
    """Of the text, unpacked; of a cut archive those before the cut."""
    has_long_lines: bool = False
    """Whether it held lines longer than the limit."""
    too_long: Rejections = field(default_factory=Rejections)
    """Those lines, where they were taken out: an empty one stands for each."""

    def notices(self) -> list[str]:
        """What the user should know of the input itself."""
        told = (
            (self.n_replaced, f"{self.n_replaced:,} bytes are not UTF-8: replaced by U+FFFD"),
            (self.n_nuls, f"{self.n_nuls:,} NUL bytes: read as blanks"),
            (self.truncated, f"{self.truncated}: {self.n_bytes:,} bytes before it were read"),
        )
        return [text for applies, text in told if applies]

    def first_line(self) -> tuple[int, str]:
        """Index and text of the first line that is not blank; an empty text where there is none."""
        with self.path.open(encoding="utf-8-sig", errors="replace", newline="\n") as stream:
            lines = ((index, line.rstrip("\r\n")) for index, line in enumerate(stream))
            return next(((index, line) for index, line in lines if line.strip()), (0, ""))


@dataclass(frozen=True)
class Reader:
    """A source: all that help, documents, the upload and the ingest know of it."""

    name: str
    """The SOURCE of `faultline ingest SOURCE FILE`."""
    what: str
    """What it is, in some words."""
    sniff: Callable[[str], bool]
    """Whether a file that begins so looks like one of these alone."""
    read: Callable[[Source, Options, duckdb.DuckDBPyConnection], Batch]
    reads: str
    """Its row in docs/sources.md: what is read of it, and what must be known, in Markdown."""
    fills: tuple[str, ...]
    """Tables of the store that it brings rows of."""
    export: str = ""
    """The command that writes such a file, or where it lies."""
    script: str = ""
    """Lines of shell that write such a file of {start} to {end}; `export` where it has none."""
    example: str = "FILE"
    """The file, and the options that it usually needs, as `faultline ingest` takes them."""
    advice: str = ""
    """Sentences in Markdown for who exports one, beside `reads`."""
    place: float = inf
    """In lists of all sources; it stands last without one."""
    options: tuple[str, ...] = ()
    """Options that say something to it; cluster, zone and `partial` do so to all."""
    presets: Callable[[], Mapping[str, Mapping[str, Any]]] = dict
    """Name -> options of a public data set or tool: columns, or a mapping of them."""
    layout: Layout | None = None
    """How its tables look, where it reads those of strangers by a mapping of their columns."""
    lacks: Mapping[str, Mapping[tuple[str, ...], str]] = field(default_factory=dict)
    """Table -> columns of which one is needed -> what stays unknown where no row has any. Exports
    of jobs are told by their columns (`sacct_fields`), as they may be empty on a quiet day."""
    covers: str | None = None
    """The source of the coverage that it brings, where an answer without a record says that
    nothing happened."""
    any_length: bool = False
    """Whether lines over the limit are read too; else they are rejected, and an empty line stands
    for each."""
    reads_pickle: bool = False
    """Whether it reads pickles, which are no text."""
    lines_alone: bool = False
    """Whether each line is a record whatever stands before it: of a file that grew `faultline
    collect` reads the end."""
    cluster_by_host: bool = False
    """Whether its records name hosts or jobs that the scheduler knows: without a cluster they
    belong to the one that does."""
    read_folder: Callable[..., tuple[Source, Batch]] | None = None
    """Reads a folder as one input: `(folder, options, connection, workdir, *, called)`."""

    @property
    def help(self) -> str:
        """A line of what it is and how to get it."""
        return f"{self.what}: {self.export}" if self.export else self.what

    def lacking(self, batch: Batch) -> list[str]:
        """A sentence for what no row of a table says."""
        import pandas as pd  # here: a reader of traces does without it

        return [
            f"no {' or '.join(columns)} in any of {len(rows):,} rows: {unknown}"
            for table, figures in self.lacks.items()
            if isinstance(rows := batch.tables.get(table), pd.DataFrame) and len(rows)
            for columns, unknown in figures.items()
            if not any(rows[name].notna().any() for name in columns if name in rows)
        ]

    def ignored(self, options: Options) -> list[str]:
        """A sentence for each option that was stated and says nothing to it."""
        from data.ingest.readers import known_by  # which know this module

        return [
            f"--{option.replace('_', '-')} says nothing to {self.name}, only to "
            + ", ".join(sorted(sources))
            for option, sources in known_by().items()
            if getattr(options, option) is not None and self.name not in sources
        ]


@dataclass(frozen=True)
class MappingFile:
    """A column mapping that somebody sent, as TOML."""

    name: str
    """Of the file, for people."""
    content: bytes


@dataclass(frozen=True)
class Options:
    """What the caller states about the input; None where nothing was said."""

    cluster: str | None = None
    """Cluster the records belong to; overrides what the records say."""
    default_cluster: str = "cluster"
    """Cluster of records that name none, where `cluster` is None."""
    default_stated: bool = False
    """Whether somebody knows that they are of `default_cluster`: who collects on a host of it."""
    timezone: str | None = None
    """IANA zone of local times; overrides `timezones`."""
    timezones: dict[str, str] = field(default_factory=dict)
    """Zone of each cluster as site.toml states it."""
    remembered: dict[str, str] = field(default_factory=dict)
    """Zone of each cluster in which its local times were read before; UTC where absent."""
    own_zone: bool = False
    """Whether `timezone` is that of this input alone, whatever the cluster's is."""
    columns: tuple[str, ...] | None = None
    """Column names of a file without a header."""
    delimiter: str | None = None
    """Field delimiter; None for the format's own."""
    node: str | None = None
    """Host whose log this is, for lines that name none."""
    boot_at: datetime | None = None
    """When the host booted (UTC), for times counted from boot."""
    at: datetime | None = None
    """When an inventory was observed (UTC), where it does not say so itself."""
    year: int | None = None
    """Year of times that carry none."""
    mapping: str | MappingFile | None = None
    """Name or path of a column mapping, or one that was sent."""
    pattern: str | None = None
    """Name of a job's log in the words of sbatch, e.g. `slurm-%j.out`."""
    first_lines: int | None = None
    """Lines kept from the beginning of a job's log."""
    last_lines: int | None = None
    """Lines kept from the end of a job's log."""
    job_id: str | None = None
    """Job whose training or trace this is, where the records name none."""
    meta: str | None = None
    """Path of the meta file of a straggler trace."""
    run_id: str | None = None
    """Run of training metrics that name neither run nor job."""
    partial: bool | None = None
    """Whether of a cut or damaged archive what came before is read; None where none can say."""
    limits: Limits = DEFAULTS
    """Of a line, a record and an archive."""
    progress: Callable[[str], None] = lambda message: None
    """Called with a short text while a long input is read."""

    def cluster_of(self, stated: str | None = None) -> str:
        """Cluster of a record, which may state one."""
        return self.cluster or stated or self.default_cluster

    @property
    def zones(self) -> dict[str, str]:
        """Zone of each cluster of which one is known."""
        return {**self.remembered, **self.timezones}

    def zone_of(self, cluster: str, default: str | None = None) -> str | None:
        """Zone of a cluster's local times; None where nobody stated it.

        What is stated comes first, then `default`, then what was remembered.
        """
        stated = self.timezone or self.timezones.get(cluster)
        return stated or default or self.remembered.get(cluster)


def refuse_wide_header(source: Source, n_fields: int, limits: Limits) -> None:
    """Refuses a header of more fields than a record may have."""
    if n_fields > limits.fields:
        raise SourceError(
            f"{source.name}: its first line has {n_fields:,} fields, {limits.fields_reason}"
            ": is the delimiter the right one?"
        )


class NoneKeptError(SourceError):
    """Records of an input were rejected and none was kept: nothing was stored."""

    def __init__(self, message: str, reader: str, rejected: Rejections) -> None:
        super().__init__(message)
        self.reader, self.rejected = reader, rejected


class RecordError(ValueError):
    """A record that cannot be read; the text is the reason."""


@dataclass
class Batch:
    """What a reader made of one input."""

    tables: dict[str, pd.DataFrame | pa.Table | duckdb.DuckDBPyRelation] = field(
        default_factory=dict
    )
    """Table of the store -> rows, holding any of its columns; absent ones become NULL.
    Times are UTC-aware (or DuckDB TIMESTAMPTZ)."""
    files: dict[str, Callable[[Path], None]] = field(default_factory=dict)
    """Path below the store's metrics/ -> what writes that file; named by its content."""
    rows_kept: int = 0
    """Records of the input that were kept."""
    skipped_by_reason: dict[str, int] = field(default_factory=dict)
    rejected: Rejections = field(default_factory=Rejections)
    first_at: datetime | None = None
    last_at: datetime | None = None
    clusters: tuple[str, ...] = ()
    local: frozenset[str] = frozenset()
    """Clusters of which a time names no zone, so that it was read in the cluster's."""
    notices: list[str] = field(default_factory=list)
    """What had to be assumed, for the user: the year of syslog times, an ambiguous hour."""

    @property
    def rows_read(self) -> int:
        """Records of the input: kept, skipped and rejected ones."""
        return self.rows_kept + sum(self.skipped_by_reason.values()) + self.rejected.total
