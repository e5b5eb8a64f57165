"""What repairs rest on: times out of service, tickets, failures by node, serials and evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.filters import Filter
from data.queries.exposure import failures_of, node_exposure, node_failures_of
from data.queries.fact_rates import held_of
from data.running_time import DAY_US
from data.said import ARRANGED
from data.tables.node_events import HEALTH_EVENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from data.filters import Selection
    from data.store import Store

    Key = tuple[str, str]
    """Cluster and node."""

_OF_NODES = Filter(
    columns=("cluster",), lacking=("partition", "account"), overlaps=("start_at", "end_at")
)
_OPENED = Filter(
    columns=("cluster",), lacking=("partition", "account"), overlaps=("opened_at", "closed_at")
)
_HORIZON = Filter(columns=("cluster",))


def stays(store: Store, selection: Selection) -> list[tuple[Any, ...]]:
    """Times out of service that nobody had planned, tickets, and repairs that failure logs tell.

    Cluster, node, kind, start and end in seconds since 1970, ticket, action, component, vendor,
    serial.
    """
    return store.rows(
        f"""SELECT cluster, node, 'outage', epoch(start_at), epoch(end_at), '',
              NULL, NULL, NULL, NULL
            FROM node_events WHERE node IS NOT NULL AND start_at IS NOT NULL
              AND planned IS NOT TRUE AND {_OF_NODES.where(selection)}
            UNION ALL
            SELECT cluster, node, 'outage', epoch(start_at), epoch(end_at), '',
              NULL, NULL, NULL, NULL
            FROM node_failures
            WHERE node IS NOT NULL AND end_at >= start_at AND {node_failures_of(selection)}
            UNION ALL
            SELECT cluster, node, 'ticket', epoch(opened_at), epoch(closed_at), ticket_id, action,
              component, vendor, serial
            FROM tickets WHERE node IS NOT NULL AND opened_at IS NOT NULL
              AND {_OPENED.where(selection)}
            ORDER BY ALL""",
        selection.parameters,
    )


def failures(store: Store, selection: Selection) -> list[tuple[Any, ...]]:
    """Failures that name a node, as the rate counts them; those of one incident on it are one.

    Cluster, node, seconds since 1970, cause, domain, key. Of a failure log the domain is hardware
    where its cause says so, another cause as it stands, and None where it is not determined.
    """
    return store.rows(
        f"""WITH {ARRANGED}, {failures_of(selection)},
            placed AS (
              SELECT failure.*, verdict.cause, row_number() OVER (
                PARTITION BY failure.cluster, failure.node, coalesce(incident_id, attempt_key)
                ORDER BY failure.failed_at, attempt_key) AS place
              FROM failure JOIN verdict USING (cluster, attempt_key, failed_at)
              LEFT JOIN (
                SELECT incidents.cluster, key AS attempt_key, incident_id
                FROM incident_members JOIN incidents USING (incident_id) WHERE kind = 'failure'
              ) USING (cluster, attempt_key)
              WHERE failure.node IS NOT NULL)
            SELECT cluster, node, epoch(failed_at), cause, domain, attempt_key
            FROM placed WHERE place = 1
            UNION ALL
            SELECT cluster, node, epoch(start_at), cause,
              CASE WHEN contains(lower(cause), 'hardware') THEN 'hardware'
                WHEN lower(cause) NOT IN ('undetermined', 'unknown') THEN lower(cause) END,
              failure_key
            FROM node_failures WHERE node IS NOT NULL AND {node_failures_of(selection)}
            ORDER BY ALL""",
        selection.parameters,
    )


def until(store: Store, selection: Selection) -> dict[str, float]:
    """Cluster -> until when there are records of the period, seconds since 1970."""
    found: list[Any] = store.rows(
        f"""SELECT cluster, epoch(least(max(seen_at), $to_at)) FROM (
              SELECT cluster, as_of_at AS seen_at FROM clusters
              UNION ALL SELECT cluster, max(coalesce(end_at, start_at)) FROM node_events
              GROUP BY cluster
              UNION ALL SELECT cluster, max(coalesce(end_at, start_at)) FROM node_failures
              GROUP BY cluster
              UNION ALL SELECT cluster, max(coalesce(closed_at, opened_at)) FROM tickets
              GROUP BY cluster)
            WHERE cluster IS NOT NULL AND {_HORIZON.where(selection)}
            GROUP BY cluster HAVING max(seen_at) IS NOT NULL""",
        selection.parameters,
    )
    return {str(cluster): float(at) for cluster, at in found}


def exposure(
    store: Store, selection: Selection, spans: Sequence[tuple[Key, tuple[float, float]]]
) -> list[float]:
    """Node-days in jobs of each span of a node, seconds since 1970, in their order."""
    found: list[Any] = store.rows(
        f"""WITH {held_of(selection)},
            span AS (
              SELECT unnest(CAST($span_cluster AS VARCHAR[])) AS cluster,
                unnest(CAST($span_node AS VARCHAR[])) AS node,
                unnest(CAST($span_from AS BIGINT[])) AS from_us,
                unnest(CAST($span_to AS BIGINT[])) AS to_us,
                unnest(range(len(CAST($span_to AS BIGINT[])))) AS place)
            SELECT place,
              sum(share * (least(end_us, to_us) - greatest(begin_us, from_us))) / {DAY_US}
            FROM held JOIN span ON held.cluster = span.cluster AND held.node = span.node
              AND begin_us < to_us AND end_us > from_us
            GROUP BY place""",
        selection.parameters
        | {
            "span_cluster": [cluster for (cluster, _), _ in spans],
            "span_node": [node for (_, node), _ in spans],
            "span_from": [round(from_s * 1e6) for _, (from_s, _) in spans],
            "span_to": [round(to_s * 1e6) for _, (_, to_s) in spans],
        },
    )
    of = {int(place): float(days) for place, days in found if days is not None}
    return [of.get(place, 0.0) for place in range(len(spans))]


def in_service(store: Store, selection: Selection) -> dict[Key, float]:
    """Node-days in jobs of each node."""
    held = node_exposure(store, selection)
    keys = zip(held["cluster"], held["node"], strict=True)
    return dict(zip(keys, held["exposure_node_days"].tolist(), strict=True))


def serials(store: Store, nodes: Sequence[Key]) -> dict[Key, list[str]]:
    """Serial numbers that inventories and facts state of nodes and their GPUs, the latest first."""
    found: list[Any] = store.rows(
        """WITH asked AS (SELECT unnest(CAST($clusters AS VARCHAR[])) AS cluster,
             unnest(CAST($nodes AS VARCHAR[])) AS node)
           SELECT cluster, node, list(said ORDER BY place, known_at DESC NULLS LAST, said) FROM (
             SELECT cluster, node, 'chassis ' || serial AS said, 0 AS place,
               first_seen_at AS known_at
             FROM nodes SEMI JOIN asked USING (cluster, node) WHERE serial IS NOT NULL
             UNION ALL
             SELECT cluster, node, coalesce('GPU ' || gpu, 'node') || ' ' || value, 1, from_at
             FROM node_facts SEMI JOIN asked USING (cluster, node)
             WHERE lower(key) = 'serial' AND value IS NOT NULL AND to_at IS NULL)
           GROUP BY ALL""",
        _asked(nodes),
    )
    return {(cluster, node): list(dict.fromkeys(said)) for cluster, node, said in found}


def observations(store: Store, nodes: Sequence[Key]) -> dict[Key, list[str]]:
    """Critical and fatal observations on nodes by kind and GPU, the most frequent first."""
    found: list[Any] = store.rows(
        f"""WITH asked AS (SELECT unnest(CAST($clusters AS VARCHAR[])) AS cluster,
             unnest(CAST($nodes AS VARCHAR[])) AS node),
           seen AS (
             SELECT cluster, node, coalesce('XID ' || xid, 'SXid ' || sxid, check_name, 'event')
               || coalesce(' on ' || gpu, '') AS said, {HEALTH_EVENTS.n_records} AS n
             FROM health_events SEMI JOIN asked USING (cluster, node)
             WHERE severity IN ('critical', 'fatal') GROUP BY ALL)
           SELECT cluster, node, list(n || ' x ' || said ORDER BY n DESC, said)[:5]
           FROM seen GROUP BY ALL""",
        _asked(nodes),
    )
    return {(cluster, node): list(said) for cluster, node, said in found}


def _asked(nodes: Sequence[Key]) -> dict[str, Any]:
    return {
        "clusters": [cluster for cluster, _ in nodes],
        "nodes": [node for _, node in nodes],
    }
