"""Reading source files into the store: one reader a format, one road for all of them."""

from __future__ import annotations

import json
import shlex
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from data.access import access_of, make_file, make_folder
from data.errors import SourceError
from data.ingest import masking, unnamed, zone_memory
from data.ingest.formats.source import opened, without_long_lines
from data.ingest.reader import NoneKeptError, Options, Rejected, told_rejected
from data.ingest.readers import known_readers
from data.ingest.readers.schedulers.sacct_fields import PRESETS
from data.ingest.recognition import folder_reader, reader_of
from data.ingest.unnamed import Unnamed
from data.metrics_files import METRICS
from data.tables import forgettable
from data.tables.table import UNNAMED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from data.ingest.reader import Batch, MappingFile, Reader, Source
    from data.ingest.zone_memory import Memory
    from data.publish import StoreWriter

__all__ = ["IngestResult", "Options", "ingest", "store_files"]

_OF_THE_STORE = (
    "default_cluster",
    "default_stated",
    "timezones",
    "remembered",
    "limits",
    "own_zone",
    "progress",
)
"""Options that a command does not take."""


@dataclass(frozen=True)
class IngestResult:
    """What became of one file: rows_read = rows_kept + skipped + rejected."""

    ingest_id: str
    source: str
    path: str
    sha256: str
    rows_read: int
    rows_kept: int
    skipped_by_reason: dict[str, int]
    rejected_by_reason: dict[str, int]
    tables: dict[str, int]
    """Table -> rows added or changed."""
    clusters: tuple[str, ...]
    first_at: datetime | None
    last_at: datetime | None
    notices: tuple[str, ...]
    zones: dict[str, str | None] = field(default_factory=dict)
    """Cluster -> zone in which its local times were read; None where nobody stated one."""
    command: str | None = None
    """Command that reads it again; None of an upload."""

    @property
    def rows_skipped(self) -> int:
        """Records that are not of interest, e.g. job steps."""
        return sum(self.skipped_by_reason.values())

    @property
    def rows_rejected(self) -> int:
        """Records that could not be read."""
        return sum(self.rejected_by_reason.values())

    @property
    def told_rejected(self) -> str | None:
        """How many records could not be read and why; None where all could."""
        if not self.rejected_by_reason:
            return None
        return told_rejected(self.rejected_by_reason, self.rows_read)


def ingest(
    writer: StoreWriter, source: str, name: str, options: Options, *, called: str | None = None
) -> IngestResult:
    """Reads one input into the snapshot under construction.

    Parameters
    ----------
    source : str
        Name of a reader, or `auto` to recognise the format by its beginning.
    name : str
        Path of the file, or of a folder of job logs; `-` for standard input.
    called : str, optional
        Name of the file for people, where `name` is none of theirs.

    Raises
    ------
    SourceError
        Where nothing can be read from it; the snapshot is as it was.
    """
    shown = called or name
    with _read(writer, source, name, options, called=called) as read:
        reader, found, batch, options, memory, owners = read
        _refuse_none_kept(shown, reader, batch)
        owners.name(batch)
        zone_memory.refuse_contradiction(shown, batch, options, memory)
        batch.notices += zone_memory.notices(batch, options, memory)
        batch.notices += known_readers()[reader].ignored(options)
        batch.notices += known_readers()[reader].lacking(batch)
        masking.mask(batch, writer.connection)
        options.progress(f"{shown}: storing {batch.rows_kept:,} records")
        with owners.placed(writer.connection, batch):
            still = writer.owners if owners.tells_nothing else None
            tables = _merged(writer, shown, batch)
            writer.owners = still
        batch.notices += _back_again(writer, tables)
        store_files(writer, batch)
    result = replace(
        _result(writer, reader, found, batch, tables),
        zones=zone_memory.zones_read(batch, options),
        command=_command(reader, name, options) if called is None else None,
    )
    own_zone = zone_memory.is_own(batch, options, memory)
    _store(writer, result, batch, own_zone=own_zone)
    known = {cluster: earlier.zone for cluster, earlier in memory.of_cluster.items()}
    if not own_zone and any(known.get(c) != zone for c, zone in result.zones.items()):
        writer.changed.add("ingests")
    return result


def _refuse_none_kept(shown: str, reader: str, batch: Batch) -> None:
    """Refuses an input that holds records to keep of which none can be read."""
    if batch.rows_kept or not batch.rejected:
        return
    told = told_rejected(batch.rejected.by_reason, batch.rows_read)
    first = min(row.line_no for row in batch.rejected)
    raise NoneKeptError(
        f"{shown}: {told}: none is kept and nothing was stored; the first is of line {first:,}",
        reader,
        masking.masked_rejections(batch.rejected),
    )


def _merged(writer: StoreWriter, shown: str, batch: Batch) -> dict[str, int]:
    """Rows added or changed by table; refuses jobs that are there already, in another zone."""
    if not batch.local or "jobs" not in batch.tables:
        return writer.merge(batch.tables)
    (top,) = writer.connection.execute("SELECT coalesce(max(rowid), -1) FROM jobs").fetchall()[0]
    if top < 0:
        return writer.merge(batch.tables)

    def refuse(counts: Mapping[str, int]) -> None:
        n_known = batch.rows_kept - counts["jobs"]
        zone_memory.refuse_doubled(shown, writer.connection, top, n_known=n_known)

    return writer.merge(batch.tables, refuse)


def _back_again(writer: StoreWriter, tables: Iterable[str]) -> Iterator[str]:
    """Tables that hold again what retention had removed."""
    forgotten = dict(
        writer.connection.execute(
            "SELECT table_name, max(before_at) FROM forgotten GROUP BY ALL"
        ).fetchall()
    )
    for table in sorted(forgotten.keys() & tables):
        ((n_rows,),) = writer.connection.execute(
            f"SELECT count(*) FROM {table} WHERE ({forgettable()[table]}) < $before_at",
            {"before_at": forgotten[table]},
        ).fetchall()
        if n_rows:
            yield (
                f"{n_rows:,} rows of {table} before {forgotten[table]:%Y-%m-%d}, which had been "
                "forgotten, are in the store again: the next `faultline forget` removes them"
            )


class _Read(NamedTuple):
    """What one input holds."""

    reader: str
    found: Source
    batch: Batch
    options: Options
    """As it was read."""
    memory: Memory
    """In which zones its source was read before."""
    unnamed: Unnamed


@contextmanager
def _read(
    writer: StoreWriter, source: str, name: str, options: Options, *, called: str | None
) -> Iterator[_Read]:
    """What one input holds, as long as it lies open."""
    shown = called or name
    reader = folder_reader(source, name)
    if reader is not None and (read_folder := reader.read_folder) is not None:
        writer.expect(inf)

        def read_all(options: Options) -> tuple[Source, Batch]:
            return read_folder(
                Path(name), options, writer.connection, writer.workdir, called=called
            )

        yield _understood(writer, reader, options, shown, read_all)
        return
    named = known_readers().get(source)
    with opened(
        name,
        writer.workdir,
        options.progress,
        called=called,
        partial=options.partial,
        limits=options.limits,
        pickled=source == "auto" or (named is not None and named.reads_pickle),
    ) as found:
        any_length = named is not None and named.any_length
        lines = without_long_lines(found, options.limits, writer.workdir)
        with nullcontext(found) if any_length else lines as found:
            writer.expect(found.path.stat().st_size)
            reader = reader_of(source, found)

            def read(options: Options) -> tuple[Source, Batch]:
                return found, reader.read(found, options, writer.connection)

            try:
                one = _understood(writer, reader, options, shown, read)
            except SourceError as error:
                raise _with_long_lines(error, found) from None
            if found.too_long:
                one.batch.rejected.extend(found.too_long)
                one.batch.rejected = one.batch.rejected.ordered()
            yield one


def _understood(
    writer: StoreWriter,
    reader: Reader,
    options: Options,
    shown: str,
    read: Callable[[Options], tuple[Source, Batch]],
) -> _Read:
    """What a reader makes of an input, and whose its records are that name no cluster.

    Local times are of the zone of the clusters that know its hosts; where that shows only once it
    was read, it is read again.
    """
    memory = zone_memory.remembered(writer.connection, reader.name)
    options = replace(options, remembered=memory.zones)
    by_host = reader.cluster_by_host and not (options.cluster or options.default_stated)
    if by_host:
        options = replace(options, default_cluster=UNNAMED)
    found, batch = read(options)
    owners = unnamed.owners_of(writer, batch, shown) if by_host else Unnamed()
    zone = owners.zone(options, shown) if UNNAMED in batch.local else None
    if zone not in (None, options.zone_of(UNNAMED)):
        options = replace(options, remembered={**memory.zones, UNNAMED: zone})
        found, batch = read(options)
    return _Read(reader.name, found, batch, options, memory, owners)


def _with_long_lines(error: SourceError, found: Source) -> SourceError:
    """A refusal that also tells of lines that no reader saw."""
    if not found.too_long:
        return error
    ((reason, n_lines),) = found.too_long.by_reason.items()
    first = found.too_long[0].line_no
    return SourceError(
        f"{error}; left out before that: {reason} ({n_lines:,}, from line {first:,})"
    )


def _result(
    writer: StoreWriter, source: str, found: Source, batch: Batch, tables: dict[str, int]
) -> IngestResult:
    """The result of an ingest, numbered within the store."""
    (n_before,) = writer.connection.execute("SELECT count(*) FROM ingests").fetchall()[0]
    return IngestResult(
        ingest_id=f"{writer.snapshot}.{n_before + 1}",
        source=source,
        path=found.name,
        sha256=found.sha256,
        rows_read=batch.rows_read,
        rows_kept=batch.rows_kept,
        skipped_by_reason=dict(batch.skipped_by_reason),
        rejected_by_reason=dict(batch.rejected.by_reason.most_common()),
        tables=tables,
        clusters=tuple(batch.clusters),
        first_at=batch.first_at,
        last_at=batch.last_at,
        notices=(
            *batch.notices,
            *found.notices(),
            *([] if batch.rows_read else ["holds no record"]),
        ),
    )


def store_files(writer: StoreWriter, batch: Batch) -> None:
    """Writes the files of a batch below the store's metrics/, each complete or not at all.

    A file is named by its content: one that is there already stays. Files that no row names go at
    the next publish.
    """
    for name, write in batch.files.items():
        path = writer.root / METRICS / name
        if not path.exists():
            access = access_of(writer.root)
            make_folder(path.parent, access)
            aside = path.with_suffix(".new")
            try:
                make_file(aside, access)
                write(aside)
                aside.replace(path)
            except BaseException:
                aside.unlink(missing_ok=True)
                raise
            writer.new_files.append(path)


def _store(writer: StoreWriter, result: IngestResult, batch: Batch, *, own_zone: bool) -> None:
    """Writes the ingest and its rejected records."""
    with writer.transaction():
        writer.connection.execute(
            "INSERT INTO ingests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                result.ingest_id,
                result.source,
                ",".join(result.clusters) or None,
                result.path,
                result.sha256,
                result.rows_read,
                result.rows_kept,
                result.rows_skipped,
                result.rows_rejected,
                json.dumps(result.skipped_by_reason),
                result.first_at,
                result.last_at,
                datetime.now(UTC),
                json.dumps(result.notices),
                json.dumps(result.zones) if result.zones else None,
                own_zone,
                json.dumps(result.tables),
                result.command,
            ],
        )
        if batch.rejected:
            import pyarrow as pa

            columns = Rejected.__dataclass_fields__
            rows = {name: [getattr(row, name) for row in batch.rejected] for name in columns}
            writer.connection.register("rejected", pa.table(rows))
            writer.connection.execute(
                "INSERT INTO rejected_rows SELECT ?, ?, line_no, reason, raw FROM rejected",
                [result.ingest_id, result.path],
            )
            writer.connection.unregister("rejected")


def _command(source: str, name: str, options: Options) -> str:
    """The command line that reads an input as it was read; a relative path becomes a whole one.

    >>> _command("sacct", "/logs/week 1.txt", Options(cluster="a", partial=True))
    "faultline ingest sacct --cluster a --partial '/logs/week 1.txt'"
    """
    words = ["faultline", "ingest", source]
    for option in fields(Options):
        value = getattr(options, option.name)
        if value is None or value is False or option.name in _OF_THE_STORE:
            continue
        preset = next((name for name, columns in PRESETS.items() if columns == value), None)
        if preset is not None:
            words += ["--preset", preset]
            continue
        own = option.name == "timezone" and options.own_zone
        words.append(f"--{'file-' * own}{option.name.replace('_', '-')}")
        if value is not True:
            words.append(_written(value))
    words.append(name if name == "-" else str(Path(name).absolute()))
    return shlex.join(words)


def _written(value: str | float | tuple[str, ...] | datetime | MappingFile) -> str:
    """A value as the command takes it."""
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, datetime):
        return value.isoformat()
    text = str(getattr(value, "name", value))
    return str(Path(text).absolute()) if Path(text).is_file() else text
