"""The figures of the ledger: the waterfall, day by day, and by size, partition or account."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app import loaders
from app.components import (
    coverage_note,
    empty_state,
    figure_block,
    ledger_numbers,
    ledger_rows,
    notice,
)
from app.figures.efficiency import ledger_by_group, ledger_over_time, ledger_waterfall

if TYPE_CHECKING:
    from analytics.efficiency.goodput import GoodputLedger
    from app.components.scope import Scope
    from app.questions import Coverage

GROUPS = {"size": "size_class", "partition": "partition", "account": "account"}
"""As the address names them, and the column of the ledger."""
JOBS_ALONE = (
    "With a filter on partition, account or size only time that jobs held is shown: idle time, the "
    "queue and repairs belong to none of them."
)
WHOLE_DAYS = (
    "The ledger counts whole days of UTC: every day that the period touches counts in full."
)


def waterfall(ledger: GoodputLedger, scope: Scope) -> None:
    """From capacity to productive; a click on a bar opens its rows."""
    figure = ledger_waterfall.figure(ledger, mode=scope.mode, note=scope.note)

    def opened(bucket: str) -> None:
        ledger_rows.bucket(scope, bucket)

    frame = ledger_waterfall.frame(ledger)
    figure_block.show(figure, frame, name="ledger", scope=scope, opens=opened)
    said = [] if ledger_numbers.is_fleet(ledger) else [JOBS_ALONE]
    chosen = scope.selection
    if any(at is not None and at != pd.Timestamp(at).floor("D")
           for at in (chosen.from_at, chosen.to_at)):  # fmt: skip
        said.append(WHOLE_DAYS)
    notice.notes(said)


def over_time(held: Coverage, scope: Scope) -> None:
    """The buckets day by day, gaps hatched."""
    by_day = loaders.ledger_by(scope.selection, "day")
    days = pd.to_datetime(by_day["day"], utc=True)
    chosen = scope.selection
    first, last = days.min(), days.max() + coverage_note.DAY
    if chosen.from_at is not None and chosen.to_at is not None:
        first, last = coverage_note.span(held, scope)
    jobs = held.days[held.days["source"].eq("jobs")]
    figure = ledger_over_time.figure(
        by_day,
        span=(first, last),
        recorded=set(pd.to_datetime(jobs["day"], utc=True)),
        mode=scope.mode,
        note=scope.note,
    )
    figure_block.show(figure, by_day, name="ledger_by_day", scope=scope)


def by_group(scope: Scope) -> None:
    """Losses by what the reader chooses; the choice lives in the address."""
    chosen = st.segmented_control(
        "Losses by", [*GROUPS], default="size", required=True, key="group", bind="query-params"
    )
    by = GROUPS[str(chosen)]
    frame = ledger_by_group.frame(loaders.ledger_by(scope.selection, by), by)
    if frame.empty:
        empty_state.nothing_ran(scope.filters)
        return
    figure = ledger_by_group.figure(frame, by=by, mode=scope.mode, note=scope.note)
    figure_block.show(figure, frame, name=f"ledger_by_{by}", scope=scope)
