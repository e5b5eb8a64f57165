"""Where the GPU-hours of a period went: the section of the fleet report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import questions
from app.components import glossary
from app.figures import numbers
from app.figures.efficiency import buckets
from app.reports.cells import Column
from app.reports.content import Section, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.efficiency.goodput import GoodputLedger
    from analytics.estimate import Estimate
    from data.queries.selection import Selection
    from data.store import Store

TITLE = "Where the GPU-hours went"
TERMS = (glossary.PRODUCTIVE_SHARE, glossary.THIRTY_MINUTES)
NOT_BUILT = (
    "The ledger of these records is not built: `faultline ledger` builds it, then this report has "
    "it."
)
_BOUNDS = (
    Column("gpu_hours_lower", "At least", "number", "GPU-hours", none=""),
    Column("gpu_hours_upper", "At most", "number", "GPU-hours", none=""),
)


def section(store: Store, selection: Selection, *, conf_level: float) -> Section:
    """Buckets and losses; only the reason where the ledger is not built or holds nothing."""
    if not questions.has_ledger(store):
        return Section(TITLE, (), (NOT_BUILT,))
    ledger = questions.ledger(store, selection, conf_level=conf_level)
    if not ledger.total_gpu_seconds:
        return Section(TITLE, (), ("No GPU-hours are known in this selection.",))
    titles = {name: cause.title for name, cause in questions.taxonomy(store).causes.items()}
    whole_days = "The ledger counts whole days of UTC: every day that the period touches."
    return Section(
        TITLE, (by_bucket(ledger), by_cause(ledger, titles)), (*ledger.notes, whole_days)
    )


def by_bucket(ledger: GoodputLedger) -> Table:
    """Every bucket; bounds where it is estimated, cost where a price is known."""
    priced = ledger.currency is not None
    cost = (Column("cost", f"Cost ({ledger.currency})".replace(" ()", ""), "number"),)
    return Table(
        "gpu_hours",
        "GPU-hours by bucket",
        (
            Column("bucket", "Bucket"),
            Column("gpu_hours", "GPU-hours", "number"),
            *_BOUNDS,
            Column("ratio", "Share", "ratio"),
            *(cost if priced else ()),
        ),
        tuple(
            (each.kind.title, each.gpu_hours.value, *_bounds(each.gpu_hours), each.ratio.value,
             *((each.cost,) if priced else ()))
            for each in ledger.buckets
        ),
        "No GPU-hours are known.",
        f"{numbers.number(ledger.total_gpu_hours)} GPU-hours in all. What has no bounds is as "
        "recorded.",
    )  # fmt: skip


def by_cause(ledger: GoodputLedger, titles: Mapping[str, str]) -> Table:
    """Lost work by cause, the paper's rule beside the estimate."""
    return Table(
        "lost_work",
        "Lost work by cause",
        (
            Column("loss", "Loss"),
            Column("cause", "Cause"),
            Column("attempts", "Attempts", "count"),
            Column("gpu_hours", "GPU-hours", "number"),
            *_BOUNDS,
            Column("rule_gpu_hours", "By the 30-minute rule", "number", "GPU-hours"),
        ),
        tuple(
            (buckets.title(loss.bucket),
             buckets.WITHOUT_CAUSE[loss.bucket] if loss.cause is None
             else titles.get(loss.cause, loss.cause),
             loss.n_attempts, loss.gpu_hours.value, *_bounds(loss.gpu_hours),
             loss.rule_gpu_hours)
            for loss in ledger.losses
        ),
        "No attempt is known to have lost work.",
    )  # fmt: skip


def _bounds(found: Estimate) -> tuple[float | None, float | None]:
    """The interval; nothing where records fix the value."""
    return (found.lower, found.upper) if buckets.spread(found) else (None, None)
