"""Cells of a table that a site wrote, and the TOML that says which column means what."""

from __future__ import annotations

import tomllib
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError
from data.ingest.formats import time_formats
from data.ingest.node_observation import known, whole
from data.ingest.reader import RecordError
from data.ingest.readers.tables.failure_mapping import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from data.ingest.reader import MappingFile, Options, Source
    from data.ingest.rows import LocalClock


_MAY_LACK = ("[columns]", "[facts]")
"""Sections in which `false` says that the file does not hold it."""


class ColumnMapping(NamedTuple):
    """What a TOML file says of a table."""

    columns: Mapping[str, str]
    """Our name of a column -> the file's, for those that differ."""
    general: Mapping[str, str]
    """What holds for all records: cluster, timezone, delimiter."""
    further: Mapping[str, str]
    """A section of its own: of node-facts its facts, of job-table its states."""
    absent: frozenset[str] = frozenset()
    """Our names of what the file does not hold, even where a column of it is called so."""
    time_format: tuple[str, ...] = ()
    """How times are written, tried in order; ISO or seconds since 1970 where nothing is said."""

    def of_file(
        self,
        source: Source,
        header: Collection[str],
        names: Sequence[str],
        *,
        needed: Sequence[str],
        beside: Iterable[str] = (),
    ) -> dict[str, str]:
        """Our name -> the file's column, for those that it has; `beside` are further ones of it.

        Raises
        ------
        SourceError
            Where the file lacks a needed column, or one that the mapping names.
        """
        if gone := [name for name in needed if name in self.absent]:
            raise SourceError(
                f"{source.name}: the mapping says that it has no {gone[0]}, which is needed: "
                "name its column"
            )
        columns = {name: self.columns.get(name, name) for name in names if name not in self.absent}
        stated = [columns[name] for name in (*needed, *self.columns)]
        missing = [name for name in (*stated, *beside) if name not in header]
        if missing:
            raise SourceError(
                f"{source.name}: no column {missing[0]!r}, there are: {', '.join(header)[:200]}: "
                f"name them {', '.join(needed)}, ... or pass --mapping with a TOML file that says "
                "which is which"
            )
        return {name: column for name, column in columns.items() if column in header}

    def time(self, value: object, cluster: str, clock: LocalClock) -> datetime | None:
        """A time, as `time_of` reads it, or in the format that the mapping states.

        Raises
        ------
        RecordError
            Where it is none.
        """
        text = text_of(value)
        if not self.time_format or text is None or isinstance(value, date):
            return time_of(value, cluster, clock)
        try:
            return clock.utc(time_formats.read(text.strip(), self.time_format), cluster)
        except OverflowError:
            raise RecordError("impossible time") from None


def column_mapping(
    wanted: str | MappingFile | None,
    columns: Collection[str],
    general: Collection[str],
    further: str | None = None,
) -> ColumnMapping:
    """The mapping in a TOML file, an empty one for None; `further` is a section of its own.

    Raises
    ------
    SourceError
        Where it cannot be read, or holds a key or value that is none.
    """
    if wanted is None:
        return ColumnMapping({}, {}, {})
    name = wanted if isinstance(wanted, str) else wanted.name
    try:
        document = tomllib.loads(_content(wanted).decode("utf-8-sig"))
    except RecursionError:
        raise SourceError(f"{name}: is nested too deeply: a mapping names columns") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"{name}: is no TOML file that can be read ({error})") from None
    formats = _formats(name, document.pop("time_format", []))
    named = document.pop("columns", {})
    beyond = document.pop(further, {}) if further else {}
    sections = [("[columns]", named, columns), ("the top", document, general)]
    for place, values, names in (*sections, (f"[{further}]", beyond, None)):
        if not isinstance(values, dict):
            section = place.strip("[]")
            raise SourceError(f"{name}: {section} must be a section: write [{section}]")
        for key, value in values.items():
            if names is not None and key not in names:
                known_are = ", ".join(names)
                raise SourceError(f"{name}: unknown key {key!r} at {place}, known: {known_are}")
            if value is False and place in _MAY_LACK:
                continue
            if not isinstance(value, str) or not (value.strip() or (value and key == "delimiter")):
                raise SourceError(f"{name}: {key} at {place} must be text, found {value!r}")
    return ColumnMapping(
        _held(named),
        document,
        _held(beyond),
        absent=frozenset(key for key, value in (named | beyond).items() if value is False),
        time_format=formats,
    )


def _formats(name: str, written: object) -> tuple[str, ...]:
    """How times are written, one text or a list of them."""
    formats = [written] if isinstance(written, str) else written
    if not isinstance(formats, list) or not all(isinstance(one, str) and one for one in formats):
        raise SourceError(f"{name}: time_format at the top must be text, found {written!r}")
    return time_formats.checked(name, formats)


def _held(section: Mapping[str, str]) -> dict[str, str]:
    """What a section names."""
    return {key: value for key, value in section.items() if value}


def _content(wanted: str | MappingFile) -> bytes:
    """The beginning of a mapping, as much as one may hold."""
    if not isinstance(wanted, str):
        return wanted.content[:MAX_BYTES]
    with Path(wanted).open("rb") as stream:
        return stream.read(MAX_BYTES)


def text_of(value: object) -> str | None:
    """A text; None where the cell is empty, or says that nothing is known."""
    return None if value is None or value != value else known(str(value))


def count_of(value: object, name: str) -> int | None:
    """A count; an empty cell is unknown, anything else that is no count a fault."""
    if text_of(value) is None:
        return None
    number = float(value) if isinstance(value, float) else None
    count = whole(int(number) if number is not None and number.is_integer() else value)
    if count is None:
        raise RecordError(f"{name} is no whole number")
    return count


def time_of(value: object, cluster: str, clock: LocalClock) -> datetime | None:
    """A time: one of Parquet, ISO text, or seconds since 1970; None where the cell is empty."""
    if text_of(value) is None:
        return None
    if (seconds := whole(value)) is not None:
        return datetime.fromtimestamp(seconds, UTC)
    try:
        if isinstance(value, datetime):
            local = value
        else:
            text = value.isoformat() if isinstance(value, date) else str(value).strip()
            local = datetime.fromisoformat(text)
        return clock.utc(local, cluster)
    except (ValueError, OverflowError):
        raise RecordError("impossible time") from None


def cluster_of(value: object, options: Options, of_file: str | None) -> str:
    """The cluster of a record: as stated, else its own, else the file's, else the default."""
    return options.cluster or text_of(value) or of_file or options.default_cluster


def is_blank(values: Mapping[str, object]) -> bool:
    """Whether no cell of a record holds anything."""
    return all(value is None or str(value).strip() == "" for value in values.values())
