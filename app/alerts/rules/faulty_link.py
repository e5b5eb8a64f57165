"""A link of a node is faulty: its errors come back.

It rests on health events, critical or fatal, of NVLink, InfiniBand and Ethernet links: samples of
delays between hosts are read from files (`faultline links`) and never stored.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

from analytics.failures.evidence import of_events
from analytics.failures.precedence import weights
from app.alerts.past import reached
from app.alerts.rule import Episode, Found, Rule
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet.actions import action
from app.words import moments, numbers
from app.words.plain import in_a_row, in_a_sentence
from data.queries import link_events
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from app.alerts.rule import Watch
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

LINKS = ("nvlink", "ib_link", "ethernet_link")
"""Causes that are a link's."""
CALM = timedelta(days=1)
"""Time without an error of its links after which a node is told no more."""
TIMES = 2
"""Stretches of ten minutes with an error before it is told: a single one heals by itself."""
BLIND = "cannot be judged: no kernel log and no health check was collected"
Event = tuple[datetime, datetime, str, bool]
"""First and last time, cause, and whether it was fatal."""


def of_links(
    store: Store, selection: Selection, since_at: datetime
) -> dict[tuple[str, str], list[Event]]:
    """Cluster and node -> grave events of its links, in order."""
    found = link_events.grave(store, selection, since_at)
    site = load_site(store.root)
    cause = of_events(found, weights(site.attribution.table, site.causes))["cause"]
    of_node: dict[tuple[str, str], list[Event]] = {}
    kept = found.assign(cause=cause)[cause.isin(LINKS)]
    for row in kept.to_dict("records"):
        event = (row["first_at"], row["last_at"], str(row["cause"]), row["severity"] == "fatal")
        of_node.setdefault((str(row["cluster"]), str(row["node"])), []).append(event)
    return of_node


def find(ask: Ask, watch: Watch) -> Found:
    """Nodes whose links had errors again within a day, or a fatal one."""
    if not ask(link_events.can_show, watch.selection):
        return Found(blind=BLIND)
    since_at = watch.from_at - CALM
    events = ask(of_links, watch.selection, since_at)
    titles = ask(cause_titles)
    found = [
        episode
        for (cluster, node), of_node in events.items()
        for together in _together([each for each in of_node if each[0] <= watch.now])
        for episode in _episode(cluster, node, together, watch, titles)
    ]
    return Found(reached(_joined(found, ask, watch.selection, since_at), watch))


def _joined(
    found: Sequence[Episode], ask: Ask, selection: Selection, since_at: datetime
) -> list[Episode]:
    """Episodes with the incident that their events belong to, the first of several."""
    bursts = ask(link_events.incidents, selection, since_at) if found else []
    of_node: dict[tuple[str, str], list[tuple[datetime, datetime, str]]] = {}
    for cluster, node, first_at, last_at, incident_id in bursts:
        of_node.setdefault((cluster, node), []).append((first_at, last_at, incident_id))
    joined = []
    for each in found:
        name = (each.named["cluster"], each.named["node"])
        incident = next(
            (
                incident_id
                for first_at, last_at, incident_id in of_node.get(name, ())
                if last_at >= each.since_at and not (each.ended_at and first_at >= each.ended_at)
            ),
            None,
        )
        joined.append(replace(each, incident=incident))
    return joined


def _together(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Events between which no day lies."""
    group: list[Event] = []
    for event in events:
        if group and event[0] - group[-1][1] >= CALM:
            yield group
            group = []
        group.append(event)
    if group:
        yield group


def _episode(
    cluster: str, node: str, events: Sequence[Event], watch: Watch, titles: Mapping[str, str]
) -> Iterator[Episode]:
    slots = groupby(events, key=lambda each: int(each[0].timestamp()) // link_events.SLOT_S)
    times = [(min(each[0] for each in of_slot), of_slot) for _, of_slot in _held(slots)]
    grave = [each[0] for each in events if each[3]]
    again = times[TIMES - 1][0] if len(times) >= TIMES else None
    raised = min([*grave[:1], *([] if again is None else [again])], default=None)
    if raised is None:
        return
    last_at = max(each[1] for each in events)
    n_times = numbers.counted(len(times), "time")
    causes = dict.fromkeys(in_a_sentence(titles.get(each[2], each[2])) for each in events)
    yield Episode(
        action.target("node", cluster, node),
        events[0][0],
        raised,
        last_at + CALM if last_at + CALM <= watch.now else None,
        f"{node}: {in_a_row(list(causes))}, {n_times} from {moments.minute(events[0][0])} to "
        f"{moments.minute(last_at)} UTC, by health events",
        "node",
        {"node": node, "cluster": cluster},
        severity="critical" if grave else None,
    )


def _held(slots: Any) -> Iterator[tuple[int, list[Event]]]:
    return ((slot, list(of_slot)) for slot, of_slot in slots)


RULE = Rule(
    "faulty_link",
    "Link faulty",
    "Errors of a link of a node (NVLink, InfiniBand, Ethernet) came back within a day, or one was "
    "fatal, by kernel log and health checks.",
    "Take the node out, and have the link, its cable and its switch port tested.",
    "warning",
    find,
)
