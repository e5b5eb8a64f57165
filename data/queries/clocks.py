"""Events that two sources report of the same nodes, and in which zone their times were read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from data.filters import equal

if TYPE_CHECKING:
    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store

PROMPT_XIDS = (13, 31, 43, 94)
"""XIDs that name a process, which ends at once."""
MOST_COMPARED, LEAST_NODES = 100_000_000, 50
"""Events times failures from which on not all nodes are compared, and how many at least."""
READERS = {
    "jobs": "sacct",
    "node_events": "sacctmgr-events",
    "health_events.kernel": "kernel-log",
    "health_events.health_check": "gcm-health",
}
"""Source -> the reader of its files."""


class Compared(NamedTuple):
    """A source with the events of a reference."""

    cluster: str
    source: str
    """`node_events` or `health_events.<source>`."""
    reference: str
    """`jobs`: ends of failed attempts; else `node_events`: unplanned outages."""


def compared(store: Store, selection: Selection) -> list[Compared]:
    """Sources that report events which another one reports too, by cluster."""
    rows = store.rows(
        f"""WITH source AS (SELECT DISTINCT cluster, source FROM coverage
                            WHERE {equal(cluster=selection.cluster)}),
            failed AS (SELECT DISTINCT cluster FROM failures)
            SELECT cluster, source,
              CASE WHEN cluster IN (FROM failed) THEN 'jobs' ELSE 'node_events' END AS reference
            FROM source WHERE (source = 'node_events' OR source LIKE 'health_events.%')
              AND (cluster IN (FROM failed) OR source <> 'node_events'
                AND (cluster, 'node_events') IN (FROM source))
            ORDER BY ALL""",
        selection.parameters,
    )
    return [Compared(*row) for row in rows]


def events(store: Store, pair: Compared) -> Columns:
    """Events of both: columns is_source, node (numbered), at_s, prompt.

    Where there are many, all events of some nodes, which are chosen by the hash of their names.
    """
    _, _, kind = pair.source.partition(".")
    asked = {"cluster": pair.cluster, "source": pair.source, "kind": kind}
    ((n_events, n_failures, n_nodes),) = store.rows(
        """SELECT (SELECT coalesce(sum(n_rows), 0) FROM coverage
                   WHERE cluster = $cluster AND source = $source),
             (SELECT count(*) FROM failures WHERE cluster = $cluster),
             (SELECT count(DISTINCT node) FROM nodes WHERE cluster = $cluster)""",
        asked,
    )
    every = 1 + int(n_events) * n_failures // MOST_COMPARED
    asked["every"] = max(1, min(every, n_nodes // LEAST_NODES))
    source = _OUTAGES if pair.source == "node_events" else _HEALTH
    reference = _ENDS if pair.reference == "jobs" else _STARTS
    return store.columns(
        f"""WITH event AS ({source}),
            named AS (SELECT node, row_number() OVER (ORDER BY node) AS number
                      FROM event GROUP BY node),
            reference AS ({reference})
            SELECT true AS is_source, number AS node, at_s, prompt
            FROM event JOIN named USING (node)
            UNION ALL
            SELECT false, number, at_s, false FROM reference JOIN named USING (node)""",
        asked,
    )


_CHOSEN = "cluster = $cluster AND node IS NOT NULL AND hash(node) % CAST($every AS UBIGINT) = 0"
_HEALTH = f"""
SELECT node, epoch_us(min(observed_at)) / 1e6 AS at_s,
  coalesce(bool_or(xid IN {PROMPT_XIDS}), false) AS prompt
FROM health_events
WHERE {_CHOSEN} AND source = $kind AND severity IS DISTINCT FROM 'info' AND observed_at IS NOT NULL
GROUP BY node, epoch_us(observed_at) // 180000000
"""
_STARTS = f"""
SELECT node, epoch_us(start_at) / 1e6 AS at_s FROM node_events
WHERE {_CHOSEN} AND planned IS NOT TRUE
"""
_OUTAGES = _STARTS.replace("AS at_s", "AS at_s, false AS prompt")
_ENDS = f"""
SELECT node, epoch_us(failed_at) / 1e6 AS at_s
FROM (SELECT attempt_key, node FROM job_nodes
      WHERE {_CHOSEN} AND node IN (SELECT node FROM named)) AS ran
JOIN (SELECT attempt_key, failed_at FROM failures
      WHERE cluster = $cluster AND failed_at IS NOT NULL
        AND state NOT IN ('TIMEOUT', 'DEADLINE')) AS failed USING (attempt_key)
"""


def zones(store: Store) -> dict[str, str]:
    """Zone of each cluster."""
    return dict(store.rows("SELECT cluster, timezone FROM clusters ORDER BY cluster"))


def read_as_utc(store: Store, cluster: str) -> dict[str, bool]:
    """Of each reader that read the cluster's files whether it took times without a zone for UTC."""
    return dict(store.rows(
        """SELECT source, bool_or(contains(notices, 'read as UTC')) FROM ingests
           WHERE list_contains(string_split(cluster, ','), $cluster) GROUP BY source""",
        {"cluster": cluster},
    ))  # fmt: skip


def taken_over(store: Store, cluster: str) -> set[str]:
    """Readers that read a file of the cluster in the zone that was stated for another source."""
    rows = store.rows(
        """SELECT DISTINCT source FROM ingests
           WHERE list_contains(string_split(cluster, ','), $cluster)
             AND contains(notices, 'as another source stated it')""",
        {"cluster": cluster},
    )
    return {source for (source,) in rows}
