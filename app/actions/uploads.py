"""An upload into the store, read in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.actions.parcel import Parcel
from app.actions.reading import Reading
from data.audit import login
from data.ingest import IngestResult
from data.sandbox import wire

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from data.ingest import Options

_STATED = (
    *("cluster", "timezone", "own_zone", "columns", "delimiter", "node", "at", "mapping"),
    *("job_id", "run_id", "partial", "boot_at", "year", "pattern", "first_lines", "last_lines"),
)
"""What a page lets a person say about a file."""


@dataclass(frozen=True)
class Upload:
    """What somebody sent: records, and what explains them where records do not."""

    name: str
    """Of the file of records, for people."""
    records: BinaryIO
    meta: BinaryIO | None = None
    """Meta file of a straggler trace."""
    mapping: BinaryIO | None = None
    """Column mapping, as TOML."""
    mapping_name: str | None = None


class RunningUpload(Reading[list[IngestResult]]):
    """An upload on its way into the store.

    `options` says what the person stated; progress, limits and zones are the store's own.

    Raises
    ------
    DataError
        Where site.toml holds a mistake, or the file cannot be kept.
    """

    def __init__(
        self,
        root: Path,
        source: str,
        upload: Upload,
        options: Options,
        *,
        author: str | None = None,
    ) -> None:
        meta = None if upload.meta is None else ("meta.yaml", upload.meta)
        mapping = (
            None
            if upload.mapping is None
            else (upload.mapping_name or "mapping.toml", upload.mapping)
        )
        said = {"source": source, "options": stated(options), "author": author or login()}
        super().__init__(
            root,
            "ingest",
            [(upload.name, upload.records), meta, mapping],
            said,
            parcel=Parcel(IngestResult),
            command="faultline ingest",
        )


def stated(options: Options) -> dict[str, Any]:
    """What a person said of a file, as `wire` holds it."""
    return {name: wire.encode(getattr(options, name)) for name in _STATED}
