"""Logs of failures of nodes, racks, file systems, sites: CSV or Parquet, by a column mapping."""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from data.hostlist import MAX_HOSTS
from data.ingest.formats import time_formats
from data.ingest.node_observation import known
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.tables.mapped_table import (
    COLUMN,
    COLUMNS,
    HOST_NAMES,
    Column,
    Layout,
    Table,
    tuple_of,
    words,
)
from data.ingest.rows import Gathered, occurrence_keys, typed_frame
from data.toml import filled

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    from data.ingest.readers.tables.mapped_table import Row


WHOLE = "cluster"
"""What failures hit of a log in which none names a node, unless something says it."""
LAYOUT = Layout(
    "node_failures",
    (
        Column("node", "words", also=HOST_NAMES),
        Column("hit", several=True),
        Column(
            "start",
            "time",
            needed=True,
            also=("started", "startat", "starttime", "down", "failed", "failedat", "begin"),
            of_table="start_at",
        ),
        Column(
            "end",
            "time",
            also=("ended", "endat", "endtime", "up", "repaired", "fixed"),
            of_table="end_at",
        ),
        Column("repair_minutes", "words"),
        Column("cause", also=("reason", "why", "rootcause"), several=True),
        Column("subcause", "words"),
        Column("text", "words", also=("description", "summary", "comment", "details", "message")),
        Column("cluster"),
    ),
    presets=("lanl", "pnnl"),
    top={"hit": filled, "cluster_prefix": filled, "key": COLUMNS},
    sections={"nodes": {"count": COLUMN, "first_seen": COLUMNS, "last_seen": COLUMN}},
    naming=("key", "nodes"),
    by_name=False,
    time_format=(time_formats.ISO,),
)
"""Columns of `hit` say what a failure hit that names no node, of several each after its own name.
One of `cause` holds the cause; of several the filled one is the cause and its value the subcause.

At the top, `hit` says what those hit of which no column says it, `cluster_prefix` stands before
what the column `cluster` holds, and `key` are columns that identify a failure; without them true
duplicates are kept and counted. [nodes] names columns of how many nodes the cluster has (`count`),
when each went into service (`first_seen`, the first that holds a date) and left (`last_seen`)."""


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


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """The failures as rows of `node_failures`, and all nodes as rows of `nodes`.

    The nodes need a column that states how many a cluster has.

    Raises
    ------
    SourceError
        Where the file has no header or is broken, no mapping fits, the mapping holds a mistake
        or the file lacks one of its columns, or a time zone is unknown.
    """
    log = _Log(Table(source, options, LAYOUT))
    return log.batch(log.table.gathered(log.made))


class _Log:
    """What has been read of one log so far."""

    def __init__(self, table: Table) -> None:
        self.table = table
        mapping = table.mapping
        self._key = tuple_of(mapping.top.get("key", ()))
        self._of_nodes = {
            name: tuple_of(column) for name, column in mapping.sections.get("nodes", {}).items()
        }
        self._hit_name = mapping.top.get("hit", None if "node" in table.columns else WHOLE)
        self._keys: list[str] = []
        self._nodes = NodeList()
        self._dates: dict[tuple[str, str, bool], datetime | None] = {}
        self._n_nameless = self._n_shared = self._n_causes = 0

    def made(self, row: Row, log: Gathered) -> list[_Failure]:
        """The failure of a record."""
        failure = self._failure(row)
        log.saw(row.cluster, failure.start_at, failure.end_at)
        self._n_nameless += failure.node is None and failure.hit is None
        self._n_shared += failure.hit is not None
        if self._key:
            key = "\x1f".join([row.cluster, *(words(row.raw[name]) or "" for name in self._key)])
            self._keys.append(hashlib.sha256(key.encode()).hexdigest()[:24])
        for name in self._of_nodes.get("count", ()):
            spell = self._spell(row, log)
            self._nodes.add(row.cluster, failure.node, count=words(row.raw[name]), spell=spell)
        return [failure]

    def batch(self, log: Gathered) -> Batch:
        """All of the log."""
        name = self.table.mapping.name
        frame = typed_frame("node_failures", log.rows, _Failure._fields, source=name)
        keys = self._keys if self._key else _keys(frame)
        frame["failure_key"] = pd.array(keys, dtype="string")
        nodes, notices = self._nodes.frame()
        batch = log.batch("node_failures", frame)
        counts = [
            (self._n_nameless, "failures kept that name no node, it stays unknown"),
            (self._n_shared, "failures kept of no single node, each counts once in its cluster"),
            (self._n_causes, "failures with several causes, their cause stays unknown"),
        ]
        batch.notices += [f"{text}: {n:,}" for n, text in counts if n] + notices
        if len(nodes):
            batch.tables["nodes"] = nodes
        return batch

    def _failure(self, row: Row) -> _Failure:
        """The row of a record."""
        stated = row.values
        node, start_at, end_at = known(stated["node"]), stated["start"], stated["end"]
        if end_at is not None and end_at < start_at:
            raise RecordError("end before start")
        cause, subcause = self._cause(row)
        minutes = (end_at - start_at).total_seconds() / 60 if end_at else None
        return _Failure(
            cluster=row.cluster,
            node=node,
            hit=self._hit(row) if node is None else None,
            start_at=start_at,
            end_at=end_at,
            repair_minutes=_minutes(stated["repair_minutes"], minutes),
            cause=cause,
            subcause=subcause,
            text=stated["text"],
        )

    def _hit(self, row: Row) -> str | None:
        """What a failure hit that names no node; of several columns each after its own name."""
        is_one = len(self.table.columns.get("hit", ())) == 1
        filled = {name: text for name, text in row.values["hit"].items() if known(text)}
        named = (text if is_one else f"{name} {text}" for name, text in filled.items())
        return ", ".join(named) or self._hit_name

    def _cause(self, row: Row) -> tuple[str | None, str | None]:
        """Cause and subcause; of several cause columns the filled one is the cause."""
        filled, subcause = row.values["cause"], row.values["subcause"]
        if len(self.table.columns.get("cause", ())) <= 1:
            return next(iter(filled.values()), None), subcause
        if len(filled) != 1:
            self._n_causes += len(filled) > 1
            return None, subcause
        ((cause, text),) = filled.items()
        return cause, subcause or text

    def _spell(self, row: Row, log: Gathered) -> Spell:
        """When the node of a record was in service."""
        first, last = (
            [self._day(row, name, log, end=end) for name in self._of_nodes.get(place, ())]
            for place, end in (("first_seen", False), ("last_seen", True))
        )
        return Spell(next((at for at in first if at is not None), None), next(iter(last), None))

    def _day(self, row: Row, column: str, log: Gathered, *, end: bool) -> datetime | None:
        """A date of a node's service; of a month its start or end; None for words."""
        value = row.raw[column]
        key = (str(value), row.cluster, end)
        if key not in self._dates:
            month = month_of(str(value).strip())
            try:
                at = (
                    log.clock.utc(month[end], row.cluster)
                    if month
                    else self.table.time(value, row.cluster, log.clock)
                )
            except RecordError:
                at = None
            self._dates[key] = at
        return self._dates[key]


def _minutes(stated: str | None, lasted: float | None) -> float | None:
    """Minutes down as the source states them, else from start to end."""
    if stated is None:
        return lasted
    try:
        minutes = float(stated)
    except ValueError:
        minutes = math.nan
    if not 0 <= minutes < math.inf:
        raise RecordError("repair_minutes is no number from 0 on")
    return minutes


def _keys(frame: pd.DataFrame) -> list[str]:
    """Keys of failures: what one hit that names no node stands in the node's place."""
    shared = frame["hit"].notna()
    marked = frame.assign(node=frame["node"].mask(shared, "\x1d" + frame["hit"]))
    return occurrence_keys(marked, [name for name in _Failure._fields if name != "hit"])


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
    script="# any CSV or Parquet with a node and a start time",
    example="failures.csv --mapping mapping.toml",
    fills=("node_failures", "nodes"),
    place=5,
    options=("columns", "delimiter", "mapping"),
    presets=LAYOUT.preset_options,
    layout=LAYOUT,
    sniff=LAYOUT.sniff,
    read=read,
    lacks={
        "node_failures": {
            ("end_at", "repair_minutes"): "how long nodes were down stays unknown",
            ("cause", "text"): "causes stay unknown",
        }
    },
)
