"""Repair tickets: what was wrong with which node, what was done and when. CSV or Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from data.hostlist import expand
from data.ingest.formats.header import header_of
from data.ingest.formats.tabular import opened_table
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.tables.cells import cluster_of, column_mapping, is_blank, text_of
from data.ingest.readers.tables.node_inventory import GENERAL
from data.ingest.rows import Gathered, LocalClock, occurrence_keys, typed_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    import duckdb

    from data.ingest.readers.tables.cells import ColumnMapping


_TEXTS = ("component", "action", "vendor", "serial", "text")
COLUMNS = ("ticket_id", "node", "cluster", "opened_at", "closed_at", *_TEXTS)


class _Ticket(NamedTuple):
    cluster: str
    ticket_id: str | None
    node: str | None
    opened_at: datetime
    closed_at: datetime | None
    component: str | None
    action: str | None
    vendor: str | None
    serial: str | None
    text: str | None


_LASTING = ("cluster", "node", "opened_at", "component")
"""What tells tickets without numbers apart: it stays when a ticket is closed."""


def sniff(head: str) -> bool:
    """Whether the first line names the columns ticket_id and opened_at."""
    header = header_of(head)
    return {"ticket_id", "opened_at"} <= header


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """Rows of `tickets`; a ticket of several nodes has one for each, its number with the node.

    Raises
    ------
    SourceError
        Where the file has no header or no column of openings, or the mapping holds a mistake.
    """
    mapping = column_mapping(options.mapping, COLUMNS, GENERAL)
    delimiter = options.delimiter or mapping.general.get("delimiter", ",")
    header, records = opened_table(source, delimiter, options.columns, options.limits)
    columns = mapping.of_file(source, header, COLUMNS, needed=("opened_at",))
    clock = LocalClock(options, mapping.general.get("timezone"))
    log = Gathered(options, clock, _made_by(columns, mapping))
    for record in records:
        log.take(record.line_no, record.raw.rstrip("\r\n"), record.values)
    frame = typed_frame("tickets", log.rows, _Ticket._fields)
    unnumbered = frame["ticket_id"].isna()
    if unnumbered.any():
        keys = occurrence_keys(frame[unnumbered], _LASTING)
        frame.loc[unnumbered, "ticket_id"] = pd.array(keys, dtype="string")
    batch = log.batch("tickets", frame)
    told = {
        "tickets without a number, told apart by node, opening and component": unnumbered,
        "tickets kept that name no node, it stays unknown": frame["node"].isna(),
    }
    batch.notices += [f"{text}: {rows.sum():,}" for text, rows in told.items() if rows.any()]
    return batch


def _made_by(
    columns: Mapping[str, str], mapping: ColumnMapping
) -> Callable[[dict[str, Any] | None, Gathered], list[_Ticket] | str]:
    """What makes the rows of a record."""

    def made(values: dict[str, Any] | None, log: Gathered) -> list[_Ticket] | str:
        if values is None:
            raise RecordError("number of fields differs from the header")
        if is_blank(values):
            return "blank"
        found = dict.fromkeys(COLUMNS) | {ours: values[column] for ours, column in columns.items()}
        cluster = cluster_of(found["cluster"], log.options, mapping.general.get("cluster"))
        opened_at = mapping.time(found["opened_at"], cluster, log.clock)
        closed_at = mapping.time(found["closed_at"], cluster, log.clock)
        if opened_at is None:
            raise RecordError("no opened_at")
        if closed_at is not None and closed_at < opened_at:
            raise RecordError("closed before it was opened")
        number = text_of(found["ticket_id"])
        nodes = expand(text_of(found["node"]) or "")
        log.saw(cluster, opened_at, closed_at)
        texts = {name: text_of(found[name]) for name in _TEXTS}
        ticket = _Ticket(cluster, number, None, opened_at, closed_at, **texts)
        if len(nodes) < 2 or number is None:
            return [ticket._replace(node=node) for node in nodes] or [ticket]
        return [ticket._replace(node=node, ticket_id=f"{number}/{node}") for node in nodes]

    return made


READER = Reader(
    "tickets",
    "repair tickets as CSV or Parquet",
    export=(
        "ticket_id, node, opened_at, closed_at, component, action, vendor, serial, text; "
        "other names of columns by --mapping TOML"
    ),
    reads=(
        "repair tickets, CSV or Parquet: `opened_at` and what else is known (`ticket_id`,"
        " `node`, `closed_at`, `component`, `action`, `vendor`, `serial`, `text`); other "
        "names by `--mapping TOML`"
    ),
    fills=("tickets",),
    place=5.1,
    options=("columns", "delimiter", "mapping"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
    lacks={
        "tickets": {
            ("closed_at",): "when repairs ended stays unknown",
            ("component", "text"): "what was repaired stays unknown",
        }
    },
)
