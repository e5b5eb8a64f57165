"""Do published ETTR figures follow from the inputs and the form of their own papers?"""

from __future__ import annotations

from analytics.efficiency.published_ettr import PUBLISHED_INCONSISTENCIES, PUBLISHED_WHAT_IFS
from app.answers.content import Answer, Table
from app.words import numbers
from app.words.cells import Column

_COLUMNS = (
    Column("form", "Form"),
    Column("gpus", "GPUs", "count"),
    Column("rate_per_1000_node_days", "Failures per 1,000 node-days", "number"),
    Column("restart_min", "Restart (min)", "number"),
    Column("write_min", "Write (min)", "number"),
    Column("interval_min", "Interval (min)", "number"),
    Column("queue_min", "Queue (min)", "number"),
    Column("paper", "Paper"),
    Column("ours", "Ours", "decimal"),
    Column("follows", "Follows"),
    Column("source", "Source"),
)


def answer() -> Answer:
    """Published what-ifs beside ours, and what would be needed where a figure does not follow."""
    rows = tuple(
        (
            each.form,
            each.settings.gpus,
            each.settings.rate_per_1000_node_days,
            each.settings.restart_min,
            each.settings.write_min,
            each.settings.checkpoint_min,
            each.settings.queue_min,
            each.paper,
            each.ours,
            "yes" if each.follows else "does not follow",
            each.source,
        )
        for each in PUBLISHED_WHAT_IFS
    )
    return Answer(
        "Each what-if by the form and with the inputs of its paper. Nothing here is tuned to hide "
        "what does not follow.",
        blocks=(Table("published_ettr", "Published figures and ours", _COLUMNS, rows),),
        notes=tuple(
            f"{each.quantity}: {_with_unit(each.paper, each.unit)} published, "
            f"{_with_unit(each.own_formula, each.unit)} by its own formula; {each.remark}."
            for each in PUBLISHED_INCONSISTENCIES
        ),
    )


def _with_unit(value: float, unit: str) -> str:
    """A value, and its unit where it has one."""
    return f"{numbers.number(value)} {unit}".rstrip()
