"""Slurm's history of nodes out of service: `sacctmgr -P show event` text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError
from data.hostlist import expand
from data.ingest.formats.delimited import LINE_BREAK, MAX_JOINED_LINES, Line, repaired
from data.ingest.reader import (
    Batch,
    Options,
    Reader,
    RecordError,
    Source,
    refuse_wide_header,
)
from data.ingest.rows import Gathered, LocalClock, typed_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import duckdb


_DELIMITER = "|"
_COLUMN = {
    "nodename": "node",
    "nodenames": "node",
    "timestart": "start",
    "timeend": "end",
} | {name: name for name in ("cluster", "node", "start", "end", "state", "reason", "user", "event")}
_NO_TIME = frozenset({"", "unknown", "none", "n/a", "(null)"})
_EPOCH_SECONDS = re.compile(r"\d{9,10}")  # SLURM_TIME_FORMAT=%s
_STATE_FLAGS = "*~#!%$@^-"
_STATE = re.compile(rf"[A-Za-z_+{re.escape(_STATE_FLAGS)}]*")
_PLANNED_FLAGS = frozenset("$@^")  # in a maintenance reservation, reboot requested, reboot issued
_PLANNED_STATES = frozenset({"MAINT", "MAINTENANCE", "REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED"})
_PLANNED_REASON = re.compile(
    r"\bmaint(?:enance)?(?![a-z])|\breboot (?:asap|requested|issued)\b|\breservation(?![a-z])"
    r"|\b(?:planned|scheduled) (?:downtime|outage|shutdown|reboot|upgrade)\b",
    re.IGNORECASE,
)
_UNPLANNED_REASON = re.compile(r"\bun-?(?:planned|scheduled)\b|\bemergency\b", re.IGNORECASE)
_PROGRESS_LINES = 200_000
_FIGURES = {
    "end": "no column TimeEnd: when nodes came back stays unknown: all count as still out",
    "state": "no column State: states stay unknown: reasons alone tell what was planned",
    "reason": "no column Reason: the reasons of outages stay unknown: none speaks for a cause",
}
"""Column -> what stays unknown of an export without it."""


class _Row(NamedTuple):
    cluster: str
    node: str
    start_at: datetime
    end_at: datetime | None
    state: str | None
    reason: str | None
    reason_user: str | None
    planned: bool | None


@dataclass(frozen=True)
class _Layout:
    """Which field of a line is which column."""

    columns: tuple[str, ...]
    delimiter: str
    header: list[str]
    """Fields of the header; none where the file has none."""

    def split(self, text: str) -> list[str]:
        """Fields of a line; `sacctmgr -p` ends lines and header with a delimiter too many."""
        fields = text.split(self.delimiter)
        if len(fields) == len(self.columns) + 1 and not fields[-1]:
            fields.pop()
        return fields

    def resolve(self, text: str) -> list[str] | str:
        """Fields of a line that is not plainly a record, else the reason why it is none.

        A delimiter too many belongs to the reason, the one free text, if all else then fits.
        """
        n_more = text.count(self.delimiter) + 1 - len(self.columns)
        fields = self.split(text) if n_more <= 1 else []
        extra = (
            len(fields) - len(self.columns) if fields else n_more
        )  # thousands cost time to split
        _, _, last_line = text.rpartition(LINE_BREAK)
        if extra < 0 or (last_line != text and isinstance(self.resolve(last_line), list)):
            return "too few fields"
        if extra > 0 and "reason" in self.columns:
            at = self.columns.index("reason")
            *before, rest = text.split(self.delimiter, at)
            fields = [*before, *rest.rsplit(self.delimiter, len(self.columns) - at - 1)]
        if len(fields) != len(self.columns) or not self._fits(fields):
            return "too many fields"
        return fields

    def record(self, fields: list[str]) -> dict[str, str]:
        """The known columns of a record."""
        return {name: field.strip() for name, field in zip(self.columns, fields, strict=True)}

    def made(self, fields: list[str], log: Gathered) -> list[_Row] | str:
        """One row a node of an event, or the reason to skip it."""
        if fields == self.header:  # several outputs in one file
            return "header"
        record = self.record(fields)
        if _is_cluster_event(record):
            return "cluster_event"
        nodes, options = expand(record["node"]), log.options
        if not nodes:
            raise RecordError("no node")
        cluster = options.cluster or record.get("cluster") or options.default_cluster
        start, end = _time(record["start"]), _time(record.get("end", ""))
        if start is None:
            raise RecordError("no start")
        start_at = log.clock.utc(start, cluster)
        end_at = log.clock.utc(end, cluster) if end else None
        if end_at and end_at < start_at:
            raise RecordError("end before start")
        log.saw(cluster, start_at, end_at)
        raw_state, reason = record.get("state", ""), record.get("reason") or None
        user = re.sub(r"(?<=.)\(\d+\)$", "", record.get("user", "")) or None  # root(0)
        planned = _planned(raw_state, reason or "")
        told = (start_at, end_at, _state(raw_state), reason, user, planned)
        return [_Row(cluster, node, *told) for node in nodes]

    def _fits(self, fields: list[str]) -> bool:
        """Whether times and state are some."""
        record = self.record(fields)
        if not _STATE.fullmatch(record.get("state", "")):
            return False
        try:
            _time(record.get("end", ""))
            return _time(record["start"]) is not None
        except RecordError:
            return False


def sniff(head: str) -> bool:
    """Whether the first line is a header of `sacctmgr show event`."""
    line = next((line for line in head.splitlines() if line.strip()), "")
    columns = set(_columns(line.split(_DELIMITER)))
    return {"node", "start"} <= columns and bool(columns & {"end", "state"})


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """The events of nodes as rows of `node_events`, one a node; events of the cluster are skipped.

    Raises
    ------
    SourceError
        Where the file is empty, its header lacks NodeName or TimeStart, or `--timezone` is
        unknown.
    """
    with source.path.open(encoding="utf-8-sig", newline="\n") as handle:
        lines = (Line(number, text.rstrip("\r\n")) for number, text in enumerate(handle, 1))
        layout, first = _layout(source, options, lines)
        log = Gathered(options, LocalClock(options), layout.made)
        torn = _torn(chain(first, lines), layout, log, source.name)
        records, rejected = repaired(torn, layout.resolve)
    for number, fields in records:
        log.take(number, layout.delimiter.join(fields), fields)
    log.rejected.extend(rejected)
    batch = log.batch("node_events", typed_frame("node_events", log.rows, _Row._fields))
    batch.notices += [told for name, told in _FIGURES.items() if name not in layout.columns]
    return batch


def _torn(lines: Iterable[Line], layout: _Layout, log: Gathered, name: str) -> Iterator[Line]:
    """The lines that are no whole records, blank ones behind them too; takes the others."""
    limits, n_blank = log.options.limits, MAX_JOINED_LINES
    for line in lines:
        if line.number % _PROGRESS_LINES == 0:
            log.options.progress(f"{name}: {line.number:,} lines")
        if not line.text.strip():
            n_blank += 1
            if n_blank < MAX_JOINED_LINES:
                yield line
            continue
        n_blank = MAX_JOINED_LINES
        if line.text.count(layout.delimiter) >= limits.fields:
            log.rejected.reject(line.number, limits.fields_reason, line.text)
            continue
        fields = layout.split(line.text)
        if len(fields) == len(layout.columns):
            log.take(line.number, line.text, fields)
        else:
            n_blank = 0
            yield line


def _layout(source: Source, options: Options, lines: Iterator[Line]) -> tuple[_Layout, list[Line]]:
    """Layout, and the first line where that is a record and no header."""
    delimiter = options.delimiter or _DELIMITER
    first = next((line for line in lines if line.text.strip()), None)
    if first is None:
        raise SourceError(f"{source.name}: is empty: give the output of sacctmgr -P show event")
    refuse_wide_header(source, first.text.count(delimiter) + 1, options.limits)
    header = first.text.removesuffix(delimiter).split(delimiter)
    is_header = {"node", "start"} <= set(_columns(header))
    columns = _columns(header if options.columns is None else options.columns)
    for column, name in (("node", "NodeName"), ("start", "TimeStart")):
        if column not in columns:
            there = ", ".join(options.columns or [field.strip() for field in header])
            raise SourceError(
                f"{source.name}: no column {name}, there are: {there[:200]}: give the output of "
                "sacctmgr -P show event with its header, or pass --columns"
            )
    return _Layout(columns, delimiter, header if is_header else []), [] if is_header else [first]


def _columns(names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns in our spelling; others in their own."""
    plain = (re.sub(r"[\s_]|%.*", "", name.lower()) for name in names)
    return tuple(_COLUMN.get(name, name) for name in plain)


def _is_cluster_event(record: dict[str, str]) -> bool:
    """Whether an event is of the cluster: those name no node and have no state."""
    if "event" in record:
        return record["event"].lower() == "cluster"
    return (
        not record["node"]
        and not record.get("state")
        and ("state" in record or record.get("reason", "").lower().startswith("cluster"))
    )


def _time(text: str) -> datetime | None:
    """A time of Slurm, local unless it carries an offset; None for Unknown."""
    if text.lower() in _NO_TIME:
        return None
    try:
        if _EPOCH_SECONDS.fullmatch(text):
            return datetime.fromtimestamp(int(text), UTC)
        return datetime.fromisoformat(text)
    except ValueError:
        raise RecordError("impossible time") from None


def _state(text: str) -> str | None:
    """A state in capitals, all its parts kept, without the marks for flags: `DOWN+DRAIN`."""
    parts = [part.strip().rstrip(_STATE_FLAGS) for part in text.upper().split("+")]
    return "+".join(part for part in parts if part) or None


def _planned(state: str, reason: str) -> bool | None:
    """True where state or reason speak of maintenance; else unknown."""
    if _UNPLANNED_REASON.search(reason):
        return None
    parts = (_state(state) or "").split("+")
    if _PLANNED_FLAGS & set(state) or _PLANNED_STATES & set(parts):
        return True
    return True if _PLANNED_REASON.search(reason) else None


READER = Reader(
    "sacctmgr-events",
    "nodes out of service",
    export="sacctmgr -P show event format=Cluster,NodeName,TimeStart,TimeEnd,...",
    reads="`sacctmgr -P show event`: when nodes were down or drained",
    script=(
        "sacctmgr -P show event start={start} end={end} \\\n"
        "  format=Cluster,NodeName,TimeStart,TimeEnd,State,Reason,User \\\n"
        "  > events.txt"
    ),
    example="events.txt",
    fills=("node_events",),
    place=2,
    options=("columns", "delimiter"),
    covers="node_events",
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
