"""Which reader an input is for; what to say of one that none takes."""

from __future__ import annotations

import csv
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import DataError, SourceError
from data.ingest.formats.unsupported import told_text
from data.ingest.readers import known_readers
from data.ingest.readers.schedulers.sacct_fields import PRESETS
from data.tables.jobs import STATES

if TYPE_CHECKING:
    from data.ingest.reader import Reader, Source

SNIFFED_CHARACTERS = 16_384
ANY_TEXT = "job-log"
"""The reader of a folder that no other one recognises."""
_LINES = 5
"""Lines that are looked at; the last one of a beginning may be cut off."""
_TIMES = 2
"""Times of a line from which on it can be a job's: begun and ended."""


def folder_reader(source: str, name: str) -> Reader | None:
    """The reader of a folder; None where `name` is none, or the source reads files only."""
    try:
        if not Path(name).is_dir():
            return None
    except OSError as error:
        raise SourceError(f"{name}: cannot be read ({error.strerror}): check the path") from None
    known = known_readers()
    if source != "auto":
        asked = known.get(source)
        return asked if asked is not None and asked.read_folder is not None else None
    readers = [reader for reader in known.values() if reader.read_folder is not None]
    head = _first_head(Path(name))
    return next((reader for reader in readers if reader.sniff(head)), known[ANY_TEXT])


def _first_head(folder: Path) -> str:
    """How the first file of a folder begins; empty where none can be read."""
    try:
        first = min(path for path in folder.iterdir() if path.is_file())
        with first.open(encoding="utf-8-sig", errors="replace") as stream:
            return stream.read(SNIFFED_CHARACTERS)
    except (OSError, ValueError):
        return ""


def reader_of(source: str, found: Source) -> Reader:
    """The reader by name, or the only one that recognises the input."""
    known = known_readers()
    if source in known:
        return known[source]
    if source != "auto":
        near = get_close_matches(source, [*known, "auto"], n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise DataError(
            f"source {source!r} is unknown: choose one of {', '.join(known)}, or auto{meant}"
        )
    with found.path.open(encoding="utf-8-sig", errors="replace") as stream:
        head = stream.read(SNIFFED_CHARACTERS)
    matches = [name for name, reader in known.items() if reader.sniff(head)]
    if len(matches) != 1:
        told = None if matches else told_text(head) or _told_headerless(head)
        if told is not None:
            raise SourceError(f"{found.name}: {told}")
        said = f"looks like {' and '.join(matches)}" if matches else "is of no format known"
        raise SourceError(f"{found.name}: {said}: name one of {', '.join(known)}")
    return known[matches[0]]


def _told_headerless(head: str) -> str | None:
    """What a text without a header is, with the preset or the columns to name; None if not known.

    Of accounting each line holds a state of Slurm and two times; of a preset it has as many fields,
    and these in their places.

    Examples
    --------
    >>> _told_headerless("7|7|ann|COMPLETED|2026-01-05T09:00:00|2026-01-05T12:00:00\\n")
    'is accounting of sacct without a header: name sacct with --columns and the fields that --format
    named, or export it again without -n'
    >>> _told_headerless("7|ann|fine") is None
    True
    """
    from data.ingest.readers.tables import job_table  # here: takes long to import

    lines = [line for line in head.splitlines()[:_LINES] if line.strip()]
    if len(lines) > 1 and not head.endswith("\n"):
        lines = lines[:-1]
    if not lines:
        return None
    fields = [line.split("|") for line in lines]
    if all(any(map(_is_state, each)) and sum(map(_is_time, each)) >= _TIMES for each in fields):
        fitting = [name for name, columns in PRESETS.items()
                   if all(_fits(each, columns) for each in fields)]  # fmt: skip
        if fitting:
            return (
                f"is accounting of sacct without a header, with the columns of {fitting[0]}: name "
                f"sacct with --preset {fitting[0]}"
            )
        return (
            "is accounting of sacct without a header: name sacct with --columns and the fields "
            "that --format named, or export it again without -n"
        )
    rows = list(csv.reader(lines))
    for name in job_table.LAYOUT.presets:
        if all(job_table.fits_headerless(name, row) for row in rows):
            return (
                f"is a table of jobs without a header, with the columns of {name}: name job-table "
                f"with --preset {name}"
            )
    return None


def _fits(fields: list[str], columns: tuple[str, ...]) -> bool:
    """Whether the fields are those of the columns: as many, state and time in their places."""
    return (
        len(fields) == len(columns)
        and _is_state(fields[columns.index("state")])
        and _is_time(fields[columns.index("submit")])
    )


def _is_state(text: str) -> bool:
    return text.partition(" ")[0].rstrip("+") in STATES


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return "T" in text
