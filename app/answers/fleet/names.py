"""Under which names do the records know each node, and which name no cluster of the store?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.answers.columns import columns
from app.answers.described import Rows, field
from app.words import numbers
from app.words.cells import Column
from app.words.plain import first_few
from data.queries import fleet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import pandas as pd

    from app.answers.content import Table
    from data.filters import Selection
    from data.queries.fleet import Homeless
    from data.store import Store

COLUMNS = (
    *columns("node"),
    Column("written", "Written as"),
    Column("why", "Why"),
    Column("n_records", "Records", "count", none="not counted"),
    Column("sources", "Tables", none="not counted"),
    *columns("cluster"),
)
IN_LOGS = "in_logs_alone"
WHY = {
    "case": "equal but for upper and lower case",
    "domain": "equal without its domain",
    "alias": "site.toml says so",
    "ambiguous": "could be any of several nodes: left apart",
    IN_LOGS: "no compute node: only logs name it",
}
"""By rule."""
WHY_HOMELESS = {
    "none": "no cluster of the store knows the host or job",
    "several": "several clusters know the host or job",
}
"""By what tells the cluster (`cluster_from`)."""


_TOLD = 3
"""Names that a sentence tells."""


@dataclass(frozen=True)
class Names:
    """Names of the nodes of the selected clusters."""

    named: pd.DataFrame
    """Columns cluster, written, node, rule, sources, n_records: names other than a node's own."""
    in_logs: pd.DataFrame
    """Columns cluster, node, first_seen_at, last_seen_at: hosts that only logs name."""


def names(store: Store, selection: Selection) -> Names:
    """Under which names records know each node, and hosts that only logs name."""
    return Names(fleet.node_names(store, selection), fleet.hosts_in_logs_alone(store, selection))


def table(shown: Names) -> Table:
    """Names of nodes other than their own, then hosts that only logs name."""
    named = [row | {"why": WHY[row["rule"]]} for row in shown.named.to_dict("records")]
    hosts = [
        row | {"written": row["node"], "why": WHY[IN_LOGS], "n_records": None, "sources": None}
        for row in shown.in_logs.to_dict("records")
    ]
    return Rows(COLUMNS, [*named, *hosts]).table(
        "node_names",
        "Names of nodes",
        empty="Every node is written under one name, and the scheduler or an inventory knows each.",
    )


def record(shown: Names) -> dict[str, object]:
    """The JSON of the command."""
    return {"node_names": shown.named, "hosts_in_logs_alone": shown.in_logs}


def notes(shown: Names) -> Iterator[str]:
    """What was merged, what was left apart, and which hosts are no compute nodes."""
    named = zip(shown.named["written"], shown.named["node"], shown.named["rule"], strict=True)
    hosts = [(node, node, IN_LOGS) for node in shown.in_logs["node"]]
    return told([*named, *hosts])


def told(triples: Collection[tuple[str, str, str]]) -> Iterator[str]:
    """Sentences about (name, node, rule)."""
    merged = sorted(f"{name} is {node}" for name, node, rule in triples if name != node)
    apart = sorted(name for name, _, rule in triples if rule == "ambiguous")
    hosts = sorted(name for name, _, rule in triples if rule == IN_LOGS)
    if merged:
        counts = "name is another name of a node and counts"
        if len(merged) > 1:
            counts = "names are other names of a node and count"
        yield f"{len(merged):,} {counts} for it: {first_few(merged, _TOLD)}."
    if apart:
        yield (
            f"{numbers.counted(len(apart), 'name')} could mean any of several nodes and "
            f"{'is' if len(apart) == 1 else 'are'} left apart: {first_few(apart, _TOLD)}. [nodes] "
            "in site.toml says which."
        )
    if hosts:
        named = "is named by logs alone and counts"
        if len(hosts) > 1:
            named = "are named by logs alone and count"
        yield (
            f"{numbers.counted(len(hosts), 'host')} {named} as no compute node (no GPU-hours, no "
            f"idle time): {first_few(hosts, _TOLD)}. Where one is a node under another name, "
            "[nodes] in site.toml says so."
        )


def without_cluster(store: Store) -> tuple[Homeless, ...]:
    """Records that belong to no cluster so far, by table."""
    return tuple(fleet.without_cluster(store))


def _names_of(records: Homeless) -> str | None:
    return first_few(records.names, _TOLD, n=records.n_names) or None


HOMELESS = (
    field("table", "Table"),
    field("n_records", "Records", "count"),
    field("named", "Hosts or jobs they name", of=_names_of, none="none"),
    field("why", "Why", of=lambda records: WHY_HOMELESS[records.cluster_from]),
    *columns("cluster"),
)


def without_cluster_table(homeless: Sequence[Homeless]) -> Table:
    """Records without a cluster, and the hosts or jobs that they name."""
    return Rows(HOMELESS, homeless).table(
        "records_without_cluster",
        "Records without a cluster",
        empty="Every record belongs to a cluster.",
    )


def without_cluster_notes(homeless: Sequence[Homeless]) -> Iterator[str]:
    """How many records count in no cluster, and what to do."""
    n_records = sum(records.n_records for records in homeless)
    if n_records:
        tables = ", ".join(dict.fromkeys(records.table for records in homeless))
        yield (
            f"{numbers.counted(n_records, 'record')} of {tables} without a cluster: their source "
            "names none, and none or several of the store know their host or job. They count "
            "nowhere until the records of their cluster are read; --cluster says which it is."
        )
