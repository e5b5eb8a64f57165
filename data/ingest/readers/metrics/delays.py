"""Delays between pairs of endpoints: a long table or a matrix, CSV or Parquet, to samples."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from analytics.nodes.links.samples import DelaySamples
from data.errors import SourceError
from data.ingest.formats.source import is_parquet
from data.ingest.formats.tabular import Record, delimiter_of, opened_table, table_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from data.ingest.reader import Source

ENDS: Final = {
    "source": ("source", "src", "sender", "from"),
    "destination": ("destination", "dst", "dest", "receiver", "to"),
}
UNITS: Final = {"us": 1.0, "ns": 1e-3, "ms": 1e3, "s": 1e6, "usec": 1.0, "seconds": 1e6}
DELAYS: Final = tuple(f"{word}_{unit}" for word in ("delay", "latency", "time") for unit in UNITS)
"""Columns of a delay, which name its unit."""
SIZES: Final = ("size_bytes", "message_bytes", "message_size", "bytes", "size")
HOSTS: Final = ("host", "node")
GROUPS: Final = ("group", "switch", "leaf", "rack", "pod")
UNMEASURED: Final = ("", "-", "nan", "na", "n/a", "none", "null")
"""What stands in a matrix where a pair was not measured."""


@dataclass(frozen=True)
class DelayFile:
    """What one file holds."""

    samples: DelaySamples
    n_rejected: int
    """Rows or cells without a delay > 0, or that do not fit the header."""
    rejected_at: int | None
    """Line of the first of them."""
    groups_left_out: tuple[int, int] | None = None
    """Lines of the table of switches without a host and its switch: how many, and the first."""


def read_delays(name: str, groups: str | None = None) -> DelayFile:
    """Samples of a file; `-` is standard input. `groups` names a table of hosts and switches.

    A long table has columns source, destination and delay_us (or _ns, _ms, _s), and may have
    size_bytes, source_host and source_switch, and the same of the destination. A matrix has the
    senders in its first column and the receivers in its header, in microseconds; an empty cell, or
    one that holds no number, is a pair that was not measured. Without names ends are numbered.

    Raises
    ------
    SourceError
        Where the file cannot be read or has no delay.
    """
    with table_of(name) as (source, header, records):
        if all(math.isfinite(_number(cell)) for cell in header):
            header, records = _numbered(source, header, records)
        columns = _columns(header)
        file = _of_rows(records, columns) if columns else _of_matrix(header, records)
        if source.too_long:
            first = min(filter(None, (file.rejected_at, source.too_long[0].line_no)))
            n_rejected = file.n_rejected + source.too_long.total
            file = replace(file, n_rejected=n_rejected, rejected_at=first)
    if not len(file.samples.delay_us):
        where = "" if file.rejected_at is None else f", the first of line {file.rejected_at}"
        raise SourceError(
            f"{name}: holds no delay of a pair ({file.n_rejected:,} rows or cells left out{where}):"
            " give columns source, destination, delay_us, or a matrix of microseconds"
        )
    if groups is not None:
        stated, left_out = _groups(groups)
        samples = replace(file.samples, group_of={**file.samples.group_of, **stated})
        file = replace(file, samples=samples, groups_left_out=left_out)
    return file


def _numbered(
    source: Source, header: list[str], records: Iterator[Record]
) -> tuple[list[str], Iterator[Record]]:
    """A matrix of numbers alone with the numbers of its ends as names."""
    names = [str(place) for place in range(len(header))]
    if not is_parquet(source.path):  # what was taken for a header is its first row
        _, records = opened_table(source, delimiter_of(source.path), tuple(names))

    def named() -> Iterator[Record]:
        for place, record in enumerate(records):
            values = record.values
            if values is not None:
                values = {"": str(place), **dict(zip(names, values.values(), strict=True))}
            yield record._replace(values=values)

    return ["", *names], named()


def _columns(header: list[str]) -> dict[str, str] | None:
    """What is asked for -> its column; None of a matrix."""
    place = {name.strip().casefold(): name for name in reversed(header)}
    wanted: dict[str, Iterable[str]] = {**ENDS, "delay": DELAYS, "size": SIZES}
    for end, names in ENDS.items():
        wanted[f"{end}_host"] = [f"{one}_{host}" for one in names for host in HOSTS]
        wanted[f"{end}_group"] = [f"{one}_{group}" for one in names for group in GROUPS]
    found = {
        key: place[name]
        for key, names in wanted.items()
        for name in reversed([*names])
        if name in place
    }
    if {"source", "destination"} <= found.keys() and "delay" not in found:
        raise SourceError(
            "the table has source and destination but no delay with a unit: name that column "
            "delay_us (or delay_ns, delay_ms, delay_s)"
        )
    return found if {"source", "destination", "delay"} <= found.keys() else None


class _Taken:
    """Samples as they are read."""

    def __init__(self) -> None:
        self.place: dict[str, int] = {}
        self.rows = array("d")
        """Source, destination, delay and size of each, one behind the other."""
        self.n_rejected = 0
        self.rejected_at: int | None = None
        self.hosts: dict[str, str] = {}
        self.groups: dict[str, str] = {}

    def reject(self, line: int) -> None:
        """Counts a row or cell that is left out."""
        self.n_rejected += 1
        self.rejected_at = line if self.rejected_at is None else self.rejected_at

    def end(self, name: str) -> int:
        """The place of an endpoint."""
        return self.place.setdefault(name, len(self.place))

    def file(self) -> DelayFile:
        """All that was taken."""
        rows = np.frombuffer(self.rows).reshape(-1, 4)
        sizes = rows[:, 3]
        samples = DelaySamples(
            tuple(self.place),
            rows[:, 0].astype(np.int64),
            rows[:, 1].astype(np.int64),
            rows[:, 2],
            sizes if np.isfinite(sizes).any() else None,
            self.hosts,
            self.groups,
        )
        return DelayFile(samples, self.n_rejected, self.rejected_at)


def _of_rows(records: Iterable[Record], columns: Mapping[str, str]) -> DelayFile:
    """Samples of a long table."""
    taken = _Taken()
    factor = UNITS[columns["delay"].strip().casefold().rpartition("_")[2]]
    for record in records:
        values = record.values or {}
        source, destination = (_name(values.get(columns[end])) for end in ENDS)
        delay = _number(values.get(columns["delay"]))
        if source and source == destination:  # to oneself: no transfer
            continue
        if not source or not destination or not delay > 0 or math.isinf(delay):
            taken.reject(record.line_no)
            continue
        size = _number(values.get(columns["size"])) if "size" in columns else math.nan
        taken.rows.extend((taken.end(source), taken.end(destination), delay * factor, size))
        for end, name in (("source", source), ("destination", destination)):
            host = _name(values.get(columns.get(f"{end}_host", "")))
            group = _name(values.get(columns.get(f"{end}_group", "")))
            if host:
                taken.hosts[name] = host
            if group:
                taken.groups[name] = group
    return taken.file()


def _of_matrix(header: list[str], records: Iterable[Record]) -> DelayFile:
    """Samples of a matrix; what stands on its diagonal is no transfer."""
    taken = _Taken()
    names = [name.strip() for name in header[1:]]
    for record in records:
        values = record.values
        source = _name(values.get(header[0])) if values else ""
        if values is None or not source:
            taken.reject(record.line_no)
            continue
        for column, destination in zip(header[1:], names, strict=True):
            cell = values.get(column)
            delay = _number(cell)
            if delay > 0 and not math.isinf(delay):
                taken.rows.extend((taken.end(source), taken.end(destination), delay, math.nan))
            elif source != destination and _name(cell).casefold() not in UNMEASURED:
                taken.reject(record.line_no)
    return taken.file()


def _groups(name: str) -> tuple[dict[str, str], tuple[int, int] | None]:
    """Host -> switch, by the first two columns of a table; and the lines that are left out."""
    groups: dict[str, str] = {}
    left_out: list[int] = []
    with table_of(name) as (source, header, records):
        if len(header) < 2:
            raise SourceError(f"{name}: has one column: give host and switch")
        for record in records:
            host, group = (_name((record.values or {}).get(column)) for column in header[:2])
            if host and group:
                groups[host] = group
            else:
                left_out.append(record.line_no)
        n_left_out = len(left_out) + source.too_long.total
        left_out += [line.line_no for line in source.too_long]
    return groups, (n_left_out, min(left_out)) if left_out else None


def _name(value: Any) -> str:
    """A cell as text; unknown is empty."""
    if value is None or value != value:
        return ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()


def _number(value: Any) -> float:
    """A cell as a number; NaN where it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
