"""What is in this store, which files was it read from, and what could not be read?"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.answers.columns import columns
from app.answers.content import Answer, Missing, Part, Sheet, Table
from app.answers.fleet.coverage import held, record, table
from app.ask import EVERYTHING, FEW
from app.words import numbers
from app.words.cells import Column
from data.filters import Selection
from data.queries import fleet

if TYPE_CHECKING:
    from analytics.fleet.coverage import Coverage
    from app.ask import Ask
    from data.store import Store

DAMAGED = "the snapshot's checksum does not hold: restore it from a backup"
_NO_TIMES = "no record of the file has a time"
INGESTS = (
    Column("ingested_at", "Read at", "time"),
    Column("source", "Source"),
    Column("cluster", "Cluster"),
    Column("path", "File"),
    Column("rows_read", "Records", "count"),
    Column("rows_kept", "Kept", "count"),
    Column("rows_skipped", "Skipped", "count", help="Of no interest, e.g. steps of jobs."),
    Column("rows_rejected", "Rejected", "count", help="Could not be read; a row opens them."),
    Column("first_at", "First time", "time", none=_NO_TIMES),
    Column("last_at", "Last time", "time", none=_NO_TIMES),
    Column("skipped_by_reason", "Why skipped"),
    Column("notices", "Notices", help="What the reader had to assume."),
    Column("ingest_id", "Ingest"),
    Column("sha256", "SHA-256", help="Of the file's bytes as they were given."),
)
REJECTED = (
    Column("ingest_id", "Ingest"),
    Column("path", "File"),
    Column("line_no", "Line", "count"),
    *columns("reason"),
    Column("raw", "Record", help="Its first 2,000 characters."),
)
NOTHING_INGESTED = Missing(
    "ingests",
    "No file was ingested into this store.",
    "A demo store is generated. Your own records go into a store of their own:",
    ("faultline ingest sacct sacct.txt --store ./store",),
)


@dataclass(frozen=True)
class Contents:
    """What a store is."""

    schema_version: int
    snapshot: int
    published_at: str
    checksum_holds: bool
    synthetic: bool
    tables: dict[str, int]
    """Rows of each table."""
    coverage: Coverage


def contents(store: Store) -> Contents:
    """Snapshot, tables and coverage of the whole store."""
    with store.path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return Contents(
        schema_version=store.current.schema_version,
        snapshot=store.snapshot,
        published_at=store.current.published_at,
        checksum_holds=digest == store.current.sha256,
        synthetic=fleet.is_synthetic(store),
        tables=fleet.table_counts(store),
        coverage=held(store, Selection()),
    )


def answer(ask: Ask) -> Answer:
    """What is in this store?"""
    shown = ask(contents)
    missing = shown.coverage.missing
    return Answer(
        f"Snapshot {shown.snapshot}{' (synthetic)' if shown.synthetic else ''}, published "
        f"{shown.published_at}, schema {shown.schema_version}"
        + (f"; no rows of {', '.join(missing)}." if missing else "."),
        blocks=(_tables(shown), table(shown.coverage)),
        notes=() if shown.checksum_holds else (DAMAGED,),
        record={
            "schema_version": shown.schema_version,
            "snapshot": shown.snapshot,
            "published_at": shown.published_at,
            "checksum_holds": shown.checksum_holds,
            "synthetic": shown.synthetic,
            "tables": shown.tables,
            "coverage": record(shown.coverage),
        },
        sheet=Sheet(("table", "rows"), list(shown.tables.items())),
    )


def _tables(shown: Contents) -> Table:
    """Rows of the tables that have any."""
    rows = [(name, n) for name, n in shown.tables.items() if n]
    return Table(
        "tables", "Tables", (Column("table", "Table"), Column("rows", "Rows", "count")), rows
    )


def ingests(ask: Ask) -> Table | Missing:
    """What was read into the store, the newest first; a row opens its rejected records."""
    rows = ask(fleet.ingests)
    if rows.empty:
        return NOTHING_INGESTED
    shown = rows[[column.key for column in INGESTS]]
    opens = Part("Rejected rows of an ingest", rejected_of, (), ("ingest_id",))
    return Table("ingests", "Ingests", INGESTS, shown, opens=opens)


def rejected(ask: Ask) -> Table:
    """The first records that could not be read; its note says how often for which reason."""
    first, total = rejected_rows(ask, limit=FEW), int(ask(fleet.ingests)["rows_rejected"].sum())
    reasons = Counter(row[3] for row in first.values).most_common()
    note = ", ".join(f"{reason}: {numbers.count(n)}" for reason, n in reasons)
    return replace(
        first,
        note=note if len(first) == total else f"{note} (of the first {len(first):,})",
        everything=Part(first.title, rejected_rows, total=total),
    )


def rejected_rows(ask: Ask, *, limit: int = EVERYTHING) -> Table:
    """Records that could not be read, those of the newest ingest first."""
    rows = ask(fleet.rejected_rows, None, limit=limit)
    empty = "Every record of every ingest could be read."
    return Table("rejected_rows", "Rejected rows", REJECTED, rows, empty)


def rejected_of(ask: Ask, ingest_id: str, *, limit: int = EVERYTHING) -> Table:
    """Records of one ingest that could not be read."""
    rows = ask(fleet.rejected_rows, ingest_id, limit=limit)
    empty = "Every record of this ingest could be read."
    return Table("rejected", "Rejected rows of an ingest", REJECTED, rows, empty)
