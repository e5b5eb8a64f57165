"""What happened on this node, and what did it end?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from analytics.failures.node_history import Node
from analytics.fleet.node_identity import folded, short_name
from app.answers.columns import columns, texts
from app.answers.content import Answer, Chart, Missing, Number, Part, Table, composed
from app.answers.failures import incidents
from app.answers.failures.taxonomy import cause_titles
from app.answers.nodes import lemons
from app.answers.reliability import sight
from app.ask import EVERYTHING
from app.words import numbers, terms
from app.words.cells import Column
from app.words.glossary import of_failures, of_nodes
from app.words.plain import in_a_row
from data.errors import DataError
from data.filters import Selection
from data.queries import failures as failure_queries
from data.queries import fleet as fleet_queries
from data.queries import hosts, metrics, targets
from data.queries import incidents as incident_queries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from app.ask import Ask
    from app.words.terms import Term
    from data.store import Store

OUT, URGENT, ENDED = "was out of service", "had critical events", "ended attempts"
REPAIRED, NAMED = "was repaired", "was named"
UNSHOWN = "no source of then shows it"
READ = 5000
"""Records of one kind that are read, the latest."""
MARKS = (
    "A cross is a failed attempt in the colour of its domain, large where this node "
    "ended it. Outlined outages were planned."
)
JOBS = (
    *columns("job_id", "attempt", "state", "start_at", "end_at"),
    *columns("n_nodes", "name", wide=("n_nodes", "name")),
    Column("cause", "Cause", none="it did not fail"),
    Column("domain", "Domain", none="it did not fail", wide=True),
    Column("here", "By this node", "flag", help=of_failures.BY_THIS_NODE.definition),
    *columns("n_gpus", "user", "account"),
    *columns("attempt_key", "cluster", wide=("attempt_key", "cluster")),
)
OUTAGES = (
    Column("start_at", "From", "time", "UTC"),
    Column("end_at", "To", "time", "UTC", none="lasts"),
    Column("what", "State"),
    Column("text", "Reason", none="not stated by the source"),
    Column("key", "Key", wide=True),
)
EVENTS = (
    Column("start_at", "Time", "second", "UTC"),
    Column("what", "Check or code"),
    *columns("severity"),
    Column("text", "Message", none="not stated by the source"),
    Column("key", "Key", wide=True),
)
TICKETS = (
    Column("key", "Ticket"),
    Column("start_at", "Opened", "time", "UTC"),
    Column("end_at", "Closed", "time", "UTC", none="open"),
    Column("what", "Component"),
    Column("text", "What was done", none="not stated by the source"),
)
FACTS = (
    Column("key", "Fact"),
    Column("value", "Value"),
    Column("from_at", "From", "time", "UTC"),
    Column("to_at", "To", "time", "UTC", none="holds"),
)
NO_HISTORY = Missing(
    "node_history",
    "Nothing was recorded of this node in the period.",
    "Choose a longer period, or ingest more about nodes:",
    (
        "sacctmgr -P show event start=now-90days > events.txt",
        "faultline ingest sacctmgr-events events.txt",
        "faultline ingest kernel-log kernel-*.log",
    ),
)


def node(store: Store, name: str, selection: Selection) -> Node:
    """What was recorded of a node in the period, whichever of its names is given; the selection
    names its cluster where several have it.

    Raises
    ------
    DataError
        Where no cluster has such a node, or several have and none is named.
    """
    text, cluster = folded(name), selection.cluster
    called = fleet_queries.nodes_called(store, name, like=(text, short_name(text)))
    if cluster is None and len({of for of, _ in called}) > 1:
        clusters = ", ".join(of or "a cluster that is not known" for of, _ in called)
        raise DataError(f"node {name!r} is in {clusters}: choose one cluster")
    called = [(of, own) for of, own in called if cluster in (None, of)]
    if len(called) > 1:
        several = " or ".join(own for _, own in called)
        raise DataError(f"node {name!r} is {several}: name one of them")
    if not called:
        known = (cluster,) if cluster is not None else fleet_queries.clusters(store)["cluster"]
        near = [key for c in known for key in targets.nearest(store, "node", f"{c}/{name}")]
        raise DataError(
            f"node {name!r} is not in the store: "
            + (f"did you mean {near[0]}?" if near else "no record names it")
        )
    ((cluster, name),) = called
    return Node(
        cluster=cluster,
        node=name,
        facts=failure_queries.node_facts(store, cluster, name),
        history=failure_queries.node_history(store, cluster, name, selection),
        attempts=failure_queries.node_attempts(store, cluster, name, selection),
        said=failure_queries.said_of(store, "node", f"{cluster}/{name}"),
    )


def named_in(store: Store, cluster: str | None, name: str) -> pd.DataFrame:
    """Incidents in which a node is named, the latest first, whatever the period."""
    return incidents.listed(incident_queries.of_node(store, cluster, name))


def in_no_incident(ask: Ask, cluster: str | None) -> str:
    """The sentence about a node that no incident names."""
    what = "Whether an incident names this node"
    if cluster is None:
        return f"{what} {sight.CANNOT}: its cluster is not known."
    seen = ask(sight.sight, Selection(cluster))
    return sight.refused(what, seen) if seen.none else "No incident names this node."


def answer(ask: Ask, name: str, selection: Selection) -> Answer:
    """What happened on this node in the period, and what did it end?"""
    one = ask(node, name, selection)
    titles = ask(cause_titles)
    named = in_period(ask(named_in, one.cluster, one.node), selection)
    without = without_jobs(ask, one)
    judged = lemons.of_node(ask, one.cluster, one.node, selection)
    verdict, *verdict_table = ("",) if judged is None else judged
    known: Collection[str] = ()
    unseen: Iterable[str] = ()
    if one.cluster is not None:
        of_cluster = replace(selection, cluster=one.cluster)
        known = ask(shown_by, of_cluster)
        unseen = sight.notes(ask(sight.sight, of_cluster), "its failures")
    return Answer(
        sentence(one, known, without, verdict),
        headlines(one, named, selection, known=known, without=without),
        (
            *verdict_table,
            history(one, titles, selection),
            listed_incidents(named, known),
            failed(one, titles, known),
            outages(one),
            urgent_events(one),
            tickets(one),
            facts(one),
        ),
        notes=(
            *(
                f"Only the latest {READ:,} {name} are counted: choose a shorter period."
                for name, rows in {"records": one.history, "attempts": one.attempts}.items()
                if len(rows) >= READ
            ),
            *unseen,
        ),
        terms=terms.DOMAINS,
    )


def shown_by(store: Store, selection: Selection) -> frozenset[str]:
    """What the sources of the cluster and period show of any node: OUT, URGENT, ENDED and so on."""
    seen = sight.sight(store, selection)
    showing = {source for cluster in seen.clusters for source in cluster.showing}
    ever = set(fleet_queries.coverage_days(store, Selection(selection.cluster))["source"])
    shows = {
        OUT: "node_events" in showing,
        URGENT: any(source.startswith("health_events.") for source in showing),
        ENDED: not seen.none and not seen.jobs_unknown,
        REPAIRED: "tickets" in ever,
        NAMED: not seen.none,
    }
    return frozenset(name for name, shown in shows.items() if shown)


def sentence(
    one: Node, known: Collection[str], without: str | None = None, verdict: str = ""
) -> str:
    """What happened on the node, as far as sources of the period show it.

    `without` is the reason why no job is known to have run there; `verdict` says that it is a lemon
    or to be watched.
    """
    who = f"{one.node} {verdict}: it" if verdict else one.node
    times = numbers.counted(len(one.outages), "time")
    if without is not None:
        events = numbers.counted(len(one.events), "health event")
        urgent = f", {len(one.urgent):,} of them critical or fatal" if len(one.events) else ""
        outages = f", was out of service {times}" if len(one.outages) else ""
        return f"{who} had {events}{urgent}{outages} in this period; {without}."
    urgent = numbers.counted(len(one.urgent), "critical or fatal event")
    counts = {
        OUT: (one.outages, f"was out of service {times}"),
        URGENT: (one.urgent, f"had {urgent}"),
        ENDED: (one.failed_here, f"ended {numbers.counted(len(one.failed_here), 'attempt')}"),
    }
    said = [text for name, (rows, text) in counts.items() if len(rows) or name in known]
    unseen = [name for name, (rows, _) in counts.items() if rows.empty and name not in known]
    if said:
        happened = f"{who} {in_a_row(said)} in this period"
    elif verdict:
        happened = f"{one.node} {verdict}"
    else:
        happened = f"Nothing was seen of {one.node} in this period"
    if not unseen:
        return f"{happened}."
    return f"{happened}; whether it {in_a_row(unseen, 'or')} {sight.CANNOT}: {UNSHOWN}."


def without_jobs(ask: Ask, one: Node) -> str | None:
    """That no job is known to have run on it; None where one did, in whatever period."""
    known = ask(hosts.used, one.cluster, one.node)
    return None if known else no_job_known(ask, one.cluster)


def whose(one: Node) -> str:
    """Its cluster."""
    return "cluster unknown" if one.cluster is None else f"cluster {one.cluster}"


def basis(one: Node) -> str:
    """Rack, driver and the like in one line."""
    latest = one.facts.drop_duplicates("key")
    known = dict(zip(latest["key"], latest["value"], strict=True))
    shown = [f"{key} {value}" for key, value in known.items() if " of GPU " not in key][:8]
    return " · ".join([whose(one), *shown, *(f"status {s}" for s in one.status)])


def headlines(
    one: Node,
    named: pd.DataFrame,
    selection: Selection,
    *,
    known: Collection[str],
    without: str | None = None,
) -> tuple[Number, ...]:
    """Outages, urgent events, attempts it ended and tickets, each with its rows; incidents.

    Of a host without jobs what it ended is unknown, and so are outages and tickets where none is
    recorded.
    """

    def count(term: Term, rows: pd.DataFrame, parts: str, of: str, kind: str = "") -> Number:
        if without is not None and of == ENDED:
            return Number(term, numbers.UNKNOWN, without)
        if without is not None and of in (OUT, REPAIRED) and rows.empty:
            return Number(term, numbers.UNKNOWN, "none is recorded")
        if rows.empty and of not in known:
            return Number(term, numbers.UNKNOWN, f"{sight.CANNOT}: {UNSHOWN}")
        part = Part("Records behind the number", _behind, (one.node, selection, kind))
        n = len(rows)
        return composed(term, numbers.count(n), parts, exact=n, opens=part if kind else None)

    events = f"of {numbers.counted(len(one.events), 'health event')}"
    ran = f"of {len(one.failed):,} failed, {len(one.attempts):,} ran here"
    return (
        count(terms.NODE_OUTAGES, one.outages, f"{len(one.planned):,} planned", OUT, "outages"),
        count(terms.NODE_EVENTS, one.urgent, events, URGENT, "urgent"),
        count(terms.NODE_FAILURES, one.failed_here, ran, ENDED, "failed_here"),
        count(terms.NODE_TICKETS, one.tickets, f"{one.n_open_tickets:,} open", REPAIRED, "tickets"),
        count(terms.NODE_INCIDENTS, named, "", NAMED),
    )


def history(one: Node, titles: Mapping[str, str], selection: Selection) -> Chart | Missing:
    """Jobs, events, outages and tickets on one axis, or what would bring them."""
    period = one.period(selection.from_at, selection.to_at)
    if period is None:
        return NO_HISTORY
    attempts = one.attempts.assign(here=one.attempts.index.isin(one.failed_here.index))
    return Chart(
        "failures.node_history",
        "What happened on this node?",
        MARKS,
        (one.history, attempts),
        options={"titles": titles, "period": period},
        captioned=True,
        zoned=True,
        rows=one.history,
    )


def jobs(one: Node) -> Table:
    """Attempts that ran on it, the latest first."""
    rows, empty = one.attempts.assign(cluster=one.cluster), "No job ran on this node in the period."
    return Table("node_jobs", "Jobs", JOBS, rows, empty)


def failed(one: Node, titles: Mapping[str, str], known: Collection[str]) -> Table:
    """Attempts that failed while they ran here: those that this node ended, then the others."""
    here = one.failed_here
    rows = pd.concat([here, one.failed.drop(here.index)])
    rows = rows.assign(
        cluster=one.cluster, here=rows.index.isin(here.index), cause=rows["cause"].replace(titles)
    )
    title = "Attempts that failed while they ran here"
    empty = "None." if ENDED in known else f"Whether it {ENDED} {sight.CANNOT}: {UNSHOWN}."
    return Table("failed_attempts", title, JOBS, rows, empty)


def listed_incidents(named: pd.DataFrame, known: Collection[str]) -> Table:
    """Incidents in which the node is named, the latest first."""
    title = "Incidents that name this node"
    empty = "No incident of the period names it."
    if NAMED not in known:
        empty = f"Whether an incident of the period names it {sight.BASIS}."
    return incidents.brief(named, title, empty)


def in_period(named: pd.DataFrame, selection: Selection) -> pd.DataFrame:
    """Incidents that touch the period."""
    if selection.from_at is not None:
        named = named[named["end_at"] >= pd.Timestamp(selection.from_at)]
    if selection.to_at is not None:
        named = named[named["start_at"] < pd.Timestamp(selection.to_at)]
    return named


def outages(one: Node) -> Table:
    """Outages, and failures that a failure log lists, the latest first."""
    rows = one.history[one.history["kind"].isin(("node_event", "node_failure"))]
    return _records(rows, "outages", "Out of service", OUTAGES)


def events(one: Node) -> Table:
    """All health events, the latest first."""
    return _records(one.events, "events", "Health events", EVENTS)


def urgent_events(one: Node) -> Table:
    """Health events, the critical and fatal ones alone where there are any."""
    if one.urgent.empty:
        return events(one)
    shown = _records(one.urgent, "events", "Critical and fatal events", EVENTS)
    aside = len(one.events) - len(one.urgent)
    note = f"{numbers.counted(aside, 'other event')} in the period." if aside else ""
    return replace(shown, note=note)


def tickets(one: Node) -> Table:
    """Repair tickets, the latest first."""
    return _records(one.tickets, "tickets", "Repair tickets", TICKETS)


def facts(one: Node) -> Table:
    """What is known of the node, and for which time."""
    return Table("facts", "Facts", FACTS, texts(one.facts, "value"), "Nothing is known of it.")


def _records(rows: pd.DataFrame, key: str, title: str, shown: tuple[Column, ...]) -> Table:
    return Table(key, title, shown, texts(rows, "text"), "No record of it in the period.")


def _behind(
    ask: Ask, name: str, selection: Selection, kind: str, *, limit: int = EVERYTHING
) -> Table:
    one = ask(node, name, selection)
    table = {
        "outages": lambda: _records(one.outages, "outages", "Out of service", OUTAGES),
        "urgent": lambda: urgent_events(one),
        "failed_here": lambda: jobs(replace(one, attempts=one.failed_here)),
        "tickets": lambda: tickets(one),
    }[kind]()
    return replace(table, key="node_dialog", rows=table.rows[:limit], note="")


def no_job_known(ask: Ask, cluster: str | None) -> str:
    """How sure the cluster's records are that no job ran on a host."""
    n_ran, n_unplaced = ask(hosts.placed).get(cluster, (0, 0))
    if not n_ran:
        return f"the records hold no job{'' if cluster is None else f' of cluster {cluster}'}"
    if n_unplaced:
        where = f"nothing says where {n_unplaced:,} of {n_ran:,} attempts ran"
        return f"no job is known to have run here; {where}"
    return "no job ran here in the records"


METRICS = (
    Column("metric", "Metric"),
    *columns("gpu"),
    Column("unit", "Unit", none="nobody says"),
    Column("minimum", "Least", "number"),
    Column("mean", "Mean", "number"),
    Column("maximum", "Greatest", "number"),
    Column("increase", "Rose by", "number", none="a gauge, or one sample alone",
           help=of_nodes.ROSE_BY.definition),
    Column("n", "Samples", "count"),
    Column("hour_at", "Last hour", "time", "UTC"),
)  # fmt: skip
NO_METRICS = Missing(
    "metrics",
    "No metric of this node is known in these days.",
    "Ingest what its exporters say:",
    (
        "faultline ingest dcgm metrics.txt",
        "faultline ingest prometheus-json answer.json",
        "faultline ingest infiniband counters.txt",
    ),
)


def metrics_of(ask: Ask, cluster: str | None, node: str, selection: Selection) -> Table | Missing:
    """Metrics of the node in the period, a row a metric and GPU."""
    rows = ask(metrics.of_node, cluster, node, selection)
    return NO_METRICS if rows.empty else Table("metrics", "Metrics", METRICS, rows)
