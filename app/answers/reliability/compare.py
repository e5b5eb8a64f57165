"""What would other tools say of these records, and why do they differ?"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

from analytics.reliability.others_definitions import OthersDefinition, others_definitions
from app.answers.content import Answer
from app.answers.described import Rows, field
from app.answers.reliability import availability
from app.words import numbers
from data.queries import exposure

if TYPE_CHECKING:
    from analytics.reliability.fleet_availability import FleetAvailability
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store


def running_node_days(store: Store, selection: Selection) -> dict[str, float]:
    """Node-days in which jobs ran, by cluster; NaN where the GPUs of a node are not known."""
    ran, days = exposure.runs(store, selection), dict[str, float]()
    for cluster, held in zip(ran["cluster"], ran["exposure_node_days"].tolist(), strict=True):
        days[cluster] = days.get(cluster, 0.0) + held
    return days


def _running(found: FleetAvailability, days: dict[str, float]) -> float | None:
    """Node-days of jobs in the time that is judged; None where that is a part of theirs."""
    judged = [days.get(part.cluster, 0.0) for part in found.by_cluster]
    whole = not found.days_unseen and not any(map(isnan, judged))
    return sum(judged) if whole and any(judged) else None


def _printed(value: float | None, unit: str) -> str:
    if unit == "ratio":
        return numbers.percent(value)
    return "divides by zero" if value is None else numbers.duration(value)


DEFINITIONS = (
    field("definition", "By the definition"),
    field("source", "Of"),
    field(
        "said",
        "It says",
        of=lambda row: _printed(row.value, row.unit),
        on=("table",),
    ),
    field("value", on=("json", "csv")),
    field("unit", on=("json", "csv")),
    field("ours", on=("json", "csv")),
    field(
        "times",
        "Times ours",
        of=lambda row: "" if row.times_ours is None else numbers.number(row.times_ours),
        on=("table",),
    ),
    field("times_ours", on=("json", "csv")),
    field("why_it_differs", "Why it differs", px=330),
)


def answer(ask: Ask, selection: Selection, **chance: Any) -> Answer:
    """The same records by the definitions of other tools; `chance` holds conf_level and seed."""
    found = ask(availability.measured, selection, **chance)
    rows = others_definitions(found, _running(found, ask(running_node_days, selection)))
    listed = Rows(DEFINITIONS, rows)
    lacking = availability.missing(found, selection)
    if lacking is not None:
        return Answer(lacking.finding, blocks=(lacking,), record=[], sheet=listed.sheet())
    table = listed.table(
        "compare",
        "The same records by other definitions",
        wrapped=True,
        note="Of the outages of Availability: a node that is taken out and ends no job has one, "
        "and no failure of a job.",
    )
    return Answer(_sentence(rows), blocks=(table,), record=listed.records(), sheet=listed.sheet())


def _sentence(rows: tuple[OthersDefinition, ...]) -> str:
    """How far apart they are."""
    times = [row.times_ours for row in rows if row.unit == "h" and row.times_ours is not None]
    ours = next((row.ours for row in rows if row.unit == "h"), None)
    if not times or ours is None:
        return "No unplanned outage began: there is no time between them to compare."
    least, most = min(times), max(times)
    return (
        f"Others say {numbers.number(least)} to {numbers.number(most)} times the "
        f"{numbers.duration(ours)} between outages of a node."
    )
