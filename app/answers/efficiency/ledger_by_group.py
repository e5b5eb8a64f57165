"""How do the buckets of the ledger change over time, and differ by size, partition and account?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from analytics.efficiency.buckets import (
    BUCKETS,
    DAY,
    HoursOverTime,
    LossesByGroup,
    bucket_columns,
    gpu_hours_by,
    hours_over_time,
    losses_by_group,
)
from app.answers.content import Answer, Chart, Missing, Table
from app.answers.efficiency.ledger import NOTHING_RAN
from app.words.cells import Column
from data.queries import efficiency, fleet

if TYPE_CHECKING:
    from analytics.frames import LedgerGroup
    from app.ask import Ask
    from app.words.cells import Kind
    from data.filters import Selection
    from data.store import Store

TITLES: dict[LedgerGroup, str] = {
    "day": "Day (UTC)", "partition": "Partition", "account": "Account",
    "size_class": "Job size (GPUs)",
}  # fmt: skip
NAMES: dict[str, LedgerGroup] = {
    "size": "size_class", "partition": "partition", "account": "account",
}  # fmt: skip
"""What an address calls the groups of jobs."""
WORDS: dict[LedgerGroup, str] = {
    "day": "day", "partition": "partition", "account": "account", "size_class": "size",
}  # fmt: skip


def measured(store: Store, selection: Selection, by: LedgerGroup) -> pd.DataFrame:
    """GPU-hours of each bucket by day, partition, account or size.

    Raises
    ------
    LedgerMissingError
        Where the ledger of these records is not built.
    """
    efficiency.ledger_notes(store)
    return gpu_hours_by(efficiency.ledger_rows(store, selection, (by,)), by)


def measured_over_time(store: Store, selection: Selection) -> HoursOverTime:
    """GPU-hours per day of each bucket, over the period or, without one, over the ledger's days."""
    by_day = measured(store, selection, "day")
    days = pd.to_datetime(by_day["day"], utc=True)
    first, last = days.min(), days.max() + DAY
    if selection.from_at is not None and selection.to_at is not None:
        first = pd.Timestamp(selection.from_at).floor("D")
        last = pd.Timestamp(selection.to_at).ceil("D")
    recorded = fleet.coverage_days(store, selection)
    jobs = recorded.loc[recorded["source"].eq("jobs"), "day"]
    return hours_over_time(by_day, span=(first, last), recorded=set(pd.to_datetime(jobs, utc=True)))


def answer(ask: Ask, selection: Selection, by: LedgerGroup) -> Answer:
    """GPU-hours of each bucket, a row for each group; 0 where a group has none of one."""
    rows = ask(measured, selection, by)
    wide = bucket_columns(rows, by)
    return Answer(
        "",
        blocks=(chart(ask, selection, by), _table(wide, by)),
        record=wide,
        sheet=wide,
    )


def chart(ask: Ask, selection: Selection, by: LedgerGroup) -> Chart | Missing:
    """Days on top of one another; of other groups, how much of their GPU-hours was lost to what."""
    if by == "day":
        return Chart(
            "efficiency.ledger_over_time",
            "Where did GPU-hours go, day by day?",
            "GPU-hours per day of each bucket; days without a record of a job are hatched.",
            (ask(measured_over_time, selection),),
            "ledger_by_day",
        )
    losses: LossesByGroup = losses_by_group(ask(measured, selection, by), by)
    if losses.rows.empty:
        return Missing(f"ledger_by_{by}", *NOTHING_RAN)
    return Chart(
        "efficiency.ledger_by_group",
        f"How much of their GPU-hours was not productive, by {WORDS[by]}?",
        "The share of each bucket in the GPU-hours that the jobs of a group held.",
        (losses,),
        f"ledger_by_{by}",
    )


def _table(wide: pd.DataFrame, by: LedgerGroup) -> Table:
    """The groups, one column for each bucket."""
    kind: Kind = "day" if by == "day" else "text"
    buckets = (name for name in BUCKETS if name in wide)
    return Table(
        f"gpu_hours_by_{by}",
        f"GPU-hours by {WORDS[by]}",
        (
            Column(by, TITLES[by], kind, none="none stated"),
            *(Column(name, BUCKETS[name].title, "number") for name in buckets),
        ),
        wide,
        "No GPU-hours are known.",
    )
