"""Does the failure rate differ between weeks, partitions, racks or ages of nodes?"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from analytics.estimate import unknown
from analytics.frames import RATE_GROUPS
from analytics.reliability.mttf import GroupRate, group_rates
from app.answers.content import Answer, Block, Chart, Missing, Sheet, Table
from app.answers.reliability.detection import of_sizes
from app.answers.reliability.mttf import measured
from app.answers.reliability.sight import sight
from app.words import numbers
from app.words.cells import Column
from data.queries import rate_groups
from data.queries.detection import evidence_days

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.frames import RateGroup
    from analytics.reliability.mttf import MttfReport
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

GROUPINGS = RATE_GROUPS
SEEN: tuple[RateGroup, ...] = ("week", "partition")
"""Groups whose rates are given as far as failures could be seen."""
ALL_EXPOSURE = (
    "All exposure counts here, also that during which no failure could be seen: too low a rate."
)
TITLES: dict[RateGroup, str] = {
    "week": "Week beginning (Monday)", "partition": "Partition", "rack": "Rack",
    "node_age": "Age of the node",
}  # fmt: skip


def rates(
    store: Store, selection: Selection, by: RateGroup, *, conf_level: float = 0.90, seed: int = 0
) -> tuple[GroupRate, ...]:
    """Failure rate of each group."""
    groups = rate_groups.groups(store, selection, by)
    evidence = evidence_days(store, selection) if by in SEEN else None
    found = group_rates(groups, evidence=evidence, conf_level=conf_level, seed=seed)
    if by in SEEN or not sight(store, selection).none:
        return found
    return tuple(
        each
        if each.estimate.failures
        else replace(each, estimate=replace(each.estimate, rate=unknown(conf_level, 0)))
        for each in found
    )


def answer(ask: Ask, selection: Selection, by: RateGroup, **chance: Any) -> Answer:
    """Which group fails more often than the whole, and is that more than chance?"""
    groups = ask(rates, selection, by, **chance)
    overall = ask(measured, selection, **chance)
    return Answer(
        _title(overall, by),
        blocks=(chart(groups, overall, by), table(groups, overall, by)),
        record=record(groups, overall),
        sheet=_sheet(groups, overall),
    )


def table(groups: Sequence[GroupRate], overall: MttfReport, by: RateGroup) -> Table:
    """Failures, exposure and rate of each group."""
    return Table(
        f"rate_by_{by}",
        _title(overall, by),
        (
            Column(by, TITLES[by], "day" if by == "week" else "text"),
            Column("failures", "Failures", "count", none="not known"),
            Column("exposure_node_days", "Exposure (node-days)", "number"),
            Column("rate_per_1000_node_days", "Failures per 1,000 node-days", "rate"),
        ),
        tuple(
            (_named(row["group"], by), *tuple(row.values())[1:4]) for row in record(groups, overall)
        ),
        "No running time is recorded in the period.",
        ALL_EXPOSURE if by not in SEEN and _in_part(overall) else "",
    )


def _named(group: str, by: RateGroup) -> str | datetime:
    """A group as its column holds it: weeks by their Monday."""
    return datetime.fromisoformat(group) if by == "week" else group


def record(groups: Sequence[GroupRate], overall: MttfReport) -> list[dict[str, Any]]:
    """The JSON of the command: an object for each group."""
    unseen = overall.failures_known is None
    return [
        {
            "group": group.group,
            "failures": group.estimate.failures_known if unseen else group.estimate.failures,
            "exposure_node_days": group.estimate.exposure,
            "rate_per_1000_node_days": group.estimate.rate_per_1000_node_days,
            "mttf_hours": group.estimate.mttf_hours,
        }
        for group in groups
    ]


def chart(groups: Sequence[GroupRate], overall: MttfReport, by: RateGroup) -> Block:
    """Weeks along time, other groups one below the other; or what would show them."""
    key = f"rate_by_{by}"
    if not groups:
        return Missing(
            key,
            f"No failure rate by {by.replace('_', ' ')}.",
            "It needs the time that jobs ran: choose a longer period, or ingest the "
            "scheduler's records of it.",
        )
    known = sum(group.estimate.rate.value is not None for group in groups)
    says = f"Failures per 1,000 node-days of {numbers.counted(known, by.replace('_', ' '))} with "
    says += "intervals. The values stand in the table."
    title, data = _title(overall, by), (groups, overall.rate)
    if by == "week":
        return Chart("reliability.rate_over_time", title, says, data, key)
    return Chart("reliability.rate_by_group", title, says, data, key, {"by": by})


def _in_part(overall: MttfReport) -> bool:
    """Whether failures could not be seen all along."""
    return overall.detection is not None and overall.detection.scope != "all"


def _title(overall: MttfReport, by: RateGroup) -> str:
    """What is divided by what, of which jobs."""
    return f"Failure rate by {by.replace('_', ' ')}{of_sizes(overall.min_gpus)}"


def _sheet(groups: Sequence[GroupRate], overall: MttfReport) -> Sheet:
    """The groups alone: a CSV holds one kind of rows."""
    keys = ("group", "failures", "exposure_node_days", "rate_per_1000_node_days", "lower", "upper")
    rows = [(*row.values(),) for row in record(groups, overall)]
    return Sheet(
        (*keys, "conf_level"),
        [(*of, rate.value, rate.lower, rate.upper, rate.conf_level) for *of, rate, _ in rows],
    )
