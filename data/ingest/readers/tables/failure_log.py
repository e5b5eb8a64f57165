"""Logs of failures of nodes, racks, file systems, sites: CSV or Parquet, by a column mapping."""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from data.hostlist import MAX_HOSTS
from data.ingest.formats import time_formats
from data.ingest.formats.header import header_of
from data.ingest.formats.tabular import opened_table
from data.ingest.node_observation import known
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.tables.failure_mapping import Mapping, fitted, named, shipped
from data.ingest.rows import Gathered, LocalClock, occurrence_keys, typed_frame

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb


_PROGRESS_RECORDS = 100_000


class _Failure(NamedTuple):
    cluster: str
    node: str | None
    hit: str | None
    start_at: datetime
    end_at: datetime | None
    repair_minutes: float | None
    cause: str | None
    subcause: str | None
    text: str | None


def sniff(head: str) -> bool:
    """Whether the first line holds the columns of a shipped mapping."""
    header = header_of(head)
    return any(set(mapping.columns()) <= header for mapping in shipped())


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """The failures as rows of `node_failures`, and all nodes as rows of `nodes`.

    The nodes need a column that states how many a cluster has.

    Raises
    ------
    SourceError
        Where the file has no header or is broken, no mapping fits, the mapping holds a mistake
        or the file lacks one of its columns, or a time zone is unknown.
    """
    wanted = None if options.mapping is None else named(options.mapping)
    delimiter = options.delimiter or (wanted.delimiter if wanted else ",")
    header, records = opened_table(source, delimiter, options.columns, options.limits)
    log = _Log(fitted(wanted, header, source.name), options)
    for n_read, record in enumerate(records, 1):
        log.gathered.take(record.line_no, record.raw.rstrip("\r\n"), record.values)
        if n_read % _PROGRESS_RECORDS == 0:
            options.progress(f"{source.name}: {n_read:,} records")
    return log.batch()


class _Log:
    """What has been read of one log so far."""

    def __init__(self, mapping: Mapping, options: Options) -> None:
        self._mapping, self._options = mapping, options
        self._clock = LocalClock(options, mapping.timezone)
        self.gathered = Gathered(options, self._clock, self._made)
        self._keys: list[str] = []
        self._nodes = NodeList()
        self._dates: dict[tuple[str, str, bool], datetime | None] = {}
        self._n_nameless = self._n_shared = self._n_causes = 0

    def _made(self, values: dict[str, Any] | None, log: Gathered) -> list[_Failure] | str:
        """The failure of a record, or the reason to skip it."""
        if values is None:
            raise RecordError("number of fields differs from the header")
        if not any(_text(value) for value in values.values()):
            return "blank"
        row = self._failure(values)
        log.saw(row.cluster, row.start_at, row.end_at)
        self._n_nameless += row.node is None and row.hit is None
        self._n_shared += row.hit is not None
        if self._mapping.key:
            key = "\x1f".join([row.cluster, *(_text(values[c]) or "" for c in self._mapping.key)])
            self._keys.append(hashlib.sha256(key.encode()).hexdigest()[:24])
        if self._mapping.node_count is not None:
            count = _text(values[self._mapping.node_count])
            spell = self._spell(values, row.cluster)
            self._nodes.add(row.cluster, row.node, count=count, spell=spell)
        return [row]

    def batch(self) -> Batch:
        """All of the log."""
        rows, columns = self.gathered.rows, _Failure._fields
        frame = typed_frame("node_failures", rows, columns, source=self._mapping.name)
        keys = self._keys if self._mapping.key else _keys(frame)
        frame["failure_key"] = pd.array(keys, dtype="string")
        nodes, notices = self._nodes.frame()
        batch = self.gathered.batch("node_failures", frame)
        batch.notices += self._notices() + notices
        if len(nodes):
            batch.tables["nodes"] = nodes
        return batch

    def _notices(self) -> list[str]:
        counts = [
            (self._n_nameless, "failures kept that name no node, it stays unknown"),
            (self._n_shared, "failures kept of no single node, each counts once in its cluster"),
            (self._n_causes, "failures with several causes, their cause stays unknown"),
        ]
        return [f"{text}: {n:,}" for n, text in counts if n]

    def _failure(self, values: dict[str, Any]) -> _Failure:
        """The row of a record."""
        mapping = self._mapping
        cluster = self._cluster(values)
        start_at = self._instant(values[mapping.start], cluster)
        if start_at is None:
            raise RecordError("no start")
        end_at = self._instant(values[mapping.end], cluster) if mapping.end else None
        if end_at is not None and end_at < start_at:
            raise RecordError("end before start")
        cause, subcause = self._cause(values)
        node = known(_text(values[mapping.node])) if mapping.node else None
        return _Failure(
            cluster=cluster,
            node=node,
            hit=self._hit(values) if node is None else None,
            start_at=start_at,
            end_at=end_at,
            repair_minutes=self._repair_minutes(values, start_at, end_at),
            cause=cause,
            subcause=subcause,
            text=_text(values[mapping.text]) if mapping.text else None,
        )

    def _cluster(self, values: dict[str, Any]) -> str:
        mapping = self._mapping
        if self._options.cluster is not None:
            return self._options.cluster
        if mapping.cluster_column is None:
            return mapping.cluster or self._options.default_cluster
        name = _text(values[mapping.cluster_column])
        return self._options.default_cluster if name is None else mapping.cluster_prefix + name

    def _hit(self, values: dict[str, Any]) -> str | None:
        """What a failure hit that names no node; of several columns each after its own name."""
        columns = self._mapping.hit
        filled = [(name, text) for name in columns if (text := known(_text(values[name])))]
        if len(columns) > 1:
            filled = [(name, f"{name} {text}") for name, text in filled]
        return ", ".join(text for _, text in filled) or self._mapping.hit_name

    def _cause(self, values: dict[str, Any]) -> tuple[str | None, str | None]:
        """Cause and subcause; of several cause columns the filled one is the cause."""
        mapping = self._mapping
        subcause = _text(values[mapping.subcause]) if mapping.subcause else None
        if len(mapping.cause) <= 1:
            return (_text(values[mapping.cause[0]]) if mapping.cause else None), subcause
        filled = [column for column in mapping.cause if _text(values[column])]
        if len(filled) != 1:
            self._n_causes += len(filled) > 1
            return None, subcause
        return filled[0], subcause or _text(values[filled[0]])

    def _repair_minutes(
        self, values: dict[str, Any], start_at: datetime, end_at: datetime | None
    ) -> float | None:
        """Minutes down as the source states them, else from start to end."""
        column = self._mapping.repair_minutes
        stated = _text(values[column]) if column else None
        if stated is None:
            return (end_at - start_at).total_seconds() / 60 if end_at else None
        try:
            minutes = float(stated)
        except ValueError:
            minutes = math.nan
        if not 0 <= minutes < math.inf:
            raise RecordError("repair_minutes is no number from 0 on")
        return minutes

    def _instant(self, value: object, cluster: str) -> datetime | None:
        """The instant of a value; None where it is empty."""
        if isinstance(value, pd.Timestamp):  # Parquet's nanoseconds
            value = value.floor("us").to_pydatetime()
        if isinstance(value, datetime):
            return self._clock.utc(value, cluster)
        if isinstance(value, date):
            return self._clock.utc(datetime.combine(value, time()), cluster)
        text = _text(value)
        if text is None:
            return None
        return self._clock.utc(time_formats.read(text, self._mapping.time_format), cluster)

    def _spell(self, values: dict[str, Any], cluster: str) -> Spell:
        """When the node of a record was in service."""
        mapping = self._mapping
        first = (self._day(values[c], cluster, end=False) for c in mapping.first_seen)
        last = (
            self._day(values[mapping.last_seen], cluster, end=True) if mapping.last_seen else None
        )
        return Spell(next((at for at in first if at is not None), None), last)

    def _day(self, value: object, cluster: str, *, end: bool) -> datetime | None:
        """A date of a node's service; of a month its start or end; None for words."""
        key = (str(value), cluster, end)
        if key not in self._dates:
            month = month_of(str(value).strip())
            try:
                at = (
                    self._clock.utc(month[end], cluster) if month else self._instant(value, cluster)
                )
            except RecordError:
                at = None
            self._dates[key] = at
        return self._dates[key]


def _keys(frame: pd.DataFrame) -> list[str]:
    """Keys of failures: what one hit that names no node stands in the node's place."""
    shared = frame["hit"].notna()
    marked = frame.assign(node=frame["node"].mask(shared, "\x1d" + frame["hit"]))
    return occurrence_keys(marked, [name for name in _Failure._fields if name != "hit"])


def _text(value: object) -> str | None:
    """A value as text with single spaces; None where there is none."""
    if value is None:
        return None
    if isinstance(value, float):  # a whole number in a column with gaps
        if math.isnan(value):
            return None
        value = int(value) if value.is_integer() else value
    return " ".join(str(value).split()) or None


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_YEAR = re.compile(r"([A-Za-z]{3})-(\d\d)|(\d{1,2})-([A-Za-z]{3})")
_CENTURY = 70  # two-digit years from here on are of the 1900s


class Spell(NamedTuple):
    """When a node was in service; None where unknown or still in service."""

    first_seen_at: datetime | None
    last_seen_at: datetime | None


def month_of(text: str) -> tuple[datetime, datetime] | None:
    """First instants of a month and of the month after it, local; None where it is no month.

    Spreadsheets turn `Apr-05` into the day `5-Apr`: both are read as April 2005.
    """
    match = _MONTH_YEAR.fullmatch(text)
    name = (match[1] or match[4]).lower() if match else ""
    if match is None or name not in _MONTHS:
        return None
    short_year, month = int(match[2] or match[3]), _MONTHS.index(name) + 1
    year = short_year + (1900 if short_year >= _CENTURY else 2000)
    months = year * 12 + month - 1
    return _month_start(months), _month_start(months + 1)


def _month_start(months: int) -> datetime:
    """Local midnight at the start of a month counted from year 0."""
    return datetime(months // 12, months % 12 + 1, 1)  # noqa: DTZ001 - LocalClock adds the zone


class NodeList:
    """Collects, cluster by cluster, the number of nodes and what is known of each."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, set[str]] = defaultdict(set)
        self._spells: defaultdict[str, dict[str, Spell]] = defaultdict(dict)

    def add(self, cluster: str, node: str | None, *, count: str | None, spell: Spell) -> None:
        """Takes what one record says."""
        if count is not None:
            self._counts[cluster].add(count)
        if node is not None:
            self._spells[cluster].setdefault(node, spell)

    def frame(self) -> tuple[pd.DataFrame, list[str]]:
        """Rows of the table `nodes`, and what could not be made to fit."""
        rows: list[tuple[str, str, datetime | None, datetime | None]] = []
        notices = []
        for cluster in sorted(self._counts):
            numbers, notice = self._numbers(cluster)
            if notice:
                notices.append(f"cluster {cluster}: {notice}")
            spells = self._spells[cluster]
            common = set(spells.values())
            rest = common.pop() if len(common) == 1 else Spell(None, None)
            rows += [(cluster, str(n), *spells.get(str(n), rest)) for n in numbers]
        frame = typed_frame("nodes", rows, ("cluster", "node", *Spell._fields), source="inventory")
        return frame, notices

    def _numbers(self, cluster: str) -> tuple[Iterable[int], str | None]:
        """Numbers of the cluster's nodes; with what does not fit."""
        counts, nodes = self._counts[cluster], self._spells[cluster]
        if len(counts) > 1:
            return (), f"the number of nodes differs between records ({', '.join(sorted(counts))})"
        count = next(iter(counts))
        if not count.isdecimal() or not 0 < int(count) <= MAX_HOSTS:
            return (), f"{count!r} is no number of nodes"
        if not all(node.isdecimal() for node in nodes):
            return (), "nodes have names, so that those without a failure stay unknown"
        return _block(sorted(int(node) for node in nodes), int(count))


def _block(numbers: list[int], count: int) -> tuple[range, str | None]:
    """The run of `count` numbers that nodes go by: 0, 1, ... unless the seen ones say otherwise."""
    lowest, highest = (numbers[0], numbers[-1]) if numbers else (0, 0)
    if highest < count:
        return range(count), None
    if highest - lowest >= count:
        beyond = ", ".join(str(number) for number in numbers if number >= count)
        return range(count), f"node {beyond} lies beyond its {count} nodes"
    first = lowest // count * count
    if highest >= first + count:
        first = highest - count + 1
    return range(first, first + count), f"its {count} nodes are taken to be numbered from {first}"


READER = Reader(
    "failure-log",
    "failures of nodes, racks, sites as CSV or Parquet, by --mapping (lanl, pnnl or a TOML file)",
    reads=(
        "any CSV or Parquet of failures of nodes, racks, file systems, sites, by a column"
        " mapping (`--mapping lanl`, `pnnl`, or your own TOML)"
    ),
    fills=("node_failures", "nodes"),
    place=5,
    options=("columns", "delimiter", "mapping"),
    presets=lambda: {mapping.name: {"mapping": mapping.name} for mapping in shipped()},
    sniff=sniff,
    read=read,
    lacks={
        "node_failures": {
            ("end_at", "repair_minutes"): "how long nodes were down stays unknown",
            ("cause", "text"): "causes stay unknown",
        }
    },
)
