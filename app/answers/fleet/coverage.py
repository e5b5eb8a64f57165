"""What does this rest on, what is missing, and what is in the store?"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from analytics.fleet.coverage import Coverage, coverage
from app.answers.content import Answer, Chart, Missing, Number, Part, Table, counted
from app.answers.described import Rows, field
from app.answers.fleet import clocks, ingests, inventory, names
from app.ask import EVERYTHING
from app.words import numbers, terms
from app.words.cells import Column
from app.words.glossary import of_fleet
from app.words.plain import in_a_row
from data.filters import Selection
from data.queries import collected, fleet
from data.sandbox import landlock_missing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    import pandas as pd

    from analytics.fleet.coverage import Coverage
    from analytics.reliability.sight import Sight
    from app.answers.fleet.clocks import Contradiction
    from app.answers.fleet.ingests import Snapshots
    from app.answers.fleet.inventory import Known
    from app.answers.fleet.names import Names
    from app.ask import Ask
    from data.queries.fleet import Homeless
    from data.store import Store

    State = Literal["complete", "gaps", "blind"]


DESCRIBED = (
    field("cluster", "Cluster"),
    field("source", "Source"),
    field("first_day", "First day (UTC)", "day", "first_at", term=of_fleet.FIRST_DAY),
    field("last_day", "Last day (UTC)", "day", "last_at", term=of_fleet.LAST_DAY),
    field("records", "Records", "count", "n_rows"),
    field("days_with_records", "Days with records", "count", "days_with_rows"),
    field("quiet_days", "Quiet days", "count", "days_quiet", term=of_fleet.QUIET_DAYS),
    field(
        "days_without_records",
        "Days missing between",
        "count",
        "days_without_rows",
        term=of_fleet.DAYS_NOT_KNOWN,
    ),
)
TABLES = Column("table", "Table"), Column("rows", "Rows", "count")


def held(store: Store, selection: Selection) -> Coverage:
    """Which source covers which days of the selection's clusters and period."""
    return coverage(
        fleet.coverage_days(store, selection),
        fleet.undated(store, selection),
        expected=fleet.SOURCES,
        collected=collected.collected_days(store, selection),
        forgotten=fleet.forgotten(store),
    )


def answer(ask: Ask, selection: Selection) -> Answer:
    """Which source covers which days, and what is missing?"""
    shown, of_cluster = ask(held, selection), Selection(selection.cluster)
    return Answer(
        sentence(shown),
        (number(shown, selection),),
        (chart(shown, selection), table(shown)),
        (
            *_notes(shown),
            *ingests.forgotten_notes(ask(fleet.forgotten)),
            *clocks.notes(ask(clocks.contradictions, of_cluster)),
            *names.notes(ask(names.names, selection)),
            *names.without_cluster_notes(ask(names.without_cluster)),
            *inventory.notes(ask(inventory.known, of_cluster)),
        ),
        (terms.COVERAGE,),
        record=record(shown),
        sheet=shown.sources,
    )


def sentence(shown: Coverage) -> str:
    """How many sources have records, and which have none."""
    present = shown.with_records
    if not present:
        return "No source has a record in this selection."
    n_sources = len(present) + len(shown.silent) + len(shown.missing)
    text = f"{len(present)} of {numbers.counted(n_sources, 'source')} have records in this period"
    if shown.silent:
        was = "were" if len(shown.silent) > 1 else "was"
        text += f"; {in_a_row(shown.silent)} {was} collected, without a record"
    if not shown.missing:
        return f"{text}."
    has = "have" if len(shown.missing) > 1 else "has"
    return f"{text}; {in_a_row(shown.missing)} {has} none."


def basis(shown: Coverage, selection: Selection) -> str:
    """Sources with records on every day, then those with gaps, then those without any."""
    sources = shown.by_source(selection.from_at, selection.to_at)
    days = numbers.counted(sources[0].of, "day") if sources else ""
    complete = ", ".join(source.source for source in sources if source.days == source.of)
    partly = ", ".join(
        f"{source.source} on {source.days:,}" for source in sources if source.days < source.of
    )
    parts = [f"{complete} on all {days}"] if complete else []
    parts += [f"{partly} of {days}"] if partly else []
    parts += [f"none of {', '.join(shown.missing)}"] if shown.missing else []
    return f"Records: {'; '.join(parts)}."


def state(shown: Coverage, selection: Selection, seen: Sight) -> State:
    """Whether every source has a record of every day, some lack days, or failures went unseen."""
    if seen.none:
        return "blind"
    sources = shown.by_source(selection.from_at, selection.to_at)
    whole = all(source.days == source.of for source in sources) and not shown.silent
    return "complete" if whole and seen.seen == seen.days else "gaps"


def number(shown: Coverage, selection: Selection) -> Number:
    """Sources that have a record in the period, of all that a site can have."""
    present = shown.by_source(selection.from_at, selection.to_at)
    first = [f"{source.source} on {source.days:,} of {source.of:,} days" for source in present[:1]]
    return counted(
        terms.COVERAGE,
        len(present),
        of=len(present) + len(shown.silent) + len(shown.missing),
        noun="sources",
        basis="".join(first) or "nothing in this period",
        opens=Part("Coverage by source", sources, (selection,)),
    )


def sources(ask: Ask, selection: Selection, *, limit: int = EVERYTHING) -> Table:
    """First and last record, days covered and days missing of every source."""
    shown = table(ask(held, selection))
    return replace(shown, key="sources", rows=shown.rows[:limit])


def table(shown: Coverage) -> Table:
    """Which source of which cluster covers which days."""
    rows = Rows(DESCRIBED, list(shown.sources.itertuples()))
    return rows.table("coverage", "Coverage", empty="Nothing was read.")


def chart(shown: Coverage, selection: Selection) -> Chart | Missing:
    """Days with and without records of each source."""
    if shown.days.empty:
        finding = "No source has a record in this selection."
        return Missing("coverage", finding, "Choose a longer period.")
    n_sources = len(shown.sources) + len(shown.missing)
    forgotten = ", outlined where retention removed them" if shown.forgotten else ""
    return Chart(
        "fleet.coverage",
        "Which days does each source cover?",
        f"Days with records of {numbers.counted(n_sources, 'source')}; hatched where there are "
        f"none, before the first and after the last too{forgotten}. The table counts those "
        "between.",
        (shown, *shown.span(selection.from_at, selection.to_at)),
        rows=shown.days,
    )


def record(shown: Coverage) -> dict[str, object]:
    """The JSON of the command."""
    return {"sources": shown.sources, "missing": shown.missing, "undated": shown.undated}


def _notes(shown: Coverage) -> Iterator[str]:
    """What must be known before a gap is read as quiet."""
    if shown.n_gaps:
        yield (
            f"{numbers.counted(shown.n_gaps, 'day')} between first and last record have none of "
            "their source: nothing says whether they were quiet or not collected. `faultline "
            "collect` would know."
        )
    for row in shown.undated.to_dict("records"):
        yield (
            f"{numbers.counted(row['n_rows'], 'record')} of {row['source']} ({row['cluster']}) "
            "without a time count nowhere."
        )


_TOLD_APART = ("names", "homeless", "contradictions", "collected", "kept", "nodes")
DAMAGED = "the snapshot's checksum does not hold: restore it from a backup"


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
    names: Names
    homeless: tuple[Homeless, ...]
    contradictions: list[Contradiction]
    """Sources whose clock or zone contradicts another's."""
    collected: pd.DataFrame
    """Until when each source was collected (`data.queries.collected.until`)."""
    kept: Snapshots
    """What one can go back to."""
    forgotten: dict[str, datetime]
    """Table -> the time before which its rows were removed by retention."""
    nodes: Known
    """What is known of nodes and their GPUs."""


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
        names=names.names(store, Selection()),
        homeless=names.without_cluster(store),
        contradictions=clocks.contradictions(store, Selection()),
        collected=collected.until(store, Selection()),
        kept=ingests.snapshots(store),
        forgotten=fleet.forgotten(store),
        nodes=inventory.known(store, Selection()),
    )


def of_store(ask: Ask, now: datetime) -> Answer:
    """What is in this store, and how old is it?"""
    shown = ask(contents)
    missing, unguarded = shown.coverage.missing, landlock_missing()
    latest = shown.collected.groupby("source")["collected_until"].max()
    tables = [{"table": name, "rows": n} for name, n in shown.tables.items()]
    published = numbers.moment(datetime.fromisoformat(shown.published_at), "UTC")
    return Answer(
        f"Snapshot {shown.snapshot}{' (synthetic)' if shown.synthetic else ''}, published "
        f"{published}, schema {shown.schema_version}"
        + (f"; no rows of {', '.join(missing)}." if missing else "."),
        blocks=(
            Rows(TABLES, [row for row in tables if row["rows"]]).table("tables", "Tables"),
            table(shown.coverage),
            *([] if shown.collected.empty else [ingests.collected_table(shown.collected, now)]),
            names.table(shown.names),
            *([names.without_cluster_table(shown.homeless)] if shown.homeless else []),
            ingests.snapshots_table(shown.kept),
        ),
        notes=(
            *(() if shown.checksum_holds else (DAMAGED,)),
            *shown.kept.damaged,
            *ingests.forgotten_notes(shown.forgotten),
            *clocks.notes(shown.contradictions),
            *names.notes(shown.names),
            *names.without_cluster_notes(shown.homeless),
            *ingests.collected_notes(shown.collected, now),
            *inventory.notes(shown.nodes),
            *(() if unguarded is None else (unguarded,)),
        ),
        record={
            **{key: value for key, value in vars(shown).items() if key not in _TOLD_APART},
            "coverage": record(shown.coverage),
            "snapshots": shown.kept.rows,
            "earlier_snapshots_bytes": shown.kept.earlier_bytes,
            "clock_offsets": clocks.rows(shown.contradictions).records(),
            **names.record(shown.names),
            "records_without_cluster": [records._asdict() for records in shown.homeless],
            "collected_until": latest.to_dict(),
            "collected": shown.collected,
            **inventory.record(shown.nodes),
            "landlock": unguarded is None,
        },
        sheet=Rows(TABLES, tables).sheet(),
    )


def node_names(ask: Ask, selection: Selection) -> Table:
    """Names of nodes other than their own, and hosts that only logs name."""
    return names.table(ask(names.names, selection))
