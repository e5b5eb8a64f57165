"""Which groups and rows are the buckets of the ledger made of?"""

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
from analytics.efficiency.fleet_time import OUT_OF_SERVICE
from app.answers.columns import columns
from app.answers.content import Answer, Chart, Missing, Part, Table
from app.ask import EVERYTHING
from app.words.cells import Column
from data.queries import efficiency, fleet

if TYPE_CHECKING:
    from analytics.frames import LedgerGroup
    from app.ask import Ask
    from app.words.cells import Kind
    from data.filters import Selection
    from data.store import Store


NOTHING_RAN = (
    "No GPU-time of a job is recorded in this selection.",
    "Choose a longer period, a smaller job size, or reset the filters.",
)
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
    if ask(measured, selection, by).empty:
        return Missing(f"ledger_by_{by}", *NOTHING_RAN)
    if by == "day":
        over_time = ask(measured_over_time, selection)
        return Chart(
            "efficiency.ledger_over_time",
            "Where did GPU-hours go, day by day?",
            "GPU-hours per day of each bucket; days without a record of a job are hatched.",
            (over_time,),
            "ledger_by_day",
            rows=over_time.by_day,
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
        rows=losses.rows,
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
            *(Column(name, BUCKETS[name].title, "number", "GPU-h") for name in buckets),
        ),
        wide,
        "No GPU-hours are known.",
    )


DAYS = (
    Column("day", "Day (UTC)", "day"),
    *columns("cluster", "partition", "account"),
    Column("size_class", "Job size (GPUs)", none="held by no job"),
    Column("n_gpus", "GPUs", "count", none="held by no job"),
    Column("cause", "Cause", none="no cause"),
    Column("gpu_hours", "GPU-hours", "number"),
    Column("lower_gpu_hours", "At least", "number", "GPU-h"),
    Column("upper_gpu_hours", "At most", "number", "GPU-h"),
    Column("n_attempts", "Attempts", "count"),
    Column("rule_gpu_hours", "By the 30-minute rule", "number", "GPU-h"),
)
ATTEMPTS = (
    *columns("job_id", "attempt", "cluster", "cause", "domain", "state", "name", "user", "account",
             "partition", "n_gpus", "start_at", "end_at", "node"),
    Column("rule_gpu_hours", "By the 30-minute rule", "number", "GPU-h"),
    *columns(hidden=("attempt_key",)),
)  # fmt: skip
UNKNOWN = "unknown"
"""A verdict's cause where there is no evidence of one; the ledger holds none then."""


def behind(ask: Ask, selection: Selection, bucket: str, *, limit: int = EVERYTHING) -> Table:
    """Days, accounts and sizes of a bucket, the largest first; of lost work its attempts too."""
    rows = ask(efficiency.bucket_rows, selection, bucket=bucket, limit=limit)
    beside = (Part("Attempts", lost_attempts, (selection,)),) if bucket == "lost_work" else ()
    return _days(rows, bucket, "By day" if beside else BUCKETS[bucket].title, beside)


def out_of_service(ask: Ask, selection: Selection, *, limit: int = EVERYTHING) -> Table:
    """The same of each bucket of nodes drained or down."""
    first, *others = (name for name in BUCKETS if name in OUT_OF_SERVICE)
    rows = ask(efficiency.bucket_rows, selection, bucket=first, limit=limit)
    beside = tuple(Part(BUCKETS[name].title, behind, (selection, name)) for name in others)
    return _days(rows, first, BUCKETS[first].title, beside)


def behind_loss(
    ask: Ask, selection: Selection, bucket: str, cause: object, *, limit: int = EVERYTHING
) -> Table:
    """The attempts of a cause of lost work; of other losses its days, accounts and sizes."""
    named = cause if isinstance(cause, str) else None
    if bucket == "lost_work":
        return lost_attempts(ask, selection, named or UNKNOWN, limit=limit)
    rows = ask(efficiency.bucket_rows, selection, bucket=bucket, limit=EVERYTHING)
    of_cause = rows["cause"].isna() if named is None else rows["cause"].eq(named)
    return _days(rows[of_cause].head(limit), bucket, BUCKETS[bucket].title)


def lost_attempts(
    ask: Ask, selection: Selection, cause: str | None = None, *, limit: int = EVERYTHING
) -> Table:
    """Attempts that infrastructure ended, those that lost most by the rule first."""
    kept = limit if cause is None else EVERYTHING
    rows = ask(efficiency.lost_attempts, selection, limit=kept)
    if cause is not None:
        rows = rows[rows["cause"].fillna(UNKNOWN).eq(cause)].head(limit)
    return Table(
        "lost_attempts",
        "Attempts",
        ATTEMPTS,
        rows,
        "No such attempt.",
        "Attempts that infrastructure ended; GPU-hours by the 30-minute rule. Pick a job to open "
        "it.",
    )


def _days(rows: pd.DataFrame, bucket: str, title: str, beside: tuple[Part, ...] = ()) -> Table:
    """GPU-hours of a bucket in parts."""
    note = f"{BUCKETS[bucket].title}: GPU-hours by day, partition, account and size."
    return Table(f"bucket_{bucket}", title, DAYS, rows, "No GPU-hours.", note, beside=beside)
