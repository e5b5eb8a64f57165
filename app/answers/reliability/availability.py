"""How much capacity was there, and how fast are nodes repaired?"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.reliability.availability import DOWN, DRAINED, PLANNED, STATES
from analytics.reliability.detection import sources_collected
from analytics.reliability.fleet_availability import (
    FleetAvailability,
    Out,
    Part,
    Spell,
    fleet_availability,
    unseen,
    watched_states,
)
from app.answers.content import Answer, Chart, Missing, Number, estimated
from app.answers.content import Part as Opened
from app.answers.described import Rows, field
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_reliability
from data.queries import availability, repairs
from data.queries.detection import evidence_days

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from analytics.reliability.availability import States
    from analytics.reliability.detection import Stretch
    from app.answers.content import Block, Table
    from app.ask import Ask
    from app.words.terms import Term
    from data.filters import Selection
    from data.store import Store

SOURCES = ("node_events", "node_failures")
"""What tells when nodes were out of service."""
CANNOT = "cannot be judged: no record tells when nodes were out of service"
INVENTORY = ("scontrol show node -o > nodes.txt", "faultline ingest scontrol-nodes nodes.txt")
CANNOT_NODES = "cannot be judged: which nodes there were is not known"
COMMANDS = (
    "sacctmgr -P show event start=now-90days > events.txt",
    "faultline ingest sacctmgr-events events.txt",
)
OF_WHOLE = "Availability is told of whole clusters, not of a partition or an account"
ALL = "Choose all partitions and all accounts."
NO_NODES = (
    "No inventory lists them and no job names them in this time: choose one that the records "
    "cover, or ingest jobs or an inventory:"
)
MOST_NODES = 20
"""Nodes that the page shows before a reader asks for all."""
MOST_OPEN = 50


def measured(
    store: Store, selection: Selection, *, conf_level: float = CONF_LEVEL, seed: int = 0
) -> FleetAvailability:
    """Availability and repairs of the nodes of a selection."""
    return fleet_availability(
        *_recorded(store, selection),
        failures=[row[:3] for row in repairs.failures(store, selection)],
        tickets=availability.tickets(store, selection),
        conf_level=conf_level,
        seed=seed,
    )


def node_states(store: Store, selection: Selection) -> States:
    """What the nodes of a selection were in, one state after the other."""
    return watched_states(*_recorded(store, selection))


def _recorded(
    store: Store, selection: Selection
) -> tuple[list[Spell], list[Out], dict[str, list[Stretch]]]:
    """When nodes were there, when they were out, and on which days nobody saw it."""
    evidence = evidence_days(store, selection)
    logged = availability.recorded_days(store, selection)
    both = {name: np.concatenate([evidence[name], logged[name]]) for name in evidence}
    gaps = defaultdict(list)
    for each in sources_collected(both):
        if each.source in SOURCES:
            gaps[each.cluster].append(each.gaps)
    return (
        [Spell(*row) for row in availability.spells(store, selection)],
        [Out(*row) for row in availability.outages(store, selection)],
        {cluster: unseen(of_sources) for cluster, of_sources in gaps.items()},
    )


def answer(ask: Ask, /, selection: Selection, **chance: Any) -> Answer:
    """How available nodes were and how long they are out; `chance` holds conf_level and seed."""
    found = ask(measured, selection, **chance)
    lacking = missing(found, selection)
    return Answer(
        _sentence(found) if lacking is None else lacking.finding,
        tuple(_headlines(found, lacking)),
        tuple(_blocks(found, selection)) if lacking is None else (lacking,),
        notes=tuple(_notes(found)) if lacking is None else (),
        record=_record(found) | {"reason": None if lacking is None else lacking.finding},
        sheet=Rows(_node_columns(found), found.by_node).sheet(),
    )


def missing(found: FleetAvailability, selection: Selection) -> Missing | None:
    """What stands in its place where it cannot be judged."""
    if found.ratios.node_seconds:
        return None
    if selection.partition is not None or selection.account is not None:
        return Missing("weeks", f"{OF_WHOLE}.", ALL)
    if found.not_judged:
        return Missing("weeks", f"Availability {CANNOT}.", "Slurm keeps them:", COMMANDS)
    return Missing("weeks", f"Availability {CANNOT_NODES}.", NO_NODES, INVENTORY)


def _sentence(found: FleetAvailability) -> str:
    share = found.ratios.available
    said = f"Nodes were available {numbers.percent(share.value)} of their time"
    median = found.repairs.percentiles[50]
    if median.value is None:
        return f"{said}."
    return f"{said}; half return within {numbers.duration(median.value)}."


def _headlines(found: FleetAvailability, lacking: Missing | None) -> Iterator[Number]:
    shares, occurred, lasted = found.ratios, found.occurrence, found.repairs
    kinds: tuple[tuple[Term, Any, Estimate], ...] = (
        (of_reliability.AVAILABLE, "share", shares.available),
        (of_reliability.UNPLANNED, "share", shares.unplanned),
        (of_reliability.TO_RETURN, "mttf", lasted.mean_hours),
        (of_reliability.MTBF, "mttf", occurred.mtbf_hours),
        (of_reliability.PLANNED, "share", _if_planned(found, shares.planned)),
        (of_reliability.SERVICEABLE, "share", _if_planned(found, shares.serviceable)),
        (of_reliability.MTTI, "mttf", _if_planned(found, occurred.mtti_hours)),
        (of_reliability.AFR, "share", occurred.annual_failure_ratio),
    )
    for term, kind, value in kinds:
        shown = estimated(term, kind, value)
        if value.value is None:
            why = "no unplanned outage"
            if lacking is not None:
                why = lacking.finding.removeprefix("Availability ").rstrip(".")
            elif term is of_reliability.TO_RETURN and lasted.n:
                why = "no outage has ended"
            elif term in RESTS_ON_PLANS and not found.planned_known:
                why = "no record says what was planned"
            shown = replace(shown, basis=why, says=why)
        yield shown


RESTS_ON_PLANS = (of_reliability.PLANNED, of_reliability.SERVICEABLE, of_reliability.MTTI)


def _if_planned(found: FleetAvailability, value: Estimate) -> Estimate:
    """What rests on knowing what was planned."""
    if found.planned_known:
        return value
    return unknown(value.conf_level or CONF_LEVEL, value.n)


def _share(state: int) -> Callable[[Part], float]:
    return lambda part: part.share(state)


def _node_columns(found: FleetAvailability) -> tuple[Any, ...]:
    planned = (field("planned", "Planned", "ratio", _share(PLANNED)),)
    return (
        field("node", "Node", of="name", link="node"),
        field("cluster", "Cluster"),
        field("available", "Available", "ratio"),
        field("down", "Down", "ratio", _share(DOWN)),
        field("drained", "Drained", "ratio", _share(DRAINED)),
        *(planned if found.planned_known else ()),
        field("node_days", of=lambda part: sum(part.seconds) / 86_400, on=("csv",)),
        field("outages", "Unplanned outages", "count"),
    )


GROUPS = (
    field("cluster", "Cluster"),
    field("name", "Rack"),
    field("nodes", "Nodes", "count"),
    field("available", "Available", "share", lambda part: part.shares[0]),
    field("unplanned", "Unplanned", "share", lambda part: part.shares[1]),
    field("outages", "Unplanned outages", "count"),
)
CLUSTERS = tuple(each for each in GROUPS if each.column.key != "name")
CAPACITY = (
    Column("out", "Nodes out at most", "count"),
    Column("ratio", "Share of the time", "ratio"),
    Column("independent", "If nodes went out one by one", "ratio"),
)
OPEN = (
    Column("node", "Node", link="node"),
    Column("cluster", "Cluster"),
    field("since", "Since", "time", of=lambda out: datetime.fromtimestamp(out.start_s, UTC)),
    field("hours", "For (h)", "hours", of=lambda out: (out.end_s - out.start_s) / 3600),
    field("state", "State"),
)


def _of_week(state: int) -> Callable[[tuple[datetime, tuple[int, ...]]], float | None]:
    return lambda week: week[1][state] / sum(week[1]) if sum(week[1]) else None


WEEKS = (
    field("week", of=lambda week: week[0].date()),
    *(field(name, of=_of_week(state)) for state, name in enumerate(STATES)),
    field("node_days", of=lambda week: sum(week[1]) / 86_400),
)


@dataclass(frozen=True)
class _Percentile:
    """One row of the table of repairs."""

    share: float
    hours: Estimate


@dataclass(frozen=True)
class _OfClock:
    """One row of the table of clocks."""

    clock: str
    told: int
    outages: int
    median: Estimate
    percentile: Estimate


CLOCKS = (
    field("clock", "Clock"),
    field("told", "Outages that tell it", "count"),
    field("outages", "Of outages", "count"),
    field("median_h", "Half within (h)", "mttf", "median"),
    field("p90_h", "Nine of ten within (h)", "mttf", "percentile"),
)
RACKS = (
    Column("out", "Racks not whole at most", "count"),
    field("any", "Any racks (reconfigured)", "ratio", "any_ratio"),
    field("fixed", "Racks named before", "ratio", "fixed_ratio"),
    Column("independent", "Any, if nodes went out one by one", "ratio"),
)
REPAIRS = (
    Column("share", "Share of outages", "ratio"),
    Column("hours", "Back within (h)", "mttf"),
)


def of_nodes(ask: Ask, selection: Selection, *, limit: int) -> Table:
    """All nodes, the least available first."""
    return _table(ask(measured, selection), limit)


def _table(found: FleetAvailability, most: int) -> Table:
    rows = Rows(_node_columns(found), found.by_node[:most])
    return rows.table("by_node", "The least available nodes")


def _blocks(found: FleetAvailability, selection: Selection) -> Iterator[Block]:
    yield Chart(
        "reliability.availability",
        "Share of the time of nodes out of service, by week",
        f"Planned, down and drained in {numbers.counted(len(found.weeks), 'week')}.",
        (found.weeks,),
        "weeks",
        rows=Rows(WEEKS, found.weeks),
    )
    listed = _table(found, MOST_NODES)
    if len(found.by_node) > MOST_NODES:
        everything = Opened("All nodes", of_nodes, (selection,), total=len(found.by_node))
        listed = replace(listed, everything=everything)
    yield listed
    if found.repairs.n > found.repairs.n_open:
        rows = [_Percentile(each / 100, hours) for each, hours in found.repairs.percentiles.items()]
        yield Rows(REPAIRS, rows).table("repairs", "From out of service to return")
    if clocks := _clocks(found):
        yield Rows(CLOCKS, clocks).table(
            "clocks",
            "To drain, and to hands",
            note="To drain is from the last failure of a node, within a day before, to out of "
            "service: 0 where the scheduler took it out as it failed. To hands is from there to "
            "its first ticket, 0 where that was opened within an hour before. Outages without such "
            "a record tell nothing.",
        )
    if found.still_out:
        yield Rows(OPEN, found.still_out[:MOST_OPEN]).table("open_outages", "Still out")
    if found.capacity:
        yield Rows(CAPACITY, found.capacity).table(
            "capacity",
            "Capacity that a job found",
            note="A job of all nodes but these ran on healthy nodes for this share of the time. "
            "Where nodes go out together, it is less than one by one.",
        )
    if found.racks:
        yield Rows(RACKS, found.racks).table(
            "whole_racks",
            "Whole racks that a job found",
            note="Of a job that takes all nodes of all racks but these. Any racks will do where "
            "links can be reconfigured; a job on racks named before waits for those.",
        )
    if found.by_rack:
        yield Rows(GROUPS, found.by_rack[:MOST_NODES]).table("by_rack", "The least available racks")
    if len(found.by_cluster) > 1:
        yield Rows(CLUSTERS, found.by_cluster).table("by_cluster", "By cluster")


def _clocks(found: FleetAvailability) -> list[_OfClock]:
    """Clocks that any outage tells."""
    return [
        _OfClock(name, clock.told, clock.outages, clock.percentiles[50], clock.percentiles[90])
        for name, clock in (("to drain", found.to_drain), ("to hands", found.to_hands))
        if clock.told
    ]


def _notes(found: FleetAvailability) -> Iterator[str]:
    if not found.planned_known:
        yield "No record says what was planned: all time out of service counts as unplanned."
    if found.logged:
        yield (
            "A failure log tells of logged failures alone: what else took nodes out is not in it."
        )
    if found.not_judged:
        yield f"Of {', '.join(found.not_judged)} availability {CANNOT}. `{'`, `'.join(COMMANDS)}`"
    if found.days_unseen:
        days = numbers.counted(found.days_unseen, "day")
        yield f"Node states were not collected on {days}: they count nowhere."
    if found.repairs.n_open:
        yield (
            f"{numbers.counted(found.repairs.n_open, 'outage')} had not ended when records do: "
            "how long they last is known from below."
        )
    lognormal = found.repairs.lognormal
    if lognormal:
        median, sigma = (numbers.number(lognormal[name].value) for name in ("median", "sigma"))
        yield f"A log-normal of the times to return has a median of {median} h and sigma {sigma}."
    if len(found.by_cluster) > 1:
        yield "What capacity a job found is told of one cluster: choose one."


def _record(found: FleetAvailability) -> dict[str, Any]:
    shares, occurred, lasted = found.ratios, found.occurrence, found.repairs
    return {
        "availability": shares.available,
        "planned_ratio": _if_planned(found, shares.planned),
        "unplanned_ratio": shares.unplanned,
        "down_ratio": shares.down,
        "drained_ratio": shares.drained,
        "serviceability": _if_planned(found, shares.serviceable),
        "node_seconds": shares.node_seconds,
        "mean_repair_hours": lasted.mean_hours,
        "repair_clock": "from out of service to return",
        "repair_hours_percentiles": {str(each): of for each, of in lasted.percentiles.items()},
        "repair_lognormal": dict(lasted.lognormal) or None,
        "repairs": lasted.n,
        "outages": occurred.n,
        "mtbf_hours": occurred.mtbf_hours,
        "mtti_hours": _if_planned(found, occurred.mtti_hours),
        "annual_failure_ratio": occurred.annual_failure_ratio,
        "fit": occurred.fit,
        "by_node": [_part(found, part) for part in found.by_node],
        "by_rack": [_part(found, part) for part in found.by_rack],
        "by_cluster": [_part(found, part) for part in found.by_cluster],
        "by_week": Rows(WEEKS, found.weeks).records(),
        "capacity": [asdict(each) for each in found.capacity],
        "whole_racks": Rows(RACKS, found.racks).records(),
        "clocks": Rows(CLOCKS, _clocks(found)).records(),
        "open_outages": Rows(OPEN, found.still_out).records(),
        "clusters_not_judged": list(found.not_judged),
        "days_not_collected": found.days_unseen,
        "conf_level": shares.available.conf_level,
    }


def _part(found: FleetAvailability, part: Part) -> dict[str, Any]:
    whole = sum(part.seconds)
    return {
        "name": part.name,
        "cluster": part.cluster,
        "nodes": part.nodes,
        "available": part.shares[0],
        "planned_ratio": part.seconds[PLANNED] / whole if found.planned_known else None,
        "down_ratio": part.seconds[DOWN] / whole,
        "drained_ratio": part.seconds[DRAINED] / whole,
        "node_seconds": whole,
        "outages": part.outages,
    }
