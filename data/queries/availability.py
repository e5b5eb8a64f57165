"""When nodes were there, and when they were out of service."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from data.filters import Filter

if TYPE_CHECKING:
    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store

Spell: TypeAlias = tuple[str, str, "str | None", int, int]
Outage: TypeAlias = tuple[str, "str | None", int, int, "str | None", "bool | None", bool, bool]
_CHOSEN = Filter(columns=("cluster",), lacking=("partition", "account"))
_RECORDED = """
recorded AS (
  SELECT cluster, min(first_at) AS begin_at, max(last_at) AS end_at FROM (
    SELECT cluster, min(start_at) AS first_at, max(as_of_at) AS last_at
    FROM jobs JOIN clusters USING (cluster) GROUP BY cluster
    UNION ALL
    SELECT cluster, min(start_at), max(coalesce(end_at, start_at)) FROM node_events GROUP BY cluster
    UNION ALL
    SELECT cluster, min(start_at), max(coalesce(end_at, start_at)) FROM node_failures
    GROUP BY cluster)
  WHERE cluster IS NOT NULL GROUP BY cluster)"""
"""Common table: first and last time of the records of each cluster."""


def spells(store: Store, selection: Selection) -> list[Spell]:
    """When each compute node was there in the period, within the records of its cluster.

    A row: cluster, node, rack, start and end in seconds since 1970. A node is there as an inventory
    says, else from its first to its last record if jobs ran on it; not while it is shown powered
    down. One that only its outages name is none: nobody says when it was there without one.
    """
    return store.rows(
        f"""WITH {_RECORDED},
            used AS (SELECT DISTINCT cluster, node FROM job_nodes WHERE start_at IS NOT NULL),
            spell AS (
              SELECT cluster, node, rack, powered,
                greatest(first_seen_at, begin_at, $from_at) AS start_at,
                least(end_at, last_seen_at, $to_at, lead(first_seen_at) OVER (
                  PARTITION BY cluster, node ORDER BY first_seen_at NULLS FIRST, last_seen_at))
                  AS end_at
              FROM nodes JOIN recorded USING (cluster)
              WHERE node IS NOT NULL AND coalesce(role, 'compute') = 'compute'
                AND (source <> 'observed' OR (cluster, node) IN (FROM used))
                AND {_CHOSEN.where(selection)})
            SELECT cluster, node, rack, epoch_us(start_at) // 1000000 AS start_s,
              epoch_us(end_at) // 1000000 AS end_s
            FROM spell WHERE end_s > start_s AND powered IS DISTINCT FROM false ORDER BY ALL""",
        selection.parameters,
    )


def outages(store: Store, selection: Selection) -> list[Outage]:
    """Times out of service of nodes, also those before and after the period.

    A row: cluster, node, start and end in seconds since 1970, state, planned, whether it had not
    ended when records do, and whether a failure log tells it, whose rows are repairs of their own
    and may name no node. One without an end lasts until the next record of the node's state, or
    until a job started on it; without either until the node left or the records of the cluster end.
    """
    return store.rows(
        f"""WITH {_RECORDED},
            event AS (
              SELECT cluster, node, start_at, end_at, state, planned, lead(start_at) OVER (
                PARTITION BY cluster, node ORDER BY start_at) AS next_at
              FROM node_events
              WHERE node IS NOT NULL AND start_at IS NOT NULL AND {_CHOSEN.where(selection)}),
            back AS (
              SELECT cluster, node, event.start_at, min(held.start_at) AS back_at
              FROM event JOIN job_nodes held USING (cluster, node)
              WHERE event.end_at IS NULL AND next_at IS NULL AND held.start_at > event.start_at
              GROUP BY ALL),
            gone AS (
              SELECT cluster, node, nullif(max(coalesce(last_seen_at, 'infinity')), 'infinity')
                AS gone_at
              FROM nodes WHERE source <> 'observed' GROUP BY cluster, node),
            told AS (
              SELECT event.cluster, event.node, event.start_at,
                coalesce(event.end_at, next_at, back_at) AS end_at, state, planned, false AS logged
              FROM event LEFT JOIN back USING (cluster, node, start_at)
              UNION ALL
              SELECT cluster, node, start_at, start_at
                  + to_microseconds(CAST(repair_minutes * 6e7 AS BIGINT)), 'DOWN', false, true
              FROM node_failures
              WHERE repair_minutes >= 0 AND start_at IS NOT NULL AND {_CHOSEN.where(selection)})
            SELECT cluster, node, epoch_us(start_at) // 1000000 AS start_s,
              epoch_us(coalesce(told.end_at, greatest(least(recorded.end_at, gone_at), start_at)))
                // 1000000,
              state, planned, told.end_at IS NULL, logged
            FROM told JOIN recorded USING (cluster) LEFT JOIN gone USING (cluster, node)
            ORDER BY ALL""",
        selection.parameters,
    )


def is_recorded(store: Store, selection: Selection) -> bool:
    """Whether any record tells when a node of the cluster was out of service."""
    of_cluster = Filter(columns=("cluster",)).where(selection)
    ((found,),) = store.rows(
        f"""SELECT EXISTS (SELECT 1 FROM node_events WHERE {of_cluster}
              UNION ALL SELECT 1 FROM node_failures
                WHERE repair_minutes >= 0 AND {of_cluster})""",
        selection.parameters,
    )
    return bool(found)


def tickets(store: Store, selection: Selection) -> list[tuple[str, str, float]]:
    """When tickets of nodes were opened: cluster, node, seconds since 1970."""
    return store.rows(
        f"""SELECT cluster, node, epoch(opened_at) FROM tickets
            WHERE node IS NOT NULL AND cluster IS NOT NULL AND opened_at IS NOT NULL
              AND {_CHOSEN.where(selection)}
            ORDER BY ALL""",
        selection.parameters,
    )


def recorded_days(store: Store, selection: Selection) -> Columns:
    """Days with records of a failure log, of clusters that have jobs too.

    Columns as those of `data.queries.detection.evidence_days`, which has those of the others.
    """
    return store.columns(
        f"""SELECT cluster, source, CAST(day AS TIMESTAMP) AS day, false AS collected FROM coverage
            WHERE source = 'node_failures' AND day IS NOT NULL AND cluster IS NOT NULL
              AND {_CHOSEN.where(selection)}
            ORDER BY ALL""",
        selection.parameters,
    )
