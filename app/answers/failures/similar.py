"""Which other incidents are like this one, and how did they end?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from analytics.failures.incidents import similar as alike
from analytics.failures.incidents.recovery import Recovery, recovery
from analytics.failures.incidents.similar import RULE, Similar, Traits
from app.answers.columns import columns
from app.answers.described import JSON, Rows, field
from app.answers.failures import incidents
from app.answers.failures.replay import collected, recovered
from app.ask import EVERYTHING
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_failures
from app.words.plain import first_few, shortened
from data.filters import Selection
from data.queries import incident_replay
from data.queries import incidents as incident_queries

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from analytics.failures.incidents.incident import Incident
    from app.answers.content import Table
    from app.ask import Ask
    from data.store import Store

LISTED = 10
"""Similar incidents that are listed at most."""
SAID = ("remedy", "note")
"""What people said of an incident, in words of their own."""
LONGEST = 40
"""Characters of a signature that a reason quotes."""
DESCRIBED = (
    *columns("incident_id"),
    Column("start_at", "Began", "time", "UTC"),
    Column("reason", "Why similar"),
    Column("recovery_hours", of_failures.RECOVERED_AFTER.label, "number", "h", none="not known",
           help=of_failures.RECOVERED_AFTER.definition),
    *columns("status"),
    Column("remedy", "What was done", none="not said"),
    Column("note", "Note", none="none"),
    *columns("summary"),
    Column("recovery", "What came back", wide=True),
    field("nodes", on=JSON),
    field("signatures", on=JSON),
    field("same_cause", on=JSON),
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """The incidents that are like one."""

    similar: Sequence[Similar]
    """The most alike first."""
    n_compared: int
    """Other incidents of the cluster."""
    since: pd.Timestamp | None
    """When the first of them began."""
    rows: pd.DataFrame
    """Of the first of them, by incident_id: start_at, summary, status, remedy, note."""
    recoveries: dict[str, Recovery]
    """How these ended."""


def compared(store: Store, cluster: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What an incident of a cluster is compared with: the incidents that are left of it, and what
    was seen in each (columns incident_id, kind, text)."""
    rows = incident_queries.incident_rows(store, Selection(cluster=cluster), limit=EVERYTHING)
    kept = ["cluster", "incident_id", "start_at", "cause", "nodes", "nodes_named", "summary",
            "status", "remedy", "note"]  # fmt: skip
    seen = incident_replay.signatures(store, rows["incident_id"].tolist())
    return incidents.listed(rows)[kept], seen


def recoveries(
    store: Store, cluster: str, began: tuple[tuple[str, datetime], ...]
) -> dict[str, Recovery]:
    """How incidents ended, each given with the time when it began."""
    hit = incident_replay.hit_by(store, [name for name, _ in began])
    of_nodes = hit["kind"].eq("node_event")
    attempts = incident_replay.attempts(store, cluster, hit["key"][~of_nodes].tolist())
    ends, watched = {}, collected(store, cluster)
    for name, began_at in began:
        own = hit["incident_id"].eq(name)
        ended = attempts[attempts["attempt_key"].isin(hit["key"][own & ~of_nodes])]
        ends[name] = recovery(pd.Timestamp(began_at), ended, hit[own & of_nodes], watched)
    return ends


def found(ask: Ask, one: Incident) -> Found:
    """The incidents of the same cluster that share a node, a signature or the cause."""
    name, cluster = str(one.row["incident_id"]), str(one.row["cluster"])
    known, seen = ask(compared, cluster)
    signatures: dict[str, set[str]] = {}
    for key, kind, shown in zip(seen["incident_id"], seen["kind"], seen["text"], strict=True):
        signatures.setdefault(key, set()).add(alike.signature(kind, shown))
    others = known[known["incident_id"].ne(name)]
    rows = (_traits(row, signatures) for row in others.to_dict("records"))
    ranked = alike.similar(_traits(one.row, signatures), rows)
    first = tuple((each.incident_id, each.start_at) for each in ranked[:LISTED])
    since = None if others.empty else others["start_at"].min()
    listed = others.set_index("incident_id").loc[[incident_id for incident_id, _ in first]]
    return Found(ranked, len(others), since, listed, ask(recoveries, cluster, first))


def table(alike_ones: Found, one: Incident) -> Table:
    """The first of them, why each is similar, and how it ended."""
    return rows(alike_ones).table(
        "similar_incidents", "Similar incidents",
        empty=empty(alike_ones, one), note=basis(alike_ones, one),
    )  # fmt: skip


def basis(alike_ones: Found, one: Incident) -> str:
    """Among how many they were found, and how they are ranked; empty where there is none."""
    n = len(alike_ones.similar)
    if not n:
        return ""
    listed = f"; the first {LISTED} are listed" if n > LISTED else ""
    return f"{n:,} of {_among(alike_ones, one)}{listed}. {RULE}"


def empty(alike_ones: Found, one: Incident) -> str:
    """What there is none among."""
    if not alike_ones.n_compared:
        return f"There is no other incident of cluster {one.row['cluster']} to compare with."
    return f"No similar one in {_among(alike_ones, one)}."


def record(alike_ones: Found) -> dict[str, Any]:
    """Similar incidents as JSON prints them."""
    return {
        "n": len(alike_ones.similar),
        "n_compared": alike_ones.n_compared,
        "since": alike_ones.since,
        "rule": RULE,
        "incidents": rows(alike_ones).records(),
    }


def _traits(row: Any, signatures: dict[str, set[str]]) -> Traits:
    name = str(row["incident_id"])
    nodes = frozenset(row["nodes"]) if row["nodes_named"] else frozenset()
    seen = frozenset(signatures.get(name, ()))
    return Traits(name, row["start_at"], str(row["cause"]), nodes, seen)


def _among(alike_ones: Found, one: Incident) -> str:
    others = numbers.counted(alike_ones.n_compared, "other incident")
    since = "" if alike_ones.since is None else f" since {numbers.day(alike_ones.since)}"
    return f"the {others} of cluster {one.row['cluster']}{since}"


def rows(alike_ones: Found) -> Rows:
    """The first of the similar incidents."""
    shown = []
    for like in alike_ones.similar[:LISTED]:
        row, back = alike_ones.rows.loc[like.incident_id], alike_ones.recoveries[like.incident_id]
        shown.append(
            {name: row[name] if isinstance(row[name], str) else None for name in SAID}
            | vars(like)
            | {"reason": reason(like), "recovery_hours": back.hours, "status": row["status"]}
            | {"summary": row["summary"], "recovery": recovered(back), "same_cause": like.cause}
        )
    return Rows(DESCRIBED, shown)


def reason(like: Similar) -> str:
    """Why an incident is similar.

    >>> from datetime import datetime
    >>> reason(Similar("a", datetime(2026, 1, 1), ("n1",), ("XID 48", "XID 79"), True))
    'same node n1 · same XID 48 and 1 more · same cause'
    """
    shared = (("same node", like.nodes), ("same", like.signatures))
    parts = [
        f"{what} {first_few([shortened(names[0], LONGEST)], 1, n=len(names))}"
        for what, names in shared
        if names
    ]
    return " · ".join([*parts, "same cause"] if like.cause else parts)
