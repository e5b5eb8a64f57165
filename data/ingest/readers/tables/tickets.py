"""Repair tickets: what was wrong with which node, what was done and when. CSV or Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.tables.mapped_table import HOST_NAMES, Column, Layout, Table
from data.ingest.rows import Gathered, occurrence_keys, typed_frame

if TYPE_CHECKING:
    from datetime import datetime

    import duckdb

    from data.ingest.readers.tables.mapped_table import Row


LAYOUT = Layout(
    "tickets",
    (
        Column("ticket_id", also=("ticket", "id", "number", "key", "issue", "case")),
        Column("node", "nodes", also=HOST_NAMES),
        Column("cluster"),
        Column(
            "opened_at",
            "time",
            needed=True,
            also=("opened", "created", "createdat", "open", "reported"),
        ),
        Column("closed_at", "time", also=("closed", "resolved", "resolvedat", "close")),
        Column("component", also=("part", "device")),
        Column("action", also=("resolution", "fix", "repair")),
        Column("vendor"),
        Column("serial"),
        Column("text", also=("description", "summary", "comment", "details", "message")),
    ),
    known_by=frozenset({"ticket_id", "opened_at"}),
)


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


def read(source: Source, options: Options, _: duckdb.DuckDBPyConnection) -> Batch:
    """Rows of `tickets`; a ticket of several nodes has one for each, its number with the node.

    Raises
    ------
    SourceError
        Where the file has no header or no column of openings, or the mapping holds a mistake.
    """
    log = Table(source, options, LAYOUT).gathered(_made)
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


def _made(row: Row, log: Gathered) -> list[_Ticket]:
    """The rows of a record."""
    ticket = _Ticket(**row.values | {"cluster": row.cluster, "node": None})
    if ticket.closed_at is not None and ticket.closed_at < ticket.opened_at:
        raise RecordError("closed before it was opened")
    nodes = row.values["node"] or []
    log.saw(row.cluster, ticket.opened_at, ticket.closed_at)
    if len(nodes) < 2 or ticket.ticket_id is None:
        return [ticket._replace(node=node) for node in nodes] or [ticket]
    return [ticket._replace(node=node, ticket_id=f"{ticket.ticket_id}/{node}") for node in nodes]


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
    script=(
        "cat tickets.csv  # ticket_id,node,opened_at,closed_at,component,action,vendor,serial,text"
    ),
    example="tickets.csv",
    fills=("tickets",),
    place=5.1,
    options=("columns", "delimiter", "mapping"),
    cluster_by_host=True,
    layout=LAYOUT,
    sniff=LAYOUT.sniff,
    read=read,
    lacks={
        "tickets": {
            ("closed_at",): "when repairs ended stays unknown",
            ("component", "text"): "what was repaired stays unknown",
        }
    },
)
