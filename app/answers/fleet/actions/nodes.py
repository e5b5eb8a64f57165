"""Nodes that should be drained, and hosts that no job used and that need somebody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.failures.evidence import of_events
from analytics.failures.precedence import weights
from analytics.nodes.host_findings import host_findings
from app.answers.failures.node import no_job_known
from app.answers.fleet.actions.action import Action, target
from app.answers.nodes import lemons
from app.words import moments, numbers
from data.queries import hosts
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from analytics.nodes.host_findings import HostFinding, Told
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

REASONS = 2
"""Reasons told here; the node's page has all."""
SAVED = "that draining it saves in as many days as were looked at"
KINDS = 3
"""Kinds of events told here; the host's page has all."""
_STORED = "what is stored there or served from there"
_REACHED = "whoever reaches it over the network"
_STOPS = "all that runs there, as it can stop at any time"
AT_RISK = {
    "disk": _STORED, "filesystem_mount": "whoever works with files from there",
    "nic": _REACHED, "ib_link": _REACHED, "ethernet_link": _REACHED, "network": _REACHED,
    "host_memory": _STOPS, "cpu": _STOPS, "pcie": _STOPS, "operating_system": _STOPS,
}  # fmt: skip
"""Cause -> what is at risk where the host runs no job."""
NOT_KNOWN = "not known: no job is known to have run there"
SERVED = "what this host serves"


def of_lemons(ask: Ask, selection: Selection) -> Iterator[Action]:
    """Nodes that are lemons, with what draining them saves."""
    for row in lemons.ranked(ask, selection):
        if row["verdict"] == "lemon":
            saved = row["saved_gpu_hours"]
            known = saved is not None and saved.value is not None
            yield Action(
                "node",
                target("node", row["cluster"], row["node"]),
                what=f"Drain {row['node']}",
                why="; ".join(row["reasons"][:REASONS]),
                stake=saved if known else None,
                stake_basis=SAVED if known else "no GPU-hours of its failures are known",
                page="node",
                named={"node": str(row["node"]), "cluster": str(row["cluster"])},
            )


Host = tuple[str | None, str]


def found(store: Store, selection: Selection) -> tuple[HostFinding, ...]:
    """Hosts that no job used and that need somebody; what programs run into is left out."""
    rows = hosts.warned(store, selection)
    site = load_site(store.root)
    cause = of_events(rows, weights(site.attribution.table, site.causes))["cause"]
    of_user = cause.map(lambda name: name is not None and site.causes.domain_of(name) == "user")
    rows = rows.assign(cause=cause, what=[_called(row) for row in rows.to_dict("records")])
    return host_findings(rows[~of_user.astype(bool)])


def of_hosts(ask: Ask, selection: Selection, told: Collection[Host] = ()) -> Iterator[Action]:
    """Hosts that need somebody, but those that another row tells."""
    for each in ask(found, selection):
        if (each.cluster, each.node) not in told:
            yield _of_host(ask, each)


def _of_host(ask: Ask, one: HostFinding) -> Action:
    """A host: nobody can say how many GPU-hours hang on it."""
    first = one.told[0]
    more = len(one.told) - KINDS
    kinds = [_in_words(each) for each in one.told[:KINDS]]
    kinds += [f"{numbers.counted(more, 'other kind')} of events"] if more > 0 else []
    whose = "" if one.cluster is not None else "; cluster unknown"
    risk = AT_RISK.get(first.cause or "", SERVED)
    return Action(
        "host",
        target("host", one.cluster or "", one.node),
        what=f"Look after host {one.node}: {first.what}",
        why=f"{'; '.join(kinds)}; at risk: {risk}{whose}; {no_job_known(ask, one.cluster)}",
        stake=None,
        stake_basis=NOT_KNOWN,
        page="node",
        named={"node": one.node} | ({} if one.cluster is None else {"cluster": one.cluster}),
        hides=(3 if first.grave else 1, float(one.n_times)),
    )


def _in_words(told: Told) -> str:
    """What, how often and since when."""
    if told.n_times == 1:
        return f"{told.what} on {moments.minute(told.first_at)} UTC"
    since = f"{moments.minute(told.first_at)} to {moments.minute(told.last_at)} UTC"
    return f"{told.what} {numbers.counted(told.n_times, 'time')}, {since}"


def _called(row: dict[object, object]) -> str:
    """What an event is called: its code, else its check."""
    for code, name in (("xid", "XID"), ("sxid", "SXid")):
        if row[code] == row[code] and row[code] is not None:
            return f"{name} {int(str(row[code]).partition('.')[0])}"
    return str(row["check_name"] or "event").replace("_", " ")
