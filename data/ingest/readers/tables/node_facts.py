"""Facts about nodes and GPUs while they hold: driver, firmware, serial, batch. CSV or Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from data.ingest.formats.header import header_of
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.tables.mapped_table import HOST_NAMES, Column, Layout, Table
from data.ingest.rows import Gathered, typed_frame

if TYPE_CHECKING:
    from datetime import datetime

    import duckdb

    from data.ingest.readers.tables.mapped_table import Row


LAYOUT = Layout(
    "node_facts",
    (
        Column("node", "nodes", needed=True, also=HOST_NAMES),
        Column("gpu"),
        Column("cluster"),
        Column("from_at", "time", also=("from", "since", "installed")),
        Column("to_at", "time", also=("to", "until", "removed")),
        Column("key"),
        Column("value"),
    ),
    facts=(
        *("serial", "driver", "firmware", "vbios", "batch", "gpu_model", "rack"),
        "temperature_class",
    ),
    pair=("key", "value"),
    sections={"facts": None},
    naming=("facts",),
)


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
    return header.issuperset(LAYOUT.pair) or bool(header & {*LAYOUT.facts})


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """Rows of `node_facts`: of each record one for each node and each fact that it states.

    A fact that does not say since when holds from `--at`; without one its beginning is unknown.

    Raises
    ------
    SourceError
        Where the file has no header, no column of nodes or none of facts, or the mapping holds a
        mistake.
    """
    table = Table(source, options, LAYOUT)
    log = table.gathered(_made)
    batch = log.batch("node_facts", typed_frame("node_facts", log.rows, _Fact._fields))
    taken = {*table.facts.values(), *(name for names in table.columns.values() for name in names)}
    if left := [name for name in table.header if name and name not in taken]:
        told = "columns that are no known fact, left out (name them by --mapping)"
        batch.notices.append(f"{told}: {', '.join(left)[:200]}")
    if n_undated := sum(row.from_at is None for row in log.rows):
        told = "facts that do not say since when, so that they weigh in nothing (pass --at)"
        batch.notices.append(f"{told}: {n_undated:,}")
    return batch


def _made(row: Row, log: Gathered) -> list[_Fact] | str:
    """The rows of a record."""
    from_at, to_at = row.values["from_at"] or log.options.at, row.values["to_at"]
    if from_at is not None and to_at is not None and to_at < from_at:
        raise RecordError("ends before it begins")
    stated = dict(row.facts)
    if (key := row.values["key"]) is not None and (value := row.values["value"]) is not None:
        stated[key] = value
    if not stated:
        return "no fact"
    log.saw(row.cluster, from_at, to_at)
    gpu = row.values["gpu"]
    return [
        _Fact(row.cluster, node, gpu, key, from_at, to_at, value)
        for node in row.values["node"]
        for key, value in stated.items()
    ]


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
    script="cat facts.csv  # node,gpu,from_at,to_at,driver,firmware,serial,batch",
    example="facts.csv",
    fills=("node_facts",),
    place=5.2,
    options=("columns", "delimiter", "at", "mapping"),
    cluster_by_host=True,
    layout=LAYOUT,
    sniff=sniff,
    read=read,
)
