"""Do published MTTF figures follow from the published failure rate?"""

from __future__ import annotations

from analytics.reliability.comparisons import PUBLISHED_MTTF, SOURCE
from app.answers.content import Answer, Table
from app.words.cells import Column

FOLLOWS = {"yes": "yes", "roughly": "roughly", "no": "does not follow from r_f"}
_COLUMNS = (
    Column("gpus", "GPUs", "count"),
    Column("published", "Published"),
    Column("projected_hours", "24 h / (N r_f) (h)", "hours"),
    Column("implied_rate_per_1000_node_days", "Implied r_f", "number",
           help="The rate at which the published MTTF would follow."),
    Column("follows", "Follows from r_f"),
)  # fmt: skip


def answer() -> Answer:
    """The published figures beside what the published rate gives."""
    rows = tuple(
        (
            each.gpus,
            each.stated_as,
            each.projected_hours,
            each.implied_rate_per_1000_node_days,
            FOLLOWS[each.follows],
        )
        for each in PUBLISHED_MTTF
    )
    note = f"{SOURCE}. Implied r_f: the rate at which the published MTTF would follow."
    return Answer(
        "Published figures beside the published rate. Two of the paper's measured values do not "
        "follow from its own rate; nothing here is tuned to hide that.",
        blocks=(Table("published_mttf", "Published MTTF", _COLUMNS, rows, note=note),),
    )
