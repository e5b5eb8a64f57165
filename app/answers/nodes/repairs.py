"""Which repairs hold: do nodes fail again, by what was done, and which are for their vendor?"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from analytics.estimate import CONF_LEVEL
from analytics.nodes.repair_outcomes import RepairOutcomes, outcomes
from analytics.nodes.repairs import DAY_S, HORIZON_DAYS, Failure, Stay, repairs, windows, zones
from app.answers.columns import columns
from app.answers.content import Answer, Missing, Number, composed, estimated
from app.answers.described import Rows, field
from app.answers.reliability import sight
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_nodes
from data.queries import repairs as records

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from analytics.nodes.repair_outcomes import Returned
    from analytics.nodes.repairs import Key, Repair
    from analytics.reliability.sight import Sight
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

MOST_ROWS = 50
MOST_TOLD = 5
"""Repairs of a node that its evidence tells, the latest."""
ACTIONS = (
    Column("action", "Action"),
    field("repairs", "Returns", "count", "n_repairs"),
    field("nodes", "Nodes", "count", "n_nodes"),
    field(
        "failed_again", "Failed again", "count", "n_failed", help=of_nodes.FAILED_AGAIN.definition
    ),
    field("fails_again_ratio", "Fail again", "share", "fails_again"),
    Column("exposure_node_days", "Node-days after", "number"),
    Column(
        "beside_repairs", "Beside other repairs", "rate", help=of_nodes.BESIDE_REPAIRS.definition
    ),
    Column("beside_nodes", "Beside other nodes", "rate", help=of_nodes.BESIDE_NODES.definition),
    Column("verdict", "Verdict"),
)
LIST = (
    *columns("node"),
    Column("did_not_hold", "Did not hold", "count", help=of_nodes.DID_NOT_HOLD.definition),
    Column("repairs", "Of returns", "count"),
    Column("by_hardware", "By hardware", "count"),
    Column("for_vendor", "For the vendor", "flag"),
    Column("p_value", "By chance", "decimal", help=of_nodes.NOT_HELD_BY_CHANCE.definition),
    Column("serials", "Serials", none="not stated by any source"),
    Column("vendors", "Vendor", none="not stated"),
    Column("evidence", "Evidence"),
    Column("observations", "Critical events", none="none recorded"),
)
NO_REPAIRS = Missing(
    "actions",
    "No return to service is known.",
    "Ingest repair tickets and times out of service:",
    (
        "faultline ingest tickets tickets.csv   # ticket_id,node,opened_at,closed_at,action,serial",
        "sacctmgr -P show event start=now-90days > events.txt",
        "faultline ingest sacctmgr-events events.txt",
    ),
)
NO_FAILURES = Missing(
    "actions",
    "No failure of the period names a node, so that nobody knows which node failed again.",
    "Ingest jobs with their nodes, and kernel or health events:",
    ("faultline ingest sacct sacct.txt", "faultline ingest kernel-log dmesg.txt"),
)


@dataclass(frozen=True)
class Held:
    """Repairs of the period, what came after them, and what is known of nodes that failed again."""

    found: RepairOutcomes
    n_repairs: int
    n_open: int
    n_failures: int
    n_ticketed: int
    """Repairs with a ticket."""
    serials: Mapping[Key, list[str]]
    observations: Mapping[Key, list[str]]
    sight: Sight
    """On which days failures could be seen."""

    @property
    def unseen(self) -> bool:
        """Whether no failure is known because none could be seen, or no job was recorded."""
        return not self.n_failures and (self.sight.none or self.sight.jobs_unknown)


def held(
    store: Store,
    selection: Selection,
    *,
    horizon_days: float = HORIZON_DAYS,
    conf_level: float = CONF_LEVEL,
) -> Held:
    """Which repairs of the period held."""
    failures = [Failure(*row) for row in records.failures(store, selection)]
    until_s = records.until(store, selection)
    stays = [Stay(*row) for row in records.stays(store, selection)]
    told = repairs(stays, failures, until_s)
    if selection.from_at is not None:
        begin_s = selection.from_at.timestamp()
        told_found = tuple(each for each in told.found if each.returned_s >= begin_s)
    else:
        told_found = told.found
    around = zones(told.found, horizon_days)
    after = list(
        zip((each.of for each in told_found), windows(told_found, horizon_days), strict=True)
    )
    away = [(of, span) for of, spans in around.items() for span in spans]
    in_service = records.in_service(store, selection)
    served = [span for span in (*after, *away) if span[0] in in_service]
    of_served = iter(records.exposure(store, selection, served))
    days = [next(of_served) if of in in_service else 0.0 for of, _ in (*after, *away)]
    found = outcomes(
        told_found,
        days[: len(after)],
        _others(in_service, failures, away, days[len(after) :]),
        horizon_days=horizon_days,
        conf_level=conf_level,
    )
    nodes = [each.of for each in found.returned]
    return Held(
        found,
        len(told_found),
        told.n_open,
        len(failures),
        sum(bool(each.tickets) for each in told_found),
        records.serials(store, nodes),
        records.observations(store, nodes),
        sight.sight(store, selection),
    )


def answer(
    ask: Ask,
    selection: Selection,
    *,
    horizon_days: float = HORIZON_DAYS,
    conf_level: float = CONF_LEVEL,
) -> Answer:
    """Do repairs hold, which do not, and which nodes are for their vendor?"""
    one = ask(held, selection, horizon_days=horizon_days, conf_level=conf_level)
    empty = NO_REPAIRS if not one.n_repairs else NO_FAILURES if not one.n_failures else None
    if one.n_repairs and one.unseen:
        empty = sight.missing("repairs", "Whether repairs hold", one.sight)
    listed = [_listed(each, one) for each in one.found.returned]
    by_action = Rows(ACTIONS, one.found.actions)
    actions = by_action.table("actions", "Did it hold, by what was done")
    several = len({cluster for cluster, _ in (each.of for each in one.found.returned)}) > 1
    of_cluster = columns("cluster") if several else columns(hidden=("cluster",))
    nodes = Rows((*LIST, *of_cluster), listed).table(
        "failed_again",
        "Nodes that failed again after a repair",
        empty="No node failed again within the horizon.",
        wrapped=True,
    )
    return Answer(
        sentence(one),
        () if empty else tuple(_headlines(one)),
        (empty,) if empty else (actions.first(MOST_ROWS), nodes.first(MOST_ROWS)),
        notes=() if empty else tuple(_notes(one)),
        terms=(of_nodes.BESIDE_REPAIRS,),
        record=_record(one, listed),
        sheet=by_action.sheet(),
    )


def sentence(one: Held) -> str:
    """What manager and vendor want to know."""
    found, horizon = one.found, f"{one.found.horizon_days:g} days"
    if not one.n_repairs:
        return "No return to service is known in this period: ingest tickets or node events."
    if one.unseen:
        n = numbers.counted(one.n_repairs, "return")
        held = sight.refused("Whether repairs hold", one.sight)
        return f"{n} to service; no failure names a node. {held}"
    if not one.n_failures:
        return f"{numbers.counted(one.n_repairs, 'return')} to service; no failure names a node."
    share = found.fails_again
    again = (
        f"After {numbers.percent(share.value)} of repairs the node fails again within {horizon}"
        if share.value is not None
        else f"No repair was watched for {horizon}: take a longer period or a shorter horizon"
    )
    if not _compared(found):
        return f"{again}; no action can be compared with others."
    if not found.failing:
        return f"{again}; no action is shown to hold less well than others."
    named = ", ".join(each.action for each in found.failing[:3])
    return f"{again}; what does not hold: {named}."


def _compared(found: RepairOutcomes) -> int:
    """Actions of which enough is known to hold them against others."""
    return sum(each.verdict != "too little data" for each in found.actions)


def _others(
    in_service: Mapping[Key, float],
    failures: list[Failure],
    away: list[tuple[Key, tuple[float, float]]],
    away_days: list[float],
) -> dict[Key, tuple[int, float]]:
    """Failures and node-days of each node outside its repairs and the horizons after them."""
    spans: dict[Key, list[tuple[float, float]]] = {}  # of a node apart, and in order of time
    days = dict(in_service)
    for (of, span), held_days in zip(away, away_days, strict=True):
        spans.setdefault(of, []).append(span)
        days[of] = max(0.0, days.get(of, 0.0) - held_days)
    begins = {of: [begin for begin, _ in apart] for of, apart in spans.items()}
    counts: Counter[Key] = Counter()
    for each in failures:
        of = (each.cluster, each.node)
        before = bisect_left(begins.get(of, ()), each.at_s)
        counts[of] += not before or each.at_s > spans[of][before - 1][1]
    return {of: (counts[of], held_days) for of, held_days in days.items()}


def _listed(each: Returned, one: Held) -> dict[str, Any]:
    """A row of the list, as all surfaces show it."""
    tickets = [ticket for repair in each.repairs for ticket in repair.tickets]
    parts = [f"{t.component or 'part'} {t.serial}" for t in tickets if t.serial]
    vendors = dict.fromkeys(t.vendor for t in tickets if t.vendor)
    serials = list(dict.fromkeys([*parts, *one.serials.get(each.of, [])]))
    told = each.repairs[-MOST_TOLD:]
    more = len(each.repairs) - len(told)
    evidence = "; ".join(_told(repair) for repair in told)
    return {
        "node": each.of[1],
        "did_not_hold": len(each.repairs),
        "repairs": each.n_repairs,
        "by_hardware": each.n_hardware,
        "for_vendor": each.for_vendor,
        "p_value": each.p_value,
        "serials": ", ".join(serials) or None,
        "vendors": ", ".join(vendors) or None,
        "evidence": f"{more:,} earlier; {evidence}" if more else evidence,
        "observations": ", ".join(one.observations.get(each.of, [])) or None,
        "cluster": each.of[0],
    }


def _told(repair: Repair) -> str:
    """One repair that did not hold."""
    back = datetime.fromtimestamp(repair.returned_s, UTC)
    numbered = ", ".join(ticket.key for ticket in repair.tickets)
    done = f"{repair.action} ({numbered})" if numbered else repair.action
    cause = (repair.failure and repair.failure.cause) or "cause unknown"
    return f"{numbers.day(back)} back after {done}, failed {repair.days:.1f} d later: {cause}"


def _headlines(one: Held) -> Iterator[Number]:
    found = one.found
    compared = _compared(found)
    yield estimated(
        of_nodes.FAIL_AGAIN,
        "share",
        found.fails_again,
        more=f", within {found.horizon_days:g} days",
    )
    yield estimated(of_nodes.BESIDE_NODES, "rate", found.beside_nodes)
    yield composed(
        of_nodes.DO_NOT_HOLD,
        f"{len(found.failing):,} of {compared:,}" if compared else numbers.UNKNOWN,
        "compared with others" if compared else "too little data to compare any",
        exact=len(found.failing) if compared else None,
    )
    vendor = sum(each.for_vendor for each in found.returned)
    several = numbers.counted(len(found.returned), "node")
    yield composed(
        of_nodes.VENDOR, numbers.count(vendor), f"of {several} that failed again", exact=vendor
    )


def _notes(one: Held) -> Iterator[str]:
    """What the comparison rests on."""
    yield (
        "How nodes did before their repair is no comparison, since they were repaired because "
        "they failed. Actions for different troubles differ by these, too."
    )
    if not one.n_ticketed:
        yield (
            "No ticket says what was done: ingest them with `faultline ingest tickets` to compare "
            "actions."
        )
    elif one.n_ticketed < one.n_repairs:
        without = numbers.counted(one.n_repairs - one.n_ticketed, "return")
        yield f"{without} to service without a ticket: what was done there is not known."
    if one.n_open:
        yield (
            f"{numbers.counted(one.n_open, 'outage or ticket', 'outages and tickets')} without an "
            "end: no return, so not judged."
        )


def _record(one: Held, listed: list[dict[str, Any]]) -> dict[str, Any]:
    """What JSON prints."""
    nodes = [
        row | {"returns": [_return(repair) for repair in each.repairs]}
        for row, each in zip(listed, one.found.returned, strict=True)
    ]
    return {
        "horizon_days": one.found.horizon_days,
        "repairs": one.n_repairs,
        **sight.record(one.sight),
        "without_end": one.n_open,
        "fails_again_ratio": one.found.fails_again,
        "beside_nodes": one.found.beside_nodes,
        "actions": Rows(ACTIONS, one.found.actions).records(),
        "failed_again": nodes,
    }


def _return(repair: Repair) -> dict[str, Any]:
    """A repair that did not hold, in JSON."""
    failure = repair.failure
    return {
        "began_at": datetime.fromtimestamp(repair.began_s, UTC),
        "returned_at": datetime.fromtimestamp(repair.returned_s, UTC),
        "action": repair.action,
        "tickets": [ticket.key for ticket in repair.tickets],
        "failed_at": failure and datetime.fromtimestamp(failure.at_s, UTC),
        "days": (repair.until_s - repair.returned_s) / DAY_S,
        "cause": failure and failure.cause,
        "attempt_key": failure and failure.key,
    }
