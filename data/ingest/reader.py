"""What every reader takes and gives: a Source and Options in, a Batch out.

A reader is a module of data.ingest, found by itself, with

    NAME = "kernel-log"                  the SOURCE of `faultline ingest SOURCE FILE`
    HELP = "one line"                    shown by `faultline ingest --list`
    PLACE = 3                            in that list; it stands last without one
    def sniff(head: str) -> bool         does a file that begins so look like mine alone?
    def read(source, options, connection) -> Batch

and, where a folder may be read as one input,

    def read_folder(folder, options, connection, workdir) -> tuple[Source, Batch]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    import duckdb
    import pandas as pd
    import pyarrow as pa

    from data.ingest.failure_mapping import Mapping

RAW_LIMIT = 2000
"""Characters of a rejected record that are kept."""


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

    def text(self) -> str:
        """The whole input; for small formats."""
        return self.path.read_text(encoding="utf-8")

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
class Options:
    """What the caller states about the input; None where nothing was said."""

    cluster: str | None = None
    """Cluster the records belong to; overrides what the records say."""
    default_cluster: str = "cluster"
    """Cluster of records that name none, where `cluster` is None."""
    timezone: str | None = None
    """IANA zone of local times; overrides `timezones`."""
    timezones: dict[str, str] = field(default_factory=dict)
    """Zone of each cluster as site.toml states it; UTC where absent."""
    columns: tuple[str, ...] | None = None
    """Column names of a file without a header."""
    delimiter: str | None = None
    """Field delimiter; None for the format's own."""
    node: str | None = None
    """Host whose log this is, for lines that name none."""
    boot_at: datetime | None = None
    """When the host booted (UTC), for times counted from boot."""
    year: int | None = None
    """Year of times that carry none."""
    mapping: str | Mapping | None = None
    """Name or path of a column mapping, or one that was read."""
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
    progress: Callable[[str], None] = lambda message: None
    """Called with a short text while a long input is read."""


@dataclass(frozen=True)
class Rejected:
    """A record that could not be read."""

    line_no: int
    """Line in the file, from 1, where the record begins."""
    reason: str
    """Why, in words that count well: one reason a kind of fault, no values inside."""
    raw: str
    """The record as it stands, cut to RAW_LIMIT."""


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
    rejected: list[Rejected] = field(default_factory=list)
    first_at: datetime | None = None
    last_at: datetime | None = None
    clusters: tuple[str, ...] = ()
    notices: list[str] = field(default_factory=list)
    """What had to be assumed, for the user: the year of syslog times, an ambiguous hour."""

    @property
    def rows_read(self) -> int:
        """Records of the input: kept, skipped and rejected ones."""
        return self.rows_kept + sum(self.skipped_by_reason.values()) + len(self.rejected)
