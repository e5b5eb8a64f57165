"""What MTTF does a given failure rate imply, and do published figures follow? Needs no store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.reliability.comparisons import PUBLISHED_BY, PUBLISHED_MTTF, SOURCE
from analytics.reliability.failure_rate import projection_of_rate
from app.answers.content import Answer
from app.answers.described import Rows, field
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_reliability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.reliability.sensitivity import Sensitivity


PROJECTED = (
    Column("gpus", "GPUs", "count"),
    field("mttf_hours", "MTTF", "hours", "mttf_hours.value", unit="h"),
)


def answer(rate_per_1000_node_days: float, gpus: Sequence[int], *, gpus_per_node: float) -> Answer:
    """The MTTF that a given rate implies for each size."""
    points = projection_of_rate(rate_per_1000_node_days, gpus, gpus_per_node=gpus_per_node)
    rows = Rows(PROJECTED, points)
    rate = numbers.number(rate_per_1000_node_days)
    return Answer(
        "; ".join(f"{p.gpus:,} GPUs: MTTF {numbers.duration(p.mttf_hours.value)}" for p in points),
        blocks=(rows.table("projection", f"Projected at {rate} failures per 1,000 node-days"),),
        record={"projection": rows.records()},
        sheet=rows.sheet(),
    )


FOLLOWS = {"yes": "yes", "roughly": "roughly", "no": "does not follow from r_f"}
PUBLISHED = (
    Column("gpus", "GPUs", "count"),
    field("published", "Published", of="stated_as"),
    Column("projected_hours", "24 h / (N r_f)", "hours", "h"),
    Column("implied_rate_per_1000_node_days", "Implied r_f", "number", "per 1,000 node-days",
           help=of_reliability.IMPLIED_RATE.definition),
    field("follows", "Follows from r_f", of=lambda figure: FOLLOWS[figure.follows]),
)  # fmt: skip


def published(own: Sensitivity | None = None) -> Answer:
    """The published figures beside what the published rate gives, and `own` rates by definition."""
    note = f"{SOURCE}. Implied r_f: the rate at which the published MTTF would follow."
    if own is not None:
        rate = own.of(PUBLISHED_BY).rate_per_1000_node_days
        note += (
            f" The paper counts failures by definition {PUBLISHED_BY}: by it this selection has "
            f"{numbers.number(rate.value)} per 1,000 node-days ({numbers.interval(rate)})."
        )
    return Answer(
        "Published figures beside the published rate. Two of the paper's measured values do not "
        "follow from its own rate; nothing here is tuned to hide that.",
        blocks=(
            Rows(PUBLISHED, PUBLISHED_MTTF).table("published_mttf", "Published MTTF", note=note),
        ),
    )
