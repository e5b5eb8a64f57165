"""Making a column mapping for a CSV file: what it can name, and what would be read by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.ingest.mapping_sample import (
    SAMPLE_BYTES,
    MappedField,
    Preview,
    Sample,
    fields,
    guessed,
    mapped_sources,
    preview,
    sample,
    written,
)

if TYPE_CHECKING:
    from typing import BinaryIO

    from data.ingest import Options

__all__ = [
    "MappedField",
    "Preview",
    "Sample",
    "begun",
    "fields",
    "guessed",
    "mapped_sources",
    "preview",
    "written",
]


def begun(name: str, file: BinaryIO, options: Options) -> Sample:
    """The first records of a file, which stands at its beginning again."""
    file.seek(0)
    content = file.read(SAMPLE_BYTES)
    file.seek(0)
    return sample(name, content, options)
