"""Records of accounting that `faultline reduce jobs` left, one an attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.formats.reduction import (
    files_of,
    is_reduction,
    manifest_of,
    source_of,
    told_of,
)
from data.ingest.reader import Batch, Options, Reader, Source
from data.ingest.readers.schedulers.sacct_fields import missing
from data.ingest.readers.schedulers.sacct_sql import Fields, typed
from data.publish.schema import literal
from data.reduce.job_columns import WRITTEN
from data.zones import same_clocks

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from data.reduce.manifest import Manifest

KIND = "jobs"
FEW = 10_000
"""Records below which they are held in memory rather than read again."""


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """What the files hold that a manifest names; they lie beside it."""
    return _read(source.path.parent, source.name, options, connection)


def read_folder(
    folder: Path,
    options: Options,
    connection: duckdb.DuckDBPyConnection,
    workdir: Path,
    *,
    called: str | None = None,
) -> tuple[Source, Batch]:
    """The same of the folder of a reduction."""
    del workdir
    name = called or str(folder)
    batch = _read(folder, name, options, connection)
    return source_of(folder, name), batch


def _read(
    folder: Path, name: str, options: Options, connection: duckdb.DuckDBPyConnection
) -> Batch:
    """Attempts of jobs, by the rules of the reader of sacct."""
    import duckdb

    manifest = manifest_of(folder, name, KIND)
    fields = Fields(WRITTEN, options, _rows(files_of(folder, manifest, KIND)))
    try:
        batch, n_seen = typed(fields, connection, few=manifest.rows_out(KIND) < FEW)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"{name}: is damaged ({reason}): reduce into another folder") from None
    if n_seen != batch.rows_kept:
        raise SourceError(
            f"{name}: {n_seen - batch.rows_kept:,} of its rows are no records of accounting: "
            "reduce into another folder"
        )
    _refuse_other_zone(name, manifest, batch, options)
    columns = {column for one in manifest.inputs.values() for column in one.columns}
    batch.notices += [told_of(manifest, "records"), *(missing(columns) if columns else [])]
    return batch


def _rows(files: list[Path]) -> str:
    """A query of the records of some files."""
    if not files:
        nothing = ", ".join(f"'' AS \"{name}\"" for name in WRITTEN)
        return f"SELECT {nothing} WHERE false"
    listed = ", ".join(literal(str(path)) for path in files)
    return f"SELECT * FROM read_parquet([{listed}], hive_partitioning = false)"


def _refuse_other_zone(name: str, manifest: Manifest, batch: Batch, options: Options) -> None:
    """Refuses to read local times in another zone than that in which records were compared.

    Raises
    ------
    SourceError
        Naming both zones, and how they become one.
    """
    for cluster in sorted(batch.local):
        zone = options.zone_of(cluster) or "UTC"
        if not same_clocks(zone, manifest.zone, batch.first_at, batch.last_at):
            raise SourceError(
                f"{name}: its local times were read in {manifest.zone}, and those of {cluster} "
                f"would be read in {zone} now: pass --timezone {manifest.zone}, or reduce into "
                f"another folder with --timezone {zone}"
            )


READER = Reader(
    "reduced-jobs",
    "accounting by faultline reduce",
    export="the folder that `faultline reduce jobs` wrote",
    reads=(
        "the folder of `faultline reduce jobs` (or its `manifest.json`): Slurm accounting with one "
        "record an attempt, read as `sacct` is; local times are in the zone in which they were "
        "reduced"
    ),
    script="faultline reduce jobs accounting/ --out reduced",
    example="reduced",
    fills=("jobs",),
    place=1.05,
    covers="jobs",
    sniff=lambda head: is_reduction(head, KIND),
    read=read,
    read_folder=read_folder,
)
