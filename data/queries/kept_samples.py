"""Whether all samples of nodes in a stretch of time are in the store, or some were reduced away."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from data.metric_kinds import XID_GAUGE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from data.store import Store

_HOUR = timedelta(hours=1)
_REDUCED = f"""SELECT node, hour_at, sum(n) AS n FROM node_metrics_reduced
  WHERE cluster = $cluster AND metric <> '{XID_GAUGE}'
    AND ($nodes IS NULL OR list_contains($nodes, node))
    AND hour_at > $from_at - INTERVAL 1 HOUR AND hour_at < $until_at
  GROUP BY ALL"""
_HELD = f"""SELECT node, date_trunc('hour', observed_at) AS hour_at, count(*) AS n_held
  FROM node_metrics WHERE cluster = $cluster AND metric <> '{XID_GAUGE}'
    AND observed_at >= date_trunc('hour', $from_at) AND observed_at < $until_at + INTERVAL 1 HOUR
  GROUP BY ALL"""
_KEPT = """SELECT node, from_at, until_at FROM node_metrics_kept
  WHERE cluster = $cluster AND from_at < $until_at AND until_at > $from_at ORDER BY ALL"""


def last_reduced_end(store: Store, cluster: str) -> datetime | None:
    """End of the last hour that was reduced; None where none was."""
    ((last_at,),) = store.rows(
        """SELECT max(hour_at) + INTERVAL 1 HOUR FROM node_metrics_reduced
           WHERE cluster = $cluster""",
        {"cluster": cluster},
    )
    return last_at  # type: ignore[no-any-return]


def lacking(
    store: Store, cluster: str, nodes: Collection[str] | None, period: tuple[datetime, datetime]
) -> tuple[str, ...]:
    """Nodes of which some samples in [from, until) were reduced and are not in the store.

    Of all nodes where none are named. An hour is there in whole where the store holds as many
    samples of it as were reduced; else the stretches that were kept must cover it.
    """
    asked = {
        "cluster": cluster,
        "nodes": None if nodes is None else sorted(nodes),
        "from_at": period[0],
        "until_at": period[1],
    }
    hours = store.rows(
        f"""SELECT node, hour_at FROM ({_REDUCED}) LEFT JOIN ({_HELD}) USING (node, hour_at)
            WHERE n > coalesce(n_held, 0) ORDER BY ALL""",
        asked,
    )
    if not hours:
        return ()
    kept: defaultdict[str, list[tuple[datetime, datetime]]] = defaultdict(list)
    for node, from_at, until_at in store.rows(_KEPT, asked):
        kept[node].append((from_at, until_at))
    return tuple(
        dict.fromkeys(
            node
            for node, hour_at in hours
            if not _covered(kept[node], max(hour_at, period[0]), min(hour_at + _HOUR, period[1]))
        )
    )


def _covered(
    stretches: Iterable[tuple[datetime, datetime]], from_at: datetime, until_at: datetime
) -> bool:
    """Whether stretches, in the order of their begin, leave nothing of a period."""
    for begin, end in stretches:
        if begin > from_at:
            return False
        from_at = max(from_at, end)
        if from_at >= until_at:
            return True
    return from_at >= until_at
