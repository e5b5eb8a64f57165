"""Does the failure rate differ between weeks, partitions, racks or ages of nodes?"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from analytics.estimate import unknown
from analytics.frames import RATE_GROUPS
from analytics.reliability.mttf import GroupRate, group_rates, weekly_rates
from app.answers.content import Answer, Block, Chart, Missing, Table
from app.answers.described import DATA, Rows, field
from app.answers.reliability.detection import of_sizes
from app.answers.reliability.mttf import measured
from app.answers.reliability.sight import sight
from app.words import numbers
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


def answer(ask: Ask, /, selection: Selection, by: RateGroup, **chance: Any) -> Answer:
    """Which group fails more often than the whole, and is that more than chance?"""
    groups = ask(rates, selection, by, **chance)
    overall = ask(measured, selection, **chance)
    listed = rows(groups, overall, by)
    return Answer(
        _title(overall, by),
        blocks=(chart(groups, overall, by), table(groups, overall, by)),
        record=listed.records(),
        sheet=listed.sheet(),
    )


def table(groups: Sequence[GroupRate], overall: MttfReport, by: RateGroup) -> Table:
    """Failures, exposure and rate of each group."""
    return rows(groups, overall, by).table(
        f"rate_by_{by}",
        _title(overall, by),
        empty="No running time is recorded in the period.",
        note=ALL_EXPOSURE if by not in SEEN and _in_part(overall) else "",
    )


def rows(groups: Sequence[GroupRate], overall: MttfReport, by: RateGroup) -> Rows:
    """A row a group; a week is called by its Monday."""
    week, unseen = by == "week", overall.failures_known is None
    rate = "rate_per_1000_node_days"
    bounds = (f"{rate}_lower", f"{rate}_upper", "conf_level")
    return Rows(
        (
            field(
                by,
                TITLES[by],
                "day" if week else "text",
                lambda one: datetime.fromisoformat(one.group) if week else one.group,
                on=("table",),
            ),
            field("group", on=DATA, names={"chart": "week"} if week else {}),
            field(
                "failures",
                "Failures",
                "count",
                "estimate.failures_known" if unseen else "estimate.failures",
                none="not known",
            ),
            field("exposure_node_days", "Exposure (node-days)", "number", "estimate.exposure"),
            field(
                rate,
                "Failures per 1,000 node-days",
                "rate",
                "estimate.rate_per_1000_node_days",
                names={"csv": (rate, "lower", "upper", "conf_level"), "chart": (rate, *bounds)},
            ),
            field("mttf_hours", kind="mttf", of="estimate.mttf_hours", on=("json",)),
        ),
        groups,
    )


NEEDS = (
    "It needs the time that jobs ran: choose a longer period, or ingest the scheduler's records "
    "of it."
)


def chart(groups: Sequence[GroupRate], overall: MttfReport, by: RateGroup) -> Block:
    """Weeks along time, other groups one below the other; or what would show them."""
    key = f"rate_by_{by}"
    if not groups:
        return Missing(
            key,
            f"No failure rate by {by.replace('_', ' ')}.",
            NEEDS,
        )
    if by == "week" and not weekly_rates(groups).runs:
        remedy = "" if overall.blind else NEEDS
        return Missing(key, "No failure rate by week is known.", remedy)
    known = sum(group.estimate.rate.value is not None for group in groups)
    says = f"Failures per 1,000 node-days of {numbers.counted(known, by.replace('_', ' '))} with "
    says += "intervals. The values stand in the table."
    title, data = _title(overall, by), (groups, overall.rate)
    listed = rows(groups, overall, by)
    if by == "week":
        return Chart("reliability.rate_over_time", title, says, data, key, rows=listed)
    return Chart("reliability.rate_by_group", title, says, data, key, {"by": by}, rows=listed)


def _in_part(overall: MttfReport) -> bool:
    """Whether failures could not be seen all along."""
    return overall.detection is not None and overall.detection.scope != "all"


def _title(overall: MttfReport, by: RateGroup) -> str:
    """What is divided by what, of which jobs."""
    return f"Failure rate by {by.replace('_', ' ')}{of_sizes(overall.min_gpus)}"
