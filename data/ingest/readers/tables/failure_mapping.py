"""Column mappings of failure logs: which column of a file means what, as TOML.

A site's own, for a file with the columns host, down, up and why::

    timezone = "Europe/Berlin"           # of times without an offset; default UTC
    time_format = ["%d.%m.%Y %H:%M"]     # strptime, tried in order; also "iso" (default), "epoch"
    cluster = "hal"                      # or, under [columns], the column that names it

    [columns]
    node = "host"
    start = "down"
    end = "up"
    cause = "why"
    hit = ["rack", "filesystem"]         # what failed where no node did; `node` may then be absent
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from data.errors import SourceError
from data.ingest.formats import time_formats
from data.ingest.reader import MappingFile

_SHIPPED = ("lanl", "pnnl")
MAX_BYTES = 1_000_000
"""Size of a mapping: it names a few columns."""

WHOLE = "cluster"
"""What failures hit of a log in which none names a node, unless something says it."""
_TEXTS = frozenset({"timezone", "cluster", "cluster_prefix", "delimiter", "hit"})
_LISTS = frozenset({"time_format", "key"})
_SECTIONS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    # section: keys that hold one text; keys that hold a text or a list of them
    "": (_TEXTS, _LISTS),
    "columns": (
        frozenset({"node", "start", "end", "repair_minutes", "subcause", "text", "cluster"}),
        frozenset({"cause", "hit"}),
    ),
    "nodes": (frozenset({"count", "last_seen"}), frozenset({"first_seen"})),
}


@dataclass(frozen=True)
class Mapping:
    """Which column of a failure log means what; None or empty where the log has none."""

    name: str
    """Name of the mapping, kept as the source of each row."""
    start: str
    node: str | None = None
    """None where no failure names a node."""
    hit: tuple[str, ...] = ()
    """Columns that say what a failure hit which names no node; of several the filled ones count,
    each after its own name."""
    hit_name: str | None = None
    """What those hit of which no column says it."""
    end: str | None = None
    repair_minutes: str | None = None
    cause: tuple[str, ...] = ()
    """One column that holds the cause; or several, of which the filled one is the cause and its
    value the subcause."""
    subcause: str | None = None
    text: str | None = None
    cluster_column: str | None = None
    cluster_prefix: str = ""
    """Put before what `cluster_column` holds."""
    cluster: str | None = None
    """Name of the one cluster of the log."""
    timezone: str | None = None
    time_format: tuple[str, ...] = (time_formats.ISO,)
    delimiter: str = ","
    key: tuple[str, ...] = ()
    """Columns that identify a failure; without them true duplicates are kept and counted."""
    node_count: str | None = None
    """Column that holds how many nodes the cluster has; they are numbered."""
    first_seen: tuple[str, ...] = ()
    """Columns of when a node went into service; the first that holds a date counts."""
    last_seen: str | None = None

    def columns(self) -> list[str]:
        """All columns the file must have."""
        names = [self.node, *self.hit, self.start, self.end, self.repair_minutes, *self.cause]
        names += [self.subcause, self.text, self.cluster_column, *self.key]
        names += [self.node_count, *self.first_seen, self.last_seen]
        return list(dict.fromkeys(name for name in names if name is not None))


def fitted(mapping: Mapping | None, header: list[str], source_name: str) -> Mapping:
    """The mapping if the file has its columns; without one, the shipped mapping that fits best.

    Raises
    ------
    SourceError
        Where the file lacks a column of the mapping, or has less than half of any shipped one's.
    """
    there = ", ".join(header)[:300] or "none"
    if mapping is None:
        mapping = max(shipped(), key=lambda known: _n_present(known, header))
        if 2 * _n_present(mapping, header) < len(mapping.columns()):
            raise SourceError(
                f"{source_name}: no shipped mapping ({', '.join(_SHIPPED)}) fits its columns "
                f"({there}): pass --mapping with a TOML file that names them"
            )
    missing = [column for column in mapping.columns() if column not in header]
    if missing:
        raise SourceError(
            f"{source_name}: column {missing[0]!r} of mapping {mapping.name} is missing, there "
            f"are: {there}: correct the file or pass another --mapping"
        )
    return mapping


def _n_present(mapping: Mapping, header: list[str]) -> int:
    """Columns of a mapping that a file has."""
    return len(set(mapping.columns()) & set(header))


@cache
def shipped() -> tuple[Mapping, ...]:
    """The mappings that come with the program."""
    folder = resources.files("data.ingest").joinpath("mappings")
    return tuple(
        parsed(folder.joinpath(f"{name}.toml").read_text(encoding="utf-8"), name, name)
        for name in _SHIPPED
    )


def named(wanted: str | MappingFile) -> Mapping:
    """The shipped mapping of that name, else the one in that TOML file, or in one that was sent.

    Raises
    ------
    SourceError
        Where there is no such mapping or it holds a mistake.
    """
    if isinstance(wanted, MappingFile):
        return uploaded(wanted.name, wanted.content)
    for mapping in shipped():
        if mapping.name == wanted:
            return mapping
    path = Path(wanted)
    try:
        content = _content(path)
    except OSError:
        content = None
    if content is None:
        raise SourceError(
            f"{wanted}: no mapping of that name ({', '.join(_SHIPPED)}) and no TOML file that can "
            "be read: check --mapping"
        )
    return uploaded(wanted, content)


def uploaded(name: str, content: bytes) -> Mapping:
    """The mapping in a TOML file that somebody gave, called by its name without the ending.

    Raises
    ------
    SourceError
        Where it is too large, no UTF-8, or holds a mistake.
    """
    if len(content) > MAX_BYTES:
        raise SourceError(f"{name}: is larger than {MAX_BYTES:,} bytes: a mapping names columns")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{name}: is not UTF-8 text: save the mapping as UTF-8") from None
    return parsed(text, Path(name).stem, name)


def _content(path: Path) -> bytes | None:
    """What a regular file holds, up to what a mapping may; None of a device, pipe or folder."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return stream.read(MAX_BYTES + 1)


def parsed(text: str, name: str, origin: str) -> Mapping:
    """A mapping from TOML; `origin` is what a mistake in it is reported for.

    Raises
    ------
    SourceError
        For broken TOML, an unknown key, a value of the wrong type, or no start column.
    """
    try:
        document = tomllib.loads(text)
    except ValueError as error:  # broken TOML, or a number of thousands of digits
        raise SourceError(f"{origin}: is not valid TOML: {error}") from None
    except RecursionError:
        raise SourceError(f"{origin}: is nested too deeply: a mapping names columns") from None
    top = {key: value for key, value in document.items() if key not in _SECTIONS}
    general = _section(origin, "", top)
    columns = _section(origin, "columns", document.get("columns", {}))
    nodes = _section(origin, "nodes", document.get("nodes", {}))
    if "start" not in columns:
        raise SourceError(f"{origin}: [columns] lacks start: name the column that holds it")
    if "cluster" in general and "cluster" in columns:
        raise SourceError(f"{origin}: cluster is both a name and a column: keep one of them")
    time_formats.checked(origin, general.get("time_format", ()))
    if "count" in nodes:
        nodes["node_count"] = nodes.pop("count")
    if "cluster" in columns:
        columns["cluster_column"] = columns.pop("cluster")
    if "hit" in general or "node" not in columns:
        general["hit_name"] = general.pop("hit", WHOLE)
    return Mapping(name, **columns, **general, **nodes)


def _section(origin: str, section: str, values: object) -> dict[str, Any]:
    """The keys of one section, checked; lists as tuples."""
    place = f"[{section}]" if section else "the top level"
    if not isinstance(values, dict):
        raise SourceError(f"{origin}: {section} must be a section: write [{section}]")
    texts, lists = _SECTIONS[section]
    checked: dict[str, Any] = {}
    for key, value in values.items():
        items = value if isinstance(value, list) else [value]
        if key not in texts | lists:
            known = ", ".join(sorted(texts | lists))
            raise SourceError(f"{origin}: unknown key {key!r} at {place}, known are: {known}")
        blank = key == "cluster" and not str(value).strip()
        if blank or not items or not all(isinstance(item, str) and item for item in items):
            raise SourceError(f"{origin}: {key} at {place} must be text, found {value!r}")
        if isinstance(value, list) and key not in lists:
            raise SourceError(f"{origin}: {key} at {place} takes one text, found a list")
        checked[key] = tuple(items) if key in lists else value
    return checked
