"""What a report rests on: days with records, and what was not collected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures import numbers
from app.reports.cells import Column
from app.reports.charts import coverage as chart
from app.reports.content import Section, Table

if TYPE_CHECKING:
    from datetime import datetime

    from app.questions import Coverage

COLUMNS = (
    Column("source", "Source"),
    Column("first_day", "First day", "day"),
    Column("last_day", "Last day", "day"),
    Column("records", "Records", "count"),
    Column("days_without_records", "Days without records", "count"),
)


def section(
    coverage: Coverage, from_at: datetime | None = None, to_at: datetime | None = None
) -> Section:
    """Which source covers which days, as picture and table."""
    drawn = chart.chart(coverage, from_at, to_at)
    blocks = () if drawn is None else (drawn,)
    return Section("What this rests on", (*blocks, table(coverage)), sentences(coverage))


def table(coverage: Coverage) -> Table:
    """Which source covers which days."""
    rows = tuple(
        (f"{row.cluster}: {row.source}", row.first_at, row.last_at, row.n_rows,
         row.days_without_rows)
        for row in coverage.sources.itertuples()
    )  # fmt: skip
    return Table("coverage", "Coverage", COLUMNS, rows, "Nothing was read.")


def sentences(coverage: Coverage) -> tuple[str, ...]:
    """What must be known before a gap is read as quiet."""
    said = []
    gaps = int(coverage.sources["days_without_rows"].sum())
    if gaps:
        said.append(
            f"{numbers.counted(gaps, 'day')} between first and last record have none of their "
            "source: nothing says whether they were quiet or not collected."
        )
    if len(coverage.undated):
        undated = int(coverage.undated["n_rows"].sum())
        said.append(f"{numbers.counted(undated, 'record')} without a time are not in any rate.")
    return tuple(said)
