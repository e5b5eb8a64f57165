"""Facts about nodes and GPUs while they hold: driver, firmware, serial, batch. CSV or Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from data.hostlist import expand
from data.ingest.formats.header import header_of
from data.ingest.formats.tabular import opened_table
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.tables.cells import cluster_of, column_mapping, is_blank, text_of
from data.ingest.readers.tables.node_inventory import GENERAL
from data.ingest.rows import Gathered, LocalClock, typed_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    import duckdb

    from data.ingest.readers.tables.cells import ColumnMapping


FACTS = (
    "serial", "driver", "firmware", "vbios", "batch", "gpu_model", "rack", "temperature_class",
)  # fmt: skip
"""Columns that are facts without a mapping that says so."""
PLACES = ("node", "gpu", "cluster", "from_at", "to_at")
PAIR = ("key", "value")


class _Fact(NamedTuple):
    cluster: str
    node: str
    gpu: str | None
    key: str
    from_at: datetime | None
    to_at: datetime | None
    value: str


def sniff(head: str) -> bool:
    """Whether the first line names nodes with keys and values, or with facts and their times."""
    header = header_of(head)
    if not {"node", "from_at"} <= header:
        return False
    return header.issuperset(PAIR) or bool(header & {*FACTS})


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """Rows of `node_facts`: of each record one for each node and each fact that it states.

    A fact that does not say since when holds from `--at`; without one its beginning is unknown.

    Raises
    ------
    SourceError
        Where the file has no header, no column of nodes or none of facts, or the mapping holds a
        mistake.
    """
    mapping = column_mapping(options.mapping, (*PLACES, *PAIR), GENERAL, "facts")
    delimiter = options.delimiter or mapping.general.get("delimiter", ",")
    header, records = opened_table(source, delimiter, options.columns, options.limits)
    facts = {name: name for name in FACTS if name in header and name not in mapping.absent}
    facts |= mapping.further
    places = mapping.of_file(
        source,
        header,
        (*PLACES, *PAIR),
        needed=("node",) if facts else ("node", *PAIR),
        beside=mapping.further.values(),
    )
    clock = LocalClock(options, mapping.general.get("timezone"))
    made = _made_by(places, facts, mapping)
    log = Gathered(options, clock, made)
    for record in records:
        log.take(record.line_no, record.raw.rstrip("\r\n"), record.values)
    batch = log.batch("node_facts", typed_frame("node_facts", log.rows, _Fact._fields))
    batch.notices += _notices(header, {*places.values(), *facts.values()}, log)
    return batch


def _notices(header: list[str], taken: set[str], log: Gathered) -> list[str]:
    """What was left out, and what stays unknown."""
    notices = []
    if left := [name for name in header if name and name not in taken]:
        told = ", ".join(left)[:200]
        notices.append(f"columns that are no known fact, left out (name them by --mapping): {told}")
    if n_undated := sum(row.from_at is None for row in log.rows):
        told = "facts that do not say since when, so that they weigh in nothing (pass --at)"
        notices.append(f"{told}: {n_undated:,}")
    return notices


def _made_by(
    places: Mapping[str, str], facts: Mapping[str, str], mapping: ColumnMapping
) -> Callable[[dict[str, Any] | None, Gathered], list[_Fact] | str]:
    """What makes the rows of a record."""

    def made(values: dict[str, Any] | None, log: Gathered) -> list[_Fact] | str:
        if values is None:
            raise RecordError("number of fields differs from the header")
        if is_blank(values):
            return "blank"
        found = dict.fromkeys((*PLACES, *PAIR)) | {n: values[c] for n, c in places.items()}
        nodes = expand(text_of(found["node"]) or "")
        if not nodes:
            raise RecordError("no node")
        cluster = cluster_of(found["cluster"], log.options, mapping.general.get("cluster"))
        from_at = mapping.time(found["from_at"], cluster, log.clock) or log.options.at
        to_at = mapping.time(found["to_at"], cluster, log.clock)
        if from_at is not None and to_at is not None and to_at < from_at:
            raise RecordError("ends before it begins")
        stated = {key: text_of(values[column]) for key, column in facts.items()}
        if (key := text_of(found["key"])) is not None:
            stated[key] = text_of(found["value"])
        held = {key: value for key, value in stated.items() if value is not None}
        if not held:
            return "no fact"
        log.saw(cluster, from_at, to_at)
        gpu = text_of(found["gpu"])
        return [
            _Fact(cluster, node, gpu, key, from_at, to_at, value)
            for node in nodes
            for key, value in held.items()
        ]

    return made


READER = Reader(
    "node-facts",
    "facts about nodes or GPUs as CSV or Parquet",
    export=(
        "node, gpu, from_at, to_at, and either key and value or a column a fact (driver, "
        "firmware, serial, batch, ...); other names by --mapping TOML"
    ),
    reads=(
        "facts while they hold, CSV or Parquet: `node`, `gpu`, `from_at`, `to_at` and a "
        "column a fact (`driver`, `firmware`, `vbios`, `serial`, `batch`, `gpu_model`, "
        "`rack`, `temperature_class`) or `key` and `value`; other names by `--mapping "
        "TOML`"
    ),
    fills=("node_facts",),
    place=5.2,
    options=("columns", "delimiter", "at", "mapping"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
