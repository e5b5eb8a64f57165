"""Which days, accounts, sizes and attempts stand behind a bucket of the ledger?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.efficiency.buckets import BUCKETS
from analytics.efficiency.fleet_time import OUT_OF_SERVICE
from app.answers.columns import columns
from app.answers.content import Part, Table
from app.ask import EVERYTHING
from app.words.cells import Column
from data.queries import efficiency

if TYPE_CHECKING:
    import pandas as pd

    from app.ask import Ask
    from data.filters import Selection

DAYS = (
    Column("day", "Day (UTC)", "day"),
    *columns("cluster", "partition", "account"),
    Column("size_class", "Job size (GPUs)", none="held by no job"),
    Column("n_gpus", "GPUs", "count", none="held by no job"),
    Column("cause", "Cause", none="no cause"),
    Column("gpu_hours", "GPU-hours", "number"),
    Column("lower_gpu_hours", "At least", "number", "GPU-hours"),
    Column("upper_gpu_hours", "At most", "number", "GPU-hours"),
    Column("n_attempts", "Attempts", "count"),
    Column("rule_gpu_hours", "By the 30-minute rule", "number", "GPU-hours"),
)
ATTEMPTS = (
    *columns("job_id", "attempt", "cluster", "cause", "domain", "state", "name", "user", "account",
             "partition", "n_gpus", "start_at", "end_at", "node"),
    Column("rule_gpu_hours", "By the 30-minute rule", "number", "GPU-hours"),
    *columns(hidden=("attempt_key",)),
)  # fmt: skip
UNKNOWN = "unknown"
"""A verdict's cause where there is no evidence of one; the ledger holds none then."""


def behind(ask: Ask, selection: Selection, bucket: str, *, limit: int = EVERYTHING) -> Table:
    """Days, accounts and sizes of a bucket, the largest first; of lost work its attempts too."""
    rows = ask(efficiency.bucket_rows, selection, bucket=bucket, limit=limit)
    beside = (Part("Attempts", attempts, (selection,)),) if bucket == "lost_work" else ()
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
        return attempts(ask, selection, named or UNKNOWN, limit=limit)
    rows = ask(efficiency.bucket_rows, selection, bucket=bucket, limit=EVERYTHING)
    of_cause = rows["cause"].isna() if named is None else rows["cause"].eq(named)
    return _days(rows[of_cause].head(limit), bucket, BUCKETS[bucket].title)


def attempts(
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
