"""What was read into the store, what could not be, and until when was each source collected?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from app.answers.columns import columns
from app.answers.content import Answer, Missing, Part, Table
from app.answers.described import Rows, field
from app.ask import EVERYTHING
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_fleet
from data.publish import undoable
from data.queries import collected, fleet
from data.snapshots import damaged_notes, kept_snapshots

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd

    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

_NO_TIMES = "no record of the file has a time"
INGESTS = (
    Column("ingested_at", "Read at", "time"),
    Column("ingest_id", "Ingest"),
    Column("source", "Source"),
    Column("cluster", "Cluster"),
    Column("path", "File"),
    Column("rows_read", "Records", "count"),
    Column("rows_kept", "Kept", "count"),
    Column("rows_skipped", "Skipped", "count", help=of_fleet.SKIPPED.definition),
    Column("rows_rejected", "Rejected", "count", help=of_fleet.REJECTED.definition),
    Column("brought", "Brought", help=of_fleet.BROUGHT.definition),
    Column("undoable", "Undoable", "flag", help=of_fleet.UNDOABLE.definition),
    Column("first_at", "First time", "time", none=_NO_TIMES),
    Column("last_at", "Last time", "time", none=_NO_TIMES),
    Column("zones", "Zones", help=of_fleet.ZONES.definition),
    Column("skipped_by_reason", "Why skipped"),
    Column("notices", "Notices", help=of_fleet.NOTICES.definition),
    Column(
        "command", "Command", help=of_fleet.READ_AGAIN.definition, none="uploaded, or not noted"
    ),
    Column("sha256", "SHA-256", help=of_fleet.SHA256.definition),
)
LISTED = ("ingest_id", "ingested_at", "source", "cluster", "path", "rows_kept", "rows_rejected",
          "brought", "undoable")  # fmt: skip
"""Columns that a terminal has room for."""
REJECTED = (
    Column("ingest_id", "Ingest"),
    Column("path", "File"),
    Column("line_no", "Line", "count"),
    *columns("reason"),
    Column("raw", "Record", help=of_fleet.RAW_RECORD.definition),
)
SNAPSHOTS = (
    Column("snapshot", "Snapshot", "count"),
    field(
        "published_at", "Published", "time", lambda row: datetime.fromisoformat(row["published_at"])
    ),
    Column("bytes", "Bytes", "count", help=of_fleet.SNAPSHOT_BYTES.definition),
    Column("published", "Present one", "flag"),
)
_JSON = ("brought", "zones", "skipped_by_reason", "notices")
"""Columns that hold JSON."""
NOTHING_INGESTED = Missing(
    "ingests",
    "No file was ingested into this store.",
    "A demo store is generated. Your own records go into a store of their own:",
    ("faultline ingest sacct sacct.txt",),
)
STALE_HOURS = 24.0
"""Age from which it is told that nothing new came."""
COLLECTED = (
    Column("source", "Source"),
    Column("cluster", "Cluster"),
    Column("collected_until", "Collected until", "time", none="nothing was had of it"),
    Column("age_hours", "Age", "hours", "h", help=of_fleet.AGE.definition),
    Column("asked_at", "Last asked", "time"),
    Column("n_answers", "Answers", "count", help=of_fleet.ANSWERS.definition),
    Column("n_quiet", "Without a record", "count", help=of_fleet.QUIET_ANSWERS.definition),
    Column("error", "Last error", none="none", help=of_fleet.LAST_ERROR.definition),
)
NOTHING_COLLECTED = Missing(
    "collected",
    "No source is collected by itself.",
    "On a host of the cluster, once an hour by cron or systemd (docs/collect.md):",
    ("faultline collect --wait 600",),
)


def reversible(store: Store) -> frozenset[str]:
    """Ids of the ingests that can be taken back."""
    return frozenset(undoable(store.root))


def held(ask: Ask) -> pd.DataFrame:
    """The ingests, newest first, and whether each can be taken back."""
    rows = ask(fleet.ingests)
    return rows.assign(undoable=rows["ingest_id"].isin(ask(reversible)))


def table(ask: Ask) -> Table | Missing:
    """What was read into the store, the newest first; a row opens its rejected records."""
    rows = held(ask)
    if rows.empty:
        return NOTHING_INGESTED
    shown = rows[[column.key for column in INGESTS]].copy()
    for name in ("brought", "zones"):
        shown[name] = [_told(text) for text in shown[name]]
    opens = Part("Rejected rows of an ingest", rejected_of, (), ("ingest_id",))
    return Table("ingests", "Ingests", INGESTS, shown, opens=opens)


def answer(ask: Ask) -> Answer:
    """What was read into the store, what each brought, and which can be taken back?"""
    shown = table(ask)
    if isinstance(shown, Missing):
        return Answer(shown.finding, record=[])
    rows = held(ask)
    n_undoable = int(rows["undoable"].sum())
    chosen = tuple(column for column in INGESTS if column.key in LISTED)
    return Answer(
        f"{numbers.counted(len(rows), 'ingest')}, of which {numbers.count(n_undoable)} can be "
        "taken back by `faultline rollback ID`.",
        blocks=(Table("ingests", "Ingests", chosen, shown.rows),),
        record=[
            {
                str(name): json.loads(value) if name in _JSON and isinstance(value, str) else value
                for name, value in row.items()
            }
            for row in rows.to_dict("records")
        ],
        sheet=rows,
    )


def _told(text: object) -> str | None:
    """A JSON object in words: `jobs 1,200, job_nodes 2,400`; None where nothing is noted."""
    if not isinstance(text, str):
        return None
    values = json.loads(text).items()
    return ", ".join(
        f"{name} {numbers.count(value) if isinstance(value, int) else value or 'UTC (not stated)'}"
        for name, value in values
    )


@dataclass(frozen=True)
class Snapshots:
    """The snapshots on disk."""

    rows: tuple[dict[str, Any], ...]
    """snapshot, published_at, bytes, published; the newest first."""
    damaged: tuple[str, ...] = ()
    """What is told of those of which the note is damaged."""

    @property
    def earlier_bytes(self) -> int:
        """Bytes of all but the present one."""
        return sum(row["bytes"] for row in self.rows if not row["published"])


def snapshots(store: Store) -> Snapshots:
    """What one can go back to, and what it takes on disk?"""
    return Snapshots(
        tuple(
            {
                "snapshot": kept.current.snapshot,
                "published_at": kept.current.published_at,
                "bytes": kept.n_bytes,
                "published": kept.current.snapshot == store.snapshot,
            }
            for kept in reversed(kept_snapshots(store.root))
        ),
        damaged_notes(store.root),
    )


def snapshots_table(shown: Snapshots) -> Table:
    """The snapshots on disk, the newest first."""
    note = (
        f"Earlier ones take {numbers.count(round(shown.earlier_bytes / 1e6))} MB on disk; "
        "keep_snapshots of [retention] in site.toml says how many stay; faultline rollback --to "
        "N goes back to one."
    )
    return Rows(SNAPSHOTS, shown.rows).table("snapshots", "Snapshots", note=note)


def forgotten_notes(forgotten: Mapping[str, datetime]) -> Iterator[str]:
    """Which days have no record because a site keeps them no longer."""
    for table, before_at in forgotten.items():
        yield (
            f"Rows of {table} before {numbers.day(before_at)} (UTC) were removed by the site's "
            "retention: days before that are forgotten, which is not the same as not collected."
        )


@dataclass(frozen=True)
class Kept:
    """Records that could not be read."""

    n_rows: int
    n_kept: int
    """Of those the ones that are kept with their text."""
    reasons: list[tuple[str, int]]
    """Why, and how many of the kept ones; most first."""


def kept(store: Store) -> Kept:
    """How many records could not be read, and why?"""
    reasons = fleet.rejected_reasons(store)
    n_rows = int(fleet.ingests(store)["rows_rejected"].sum())
    return Kept(n_rows, sum(n for _, n in reasons), reasons)


@dataclass(frozen=True)
class Wanted:
    """Which rejected records a reader wants."""

    reason: str | None = None
    text: str = ""
    """What stands in the record or the name of its file."""


def matching(store: Store, wanted: Wanted) -> int:
    """How many of the kept ones are like that?"""
    return fleet.rejected_count(store, wanted.reason, wanted.text)


def rejected(ask: Ask, wanted: Wanted, *, limit: int = EVERYTHING, offset: int = 0) -> Table:
    """A page of the records that could not be read, those of the newest ingest first."""
    reason, text = wanted.reason, wanted.text
    rows = ask(fleet.rejected_rows, None, limit=limit, reason=reason, text=text, offset=offset)
    empty = "No rejected record is like that."
    if wanted == Wanted():
        empty = "Every record of every ingest could be read."
    everything = Part("Rejected rows", rejected, (wanted,), total=ask(matching, wanted))
    return Table("rejected_rows", "Rejected rows", REJECTED, rows, empty, everything=everything)


def rejected_of(ask: Ask, ingest_id: str, *, limit: int = EVERYTHING) -> Table:
    """Records of one ingest that could not be read."""
    rows = ask(fleet.rejected_rows, ingest_id, limit=limit)
    empty = "Every record of this ingest could be read."
    return Table("rejected", "Rejected rows of an ingest", REJECTED, rows, empty)


def collected_block(ask: Ask, selection: Selection, now: datetime) -> Table | Missing:
    """Until when each source was collected."""
    rows = ask(collected.until, selection)
    return NOTHING_COLLECTED if rows.empty else collected_table(rows, now)


def collected_table(rows: pd.DataFrame, now: datetime) -> Table:
    """A row a source and cluster, with the age of what it brought last."""
    keys = [column.key for column in COLLECTED]
    return Table("collected", "Collected until", COLLECTED, _aged(rows, now)[keys])


def collected_notes(rows: pd.DataFrame, now: datetime) -> Iterator[str]:
    """Sources of which nothing new comes, and why."""
    for row in _aged(rows, now).to_dict("records"):
        cluster = row["cluster"] if isinstance(row["cluster"], str) else "cluster unknown"
        name = f"{row['source']} ({cluster})"
        ago = numbers.duration(row["age_hours"])
        until = f"collected until {ago} ago" if row["age_hours"] >= 0 else "never collected"
        if isinstance(row["error"], str):
            yield f"{name}: {until}; the last attempt failed: {row['error']}"
        elif row["age_hours"] >= STALE_HOURS:
            yield f"{name}: {until}: does `faultline collect` still run?"


def _aged(rows: pd.DataFrame, now: datetime) -> pd.DataFrame:
    age = now - rows["collected_until"]
    return rows.assign(age_hours=age.dt.total_seconds() / 3600.0)
