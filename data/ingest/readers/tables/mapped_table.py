"""Tables that strangers wrote: a reader states its columns, and gets the value of each.

A mapping says which column of a file is which of ours, as TOML. A site's own, for a failure log
with the columns host, down, up and why::

    timezone = "Europe/Berlin"           # of times without an offset; default UTC
    time_format = ["%d.%m.%Y %H:%M"]     # strptime, tried in order; also "iso", "epoch"
    cluster = "hal"                      # of records that name none

    [columns]
    node = "host"
    start = "down"
    end = "up"
    cause = "why"
    text = false                         # not in the file, though a column of it is called so
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pandas as pd

from data.errors import SourceError
from data.hostlist import expand
from data.ingest.formats import time_formats
from data.ingest.formats.header import header_of
from data.ingest.formats.json_records import Found
from data.ingest.formats.tabular import opened_table
from data.ingest.node_observation import known, whole
from data.ingest.reader import MappingFile, RecordError
from data.ingest.rows import Gathered, LocalClock
from data.toml import Toml, filled, must_be, sign

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from data.ingest.reader import Options, Source
    from data.toml import Check


_PROGRESS_RECORDS = 100_000
_CLUSTER = "cluster"


def _naming(*, several: bool = False, optional: bool = False) -> Check:
    """Names of columns; false where the file has none."""

    def holds(value: object) -> bool:
        names = value if several and isinstance(value, list) else [value]
        return bool(names) and all(isinstance(name, str) and name for name in names)

    return must_be(
        "text or a list of texts" if several else "text",
        lambda value: (optional and value is False) or holds(value),
        "name a column",
    )


COLUMN, COLUMNS = _naming(), _naming(several=True)
"""What a mapping may say where it names a column, or several."""
_TOP: dict[str, Check] = {
    "cluster": filled,
    "timezone": filled,
    "delimiter": sign,
    "time_format": COLUMNS,
}
"""What every mapping may say of a whole file."""
HOST_NAMES = ("host", "hostname", "nodename", "server", "machine", "nodes")
"""Names by which columns of nodes often go."""


class Column(NamedTuple):
    """A column of ours, and what is known of it in the files of others."""

    name: str
    kind: Literal["text", "words", "time", "count", "nodes"] = "text"
    """Texts are None where they say that nothing is known; words are any, with single blanks; nodes
    the names of a host list."""
    needed: bool = False
    """Whether a file without it is refused, and a record whose cell is empty rejected."""
    also: tuple[str, ...] = ()
    """Other names by which it often goes, without case and punctuation."""
    meaning: str = ""
    """What it holds, where no column of the table says it."""
    of_table: str = ""
    """Name of the table's column, where it differs."""
    several: bool = False
    """Whether a mapping may name several columns of a file."""


@dataclass(frozen=True)
class ColumnMapping:
    """What a TOML file says of a table."""

    name: str = ""
    """Of the file, without its ending."""
    top: Mapping[str, Any] = field(default_factory=dict)
    """What holds for the whole file."""
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Our name of a column -> the file's."""
    absent: frozenset[str] = frozenset()
    """Our names of what the file does not hold, even where a column of it is called so."""
    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Further sections: facts, states, nodes."""

    @property
    def time_format(self) -> tuple[str, ...]:
        """How times are written, tried in order; empty where nothing is said."""
        return tuple_of(self.top.get("time_format", ()))


@dataclass(frozen=True, eq=False)
class Layout:
    """How tables of one kind look: their columns, and what else a mapping may say of them."""

    table: str
    """Table of the store that is filled."""
    columns: tuple[Column, ...]
    known_by: frozenset[str] = frozenset()
    """Columns by which a file with our own names is known."""
    facts: tuple[str, ...] = ()
    """Further columns by our names; a mapping may name any others in [facts]. A file has one of
    them or `pair`."""
    pair: tuple[str, ...] = ()
    presets: tuple[str, ...] = ()
    """Mappings that come with the program."""
    top: Mapping[str, Check] = field(default_factory=dict)
    """What a mapping may say of a whole file beside its cluster, zone, delimiter and times."""
    sections: Mapping[str, Mapping[str, Check] | None] = field(default_factory=dict)
    """Further sections of a mapping; None: any keys with texts."""
    naming: tuple[str, ...] = ()
    """Those of the top and of the sections that name columns of the file."""
    by_name: bool = True
    """Whether columns that no mapping names are found by our names."""
    time_format: tuple[str, ...] = ()
    """How times are written where no mapping says it; empty: ISO or seconds since 1970."""

    @cached_property
    def shipped(self) -> dict[str, ColumnMapping]:
        """Name of a preset -> its mapping."""
        folder = resources.files("data.ingest").joinpath("mappings")
        files = {name: folder.joinpath(f"{name}.toml") for name in self.presets}
        return {name: self.parsed(name, file.read_bytes()) for name, file in files.items()}

    def preset_options(self) -> dict[str, dict[str, str]]:
        """Name of a preset -> the options that it stands for."""
        return {name: {"mapping": name} for name in self.presets}

    def sniff(self, head: str) -> bool:
        """Whether the first line holds the columns of a preset, or enough of our own names."""
        header = header_of(head)
        is_ours = bool(self.known_by) and self.known_by <= header
        return is_ours or self.preset_of(header)[1]

    def preset_of(self, header: Collection[str]) -> tuple[ColumnMapping, bool]:
        """The preset that is nearest to a header, and whether all of its columns are there."""

        def fit(preset: ColumnMapping) -> tuple[bool, int]:
            there = [name in header for name in self.named(preset)]
            return bool(there) and all(there), sum(there)

        nearest = max(self.shipped.values(), key=fit, default=ColumnMapping())
        return nearest, fit(nearest)[0]

    def named(self, mapping: ColumnMapping) -> list[str]:
        """The columns of the file that a mapping names."""
        names = [name for columns in mapping.columns.values() for name in columns]
        for place in self.naming:
            section = mapping.sections.get(place, {})
            for value in (*section.values(), mapping.top.get(place, ())):
                names += tuple_of(value)
        return list(dict.fromkeys(names))

    def mapping(self, wanted: str | MappingFile) -> ColumnMapping:
        """The preset of that name, else the mapping in that TOML file, or in one that was sent.

        Raises
        ------
        SourceError
            Where there is no such mapping, or it holds a mistake.
        """
        if isinstance(wanted, MappingFile):
            return self.parsed(wanted.name, wanted.content)
        if wanted in self.shipped:
            return self.shipped[wanted]
        path = Path(wanted)
        if not path.is_file():
            preset = f"no mapping of that name ({', '.join(self.presets)}) and "
            raise SourceError(
                f"{wanted}: {preset if self.presets else ''}no TOML file that can be read: check "
                "--mapping"
            )
        return self.parsed(wanted, Toml(wanted, SourceError).read(path))

    def parsed(self, name: str, content: bytes) -> ColumnMapping:
        """A mapping of TOML; `name` is what a mistake in it is told of.

        Raises
        ------
        SourceError
            Where it holds a mistake.
        """
        toml = Toml(name, SourceError)
        document = toml.document(content)
        held = {place: document.pop(place, {}) for place in ("columns", *self.sections)}
        top = toml.section("", document, {**_TOP, **self.top})
        for place, checks in self.sections.items():
            values = held[place] if isinstance(held[place], dict) else {}
            any_key = dict.fromkeys(values, _naming(optional=True))
            toml.section(place, held[place], any_key if checks is None else checks)
        columns = {
            column.name: _naming(several=column.several, optional=not column.needed)
            for column in self.columns
        }
        needed = () if self.by_name else [column.name for column in self.columns if column.needed]
        named = toml.section("columns", held.pop("columns"), columns, needed=needed)
        time_formats.checked(name, tuple_of(top.get("time_format", ())))
        said = {key: value for values in (named, *held.values()) for key, value in values.items()}
        return ColumnMapping(
            Path(name).stem,
            top,
            {key: tuple_of(value) for key, value in named.items() if value},
            frozenset(key for key, value in said.items() if value is False),
            {place: {k: v for k, v in values.items() if v} for place, values in held.items()},
        )


class Row(NamedTuple):
    """A record of a table."""

    cluster: str
    values: dict[str, Any]
    """Our name -> its value, None of a column that the file lacks. Of one that can be several the
    file's name -> its words, of those that hold any."""
    facts: dict[str, str]
    """Name of a fact -> its text, of those that are stated."""
    raw: Mapping[str, Any]
    """The file's name -> what its cell holds."""


class Table:
    """A file that is read by a layout; iterated, again and again, its records as they stand.

    Raises
    ------
    SourceError
        Where it has no header, or lacks a column, or the mapping holds a mistake.
    """

    def __init__(self, source: Source, options: Options, layout: Layout) -> None:
        self._source, self._options, self.layout = source, options, layout
        wanted = None if options.mapping is None else layout.mapping(options.mapping)
        self._delimiter = options.delimiter or (wanted.top if wanted else {}).get("delimiter", ",")
        self._header = options.columns or (_own_header(source, wanted) if wanted else None)
        self.header = self._opened()[0]
        preset, fits = layout.preset_of(self.header)
        self.mapping = wanted or (ColumnMapping() if layout.by_name and not fits else preset)
        self.facts: dict[str, str] = {
            name: name
            for name in layout.facts
            if name in self.header and name not in self.mapping.absent
        } | dict(self.mapping.sections.get("facts", {}))
        self.columns = self._columns(stated=wanted is not None)

    @property
    def zone(self) -> str | None:
        """Zone of local times, where the mapping states it."""
        return self.mapping.top.get("timezone")

    def _opened(self) -> tuple[list[str], Iterator[Any]]:
        return opened_table(self._source, self._delimiter, self._header, self._options.limits)

    def _columns(self, *, stated: bool) -> dict[str, tuple[str, ...]]:
        """Our name -> the file's columns, for those that it has, by a mapping that is `stated`."""
        layout, mapping = self.layout, self.mapping
        columns: dict[str, tuple[str, ...]] = {
            column.name: (column.name,)
            for column in layout.columns
            if layout.by_name and column.name not in mapping.absent
        } | dict(mapping.columns)
        named = layout.named(mapping)
        needed = [column.name for column in layout.columns if column.needed]
        needed += layout.pair if not self.facts else ()
        wanted = [*named, *(columns.get(name, (name,))[0] for name in needed)]
        missing = next((name for name in wanted if name not in self.header), None)
        if missing in named:
            presets = ", ".join(layout.presets)
            shipped = "" if stated else f"no shipped mapping ({presets}) fits its columns: "
            raise self._lacks(
                f"{shipped}no column {missing!r} of mapping {mapping.name}",
                "correct the file or pass another --mapping",
            )
        if missing is not None:
            raise self._lacks(
                f"no column {missing!r}",
                f"name them {', '.join(needed)}, ... or pass --mapping with a TOML file that says "
                "which is which",
            )
        return {name: held for name, held in columns.items() if {*held} <= {*self.header}}

    def _lacks(self, told: str, remedy: str) -> SourceError:
        there = ", ".join(self.header)[:300] or "none"
        return SourceError(f"{self._source.name}: {told}, there are: {there}: {remedy}")

    def __iter__(self) -> Iterator[Found]:
        for record in self._opened()[1]:
            yield Found(record.line_no, record.raw.rstrip("\r\n"), record.values)

    def gathered(self, make: Callable[[Row, Gathered], Iterable[Any] | str]) -> Gathered:
        """What is made of each record: its rows, or a reason to skip it."""
        log = Gathered(self._options, LocalClock(self._options, self.zone), self.making(make))
        self.read_into(log)
        return log

    def making(self, make: Callable[[Row, Any], Any]) -> Callable[[Any, Any], Any]:
        """What makes the same of a record as it stands, for what gathers rows by a clock."""
        return lambda values, log: (
            "blank" if is_blank(values) else make(self._row(values, log.clock), log)
        )

    def read_into(self, log: Gathered) -> None:
        """Hands over each record."""
        for n_read, record in enumerate(self, 1):
            log.take(*record)
            if n_read % _PROGRESS_RECORDS == 0:
                self._options.progress(f"{self._source.name}: {n_read:,} records")

    def raw(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Our name -> what its cell holds, of the columns that the file has."""
        return {name: values[columns[0]] for name, columns in self.columns.items()}

    def _row(self, values: Mapping[str, Any], clock: LocalClock) -> Row:
        """A record, each cell read as its column says."""
        raw, top = self.raw(values), self.mapping.top
        stated = text_of(raw.get(_CLUSTER))
        own = f"{top.get('cluster_prefix', '')}{stated}" if stated else top.get(_CLUSTER)
        cluster = self._options.cluster or own or self._options.default_cluster
        row: dict[str, Any] = {}
        for column in self.layout.columns:
            if column.several:
                cells = {name: words(values[name]) for name in self.columns.get(column.name, ())}
                row[column.name] = {name: text for name, text in cells.items() if text}
                continue
            cell = raw.get(column.name)
            if column.kind == "time":
                row[column.name] = self.time(cell, cluster, clock)
            else:
                row[column.name] = _READ[column.kind](cell, column.name)
            if column.needed and row[column.name] is None:
                raise RecordError(f"no {column.name}")
        facts = {name: text_of(values[column]) for name, column in self.facts.items()}
        return Row(cluster, row, {name: text for name, text in facts.items() if text}, values)

    def time(self, value: object, cluster: str, clock: LocalClock) -> datetime | None:
        """A time: one of Parquet, as the mapping says, ISO, or seconds since 1970; None of nothing.

        Raises
        ------
        RecordError
            Where it is none.
        """
        text = words(value)
        if known(text) is None:
            return None
        formats = self.mapping.time_format or self.layout.time_format
        try:
            if isinstance(value, pd.Timestamp):  # Parquet's nanoseconds
                local = value.floor("us").to_pydatetime()
            elif isinstance(value, datetime):
                local = value
            elif formats and text and not isinstance(value, date):
                local = time_formats.read(text, formats)
            elif (seconds := whole(value)) is not None:
                return datetime.fromtimestamp(seconds, UTC)
            else:
                local = datetime.fromisoformat(str(value).strip())
            return clock.utc(local, cluster)
        except RecordError:
            raise
        except (ValueError, OverflowError):
            raise RecordError("impossible time") from None


def _own_header(source: Source, mapping: ColumnMapping) -> tuple[str, ...] | None:
    """The columns that a mapping states of a file without a header."""
    named = mapping.top.get("header")
    if not named or header_of(named) & header_of(source.first_line()[1]):
        return None
    return tuple(named.split(","))


def is_blank(values: Mapping[str, Any] | None) -> bool:
    """Whether no cell of a record holds anything; RecordError of one that is none."""
    if values is None:
        raise RecordError("number of fields differs from the header")
    return not any(words(value) for value in values.values())


def text_of(value: object) -> str | None:
    """A text; None where the cell is empty, or says that nothing is known."""
    return known(_plain(value))


def words(value: object) -> str | None:
    """A cell as text with single blanks; None where it is empty."""
    return " ".join(_plain(value).split()) or None


def _plain(value: object) -> str:
    """A cell as text."""
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():  # a whole number in a column with gaps
        value = int(value)
    return str(value)


def _count(value: object, name: str) -> int | None:
    """A whole number from 0 on; RecordError of a text that is none."""
    text = text_of(value)
    if text is not None and whole(text) is None:
        raise RecordError(f"{name} is no whole number")
    return whole(text)


def tuple_of(value: Any) -> tuple[str, ...]:
    """Of a text or several their tuple."""
    return (value,) if isinstance(value, str) else tuple(value)


_READ: dict[str, Callable[[object, str], Any]] = {
    "text": lambda value, _: text_of(value),
    "words": lambda value, _: words(value),
    "count": _count,
    "nodes": lambda value, _: expand(text_of(value) or "") or None,
}
"""Kind of a column -> what reads its cells."""
