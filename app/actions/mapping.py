"""Making a column mapping for a table: what it can name, and what would be read by it."""

from __future__ import annotations

from data.ingest.formats.time_formats import EPOCH
from data.ingest.readers.tables.mapping_sample import (
    Chosen,
    Preview,
    Sample,
    fields,
    guessed,
    mapped_sources,
    takes_states,
    written,
)
from data.tables.jobs import FINAL_STATES

__all__ = [
    "EPOCH",
    "FINAL_STATES",
    "Chosen",
    "Preview",
    "Sample",
    "fields",
    "guessed",
    "mapped_sources",
    "takes_states",
    "written",
]
