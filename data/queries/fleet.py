"""What is there: clusters, nodes out of service, coverage, ingests, rejected rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from data.definitions import OUT_OF_SERVICE
from data.filters import Filter, equal
from data.tables import dated, forgettable, records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import pandas as pd

    from data.filters import Selection
    from data.store import Store

_THERE = """
SELECT cluster, node FROM nodes
WHERE node IS NOT NULL AND role IS DISTINCT FROM 'unknown'
  AND (source <> 'listed' OR last_seen_at IS NULL OR last_seen_at > $to_at)
GROUP BY cluster, node"""
"""Nodes at the end of the period."""
_OF_DAY = Filter(columns=("cluster",), within="day")
SOURCES = tuple(
    f"{name}.{source}" if source else name
    for name, coverage, _ in sorted(dated(), key=lambda dated: len(dated[1].sources))
    for source in coverage.sources or ("",)
)
"""Sources that a site can have read; one without a row is named as missing."""


def clusters(store: Store) -> pd.DataFrame:
    """The clusters of the store."""
    return store.frame("SELECT * FROM clusters ORDER BY cluster")


def distinct(store: Store, column: str) -> list[str]:
    """Values of a filter: clusters by name, columns of jobs from the most frequent one on."""
    if column == "cluster":
        return [row[0] for row in store.rows("SELECT cluster FROM clusters ORDER BY cluster")]
    if column not in ("partition", "account"):
        raise ValueError(f"no filter for {column!r}")
    rows = store.rows(
        f"""SELECT "{column}" FROM jobs WHERE "{column}" IS NOT NULL
            GROUP BY 1 ORDER BY count(*) DESC, 1"""
    )
    return [row[0] for row in rows]


def zone(store: Store, cluster: str | None) -> str:
    """The zone of a cluster, or of all clusters where they share one; else UTC."""
    zones = store.rows(
        f"SELECT DISTINCT timezone FROM clusters WHERE {equal(cluster=cluster)}",
        {"cluster": cluster},
    )
    return str(zones[0][0]) if len(zones) == 1 else "UTC"


def extent(store: Store) -> tuple[Any, Any]:
    """First and last time of any record with a time."""
    of_tables = " UNION ALL ".join(
        f"SELECT min({first}) AS first_at, max({last}) AS last_at FROM {name}"
        for name, _, (first, last) in dated()
    )
    ((first, last),) = store.rows(f"SELECT min(first_at), max(last_at) FROM ({of_tables})")
    return first, last


def is_untouched(store: Store) -> bool:
    """Whether nothing was ever read into the store: no cluster is known, no ingest happened."""
    ((n_rows,),) = store.rows(
        "SELECT (SELECT count(*) FROM clusters) + (SELECT count(*) FROM ingests)"
    )
    return not n_rows


def recounted_at(store: Store) -> Any:
    """When failures were first counted by the present definition; None where they always were."""
    ((found,),) = store.rows("SELECT max(recounted_at) FROM store_meta")
    return found


def is_synthetic(store: Store) -> bool:
    """Whether any cluster of the store was generated."""
    ((synthetic,),) = store.rows("SELECT coalesce(bool_or(synthetic), false) FROM clusters")
    return bool(synthetic)


def out_of_service(store: Store, selection: Selection) -> pd.DataFrame:
    """Nodes out of service at the end of the period (or of the records); of a cluster without
    node events those that the last inventory up to then shows so.
    """
    return store.frame(
        f"""WITH moment AS (
             SELECT coalesce($to_at, max(last_at)) AS moment_at FROM (
               SELECT max(coalesce(end_at, start_at)) AS last_at FROM node_events
               UNION ALL SELECT max(as_of_at) FROM clusters
               UNION ALL SELECT max(observed_at) FROM node_inventory)),
             recorded AS (
               SELECT cluster, node, state, start_at AS since_at, reason, planned
               FROM node_events, moment
               WHERE node IS NOT NULL AND start_at <= moment_at
                 AND (end_at IS NULL OR end_at > moment_at)
               QUALIFY row_number() OVER (PARTITION BY cluster, node ORDER BY start_at DESC) = 1),
             looked AS (
               SELECT cluster, node, state, coalesce(reason_at, observed_at) AS since_at, reason
               FROM node_inventory SEMI JOIN ({_THERE}) there USING (cluster, node), moment
               WHERE state IS NOT NULL AND observed_at <= moment_at
                 AND cluster NOT IN (SELECT cluster FROM node_events WHERE cluster IS NOT NULL)
               QUALIFY row_number() OVER (
                 PARTITION BY cluster, node ORDER BY observed_at DESC, source) = 1)
           FROM (
             FROM recorded
             UNION ALL BY NAME SELECT * FROM looked WHERE {OUT_OF_SERVICE})
           WHERE {equal(cluster=selection.cluster)}
           ORDER BY since_at DESC, cluster, node""",
        selection.parameters,
    )


def node_count(store: Store, selection: Selection) -> int:
    """Nodes known in the selected clusters: of an inventory, or named by the scheduler or a
    failure log; hosts that only logs name are none, nor are nodes that later inventories lack.
    """
    ((count,),) = store.rows(
        f"SELECT count(*) FROM ({_THERE}) WHERE {equal(cluster=selection.cluster)}",
        selection.parameters,
    )
    return int(count)


def node_names(store: Store, selection: Selection) -> pd.DataFrame:
    """Names of nodes other than their own, and names of which nobody can tell the node."""
    return store.frame(
        f"""SELECT * FROM node_names WHERE {equal(cluster=selection.cluster)}
            ORDER BY cluster, node, written""",
        selection.parameters,
    )


def hosts_in_logs_alone(store: Store, selection: Selection) -> pd.DataFrame:
    """Hosts that only logs name: columns cluster, node, first_seen_at, last_seen_at."""
    return store.frame(
        f"""SELECT cluster, node, first_seen_at, last_seen_at FROM nodes
            WHERE role = 'unknown' AND {equal(cluster=selection.cluster)} ORDER BY ALL""",
        selection.parameters,
    )


class Homeless(NamedTuple):
    """Records of a table that belong to no cluster so far."""

    table: str
    n_records: int
    n_names: int
    """Hosts or jobs that they name."""
    names: tuple[str, ...]
    """The first of them."""
    cluster_from: str
    """none or several: how many clusters know these."""
    cluster: str | None
    """What it is called in a store that names no cluster at all."""


def without_cluster(store: Store) -> list[Homeless]:
    """Records whose source names no cluster and whose host or job none, or several, know."""
    return [
        Homeless(table, n_records, n_names, tuple(names), told_by, cluster)
        for table, n_records, n_names, names, told_by, cluster in store.rows(_HOMELESS)
    ]


_HOMELESS = " UNION ALL ".join(
    f"""SELECT '{name}', {table.n_records}, count(DISTINCT {table.host_or_job}),
          coalesce(list_slice(list_sort(list(DISTINCT {table.host_or_job})
            FILTER ({table.host_or_job} IS NOT NULL)), 1, 10), []), cluster_from, cluster
        FROM {name} WHERE cluster_from IN ('none', 'several') GROUP BY cluster_from, cluster"""
    for name, table in records().items()
    if table.placed_by
)


def nodes_called(store: Store, name: str, like: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Cluster and node of every node of this name, its own or another; where there is none, of
    those whose name in lower case is one of `like`.
    """
    known = """SELECT cluster, node, node AS name FROM nodes
               UNION SELECT cluster, node, written FROM node_names
               UNION SELECT cluster, node, node FROM health_events WHERE cluster IS NULL"""
    for condition in ("name = $name", "list_contains($like, lower(name))"):
        rows = store.rows(
            f"SELECT DISTINCT cluster, node FROM ({known}) WHERE {condition} ORDER BY ALL",
            {"name": name, "like": list(like)},
        )
        if rows:
            return rows
    return []


def own_names(store: Store, cluster: str) -> dict[str, str]:
    """Names of a cluster's nodes other than their own -> the node."""
    sql = "SELECT written, node FROM node_names WHERE cluster = $cluster"
    return dict(store.rows(sql, {"cluster": cluster}))


def states_recorded(store: Store, selection: Selection) -> dict[str, bool]:
    """Of each selected cluster whether any record tells when nodes were out of service."""
    rows = store.rows(
        f"""SELECT cluster, cluster IN (
              SELECT cluster FROM node_events WHERE cluster IS NOT NULL) FROM clusters
            WHERE {equal(cluster=selection.cluster)} ORDER BY ALL""",
        selection.parameters,
    )
    return dict(rows)


def states_known(store: Store, selection: Selection) -> dict[str, bool]:
    """Of each selected cluster whether a record or an inventory tells nodes out of service."""
    rows = store.rows(
        f"""SELECT cluster, cluster IN (SELECT cluster FROM node_events WHERE cluster IS NOT NULL
              UNION ALL SELECT cluster FROM node_inventory
              WHERE cluster IS NOT NULL AND state IS NOT NULL)
            FROM clusters WHERE {equal(cluster=selection.cluster)} ORDER BY ALL""",
        selection.parameters,
    )
    return dict(rows)


def coverage_days(store: Store, selection: Selection) -> pd.DataFrame:
    """Rows by cluster, source and day (UTC) of the selected clusters and period."""
    days = selection.days
    return store.frame(
        f"""SELECT cluster, source, CAST(day AS TIMESTAMPTZ) AS day, n_rows FROM coverage
            WHERE day IS NOT NULL AND {_OF_DAY.where(days)} ORDER BY ALL""",
        days.parameters,
    )


def undated(store: Store, selection: Selection) -> pd.DataFrame:
    """Rows without a time of the selected clusters, by source: they count nowhere."""
    return store.frame(
        f"""SELECT cluster, source, n_rows FROM coverage
            WHERE day IS NULL AND {equal(cluster=selection.cluster)} ORDER BY ALL""",
        selection.parameters,
    )


def ingests(store: Store) -> pd.DataFrame:
    """Ingests, newest first."""
    return store.frame("SELECT * FROM ingests ORDER BY ingested_at DESC, ingest_id DESC")


_REJECTED = """FROM rejected_rows LEFT JOIN ingests USING (ingest_id)
WHERE ($ingest_id IS NULL OR ingest_id = $ingest_id) AND ($reason IS NULL OR reason = $reason)
  AND ($text = '' OR contains(lower(raw), lower($text))
    OR contains(lower(rejected_rows.path), lower($text)))"""


def rejected_rows(
    store: Store,
    ingest_id: str | None,
    *,
    limit: int,
    reason: str | None = None,
    text: str = "",
    offset: int = 0,
) -> pd.DataFrame:
    """Records that could not be read, those of the newest ingest first: of an ingest, for a reason,
    or with a text in them or in the name of their file.
    """
    return store.frame(
        f"""SELECT ingest_id, rejected_rows.path, line_no, reason, raw {_REJECTED}
            ORDER BY ingested_at DESC, ingest_id DESC, line_no
            LIMIT {int(limit)} OFFSET {int(offset)}""",
        {"ingest_id": ingest_id, "reason": reason, "text": text},
    )


def rejected_count(store: Store, reason: str | None = None, text: str = "") -> int:
    """How many of them are kept with their text."""
    asked = {"ingest_id": None, "reason": reason, "text": text}
    ((n_rows,),) = store.rows(f"SELECT count(*) {_REJECTED}", asked)
    return int(n_rows)


def rejected_reasons(store: Store) -> list[tuple[str, int]]:
    """Why records could not be read, and how many are kept with their text; most first."""
    return store.rows("SELECT reason, count(*) FROM rejected_rows GROUP BY 1 ORDER BY 2 DESC, 1")


def forgotten(store: Store) -> dict[str, datetime]:
    """Table -> the time before which its rows were removed by retention."""
    return dict(store.rows("SELECT table_name, max(before_at) FROM forgotten GROUP BY 1"))


def too_old(store: Store, table: str, before_at: Any) -> tuple[int, Any, Any]:
    """Rows of a table before a time: how many, and the first and the last time of them."""
    at = forgettable()[table]
    ((n_rows, first_at, last_at),) = store.rows(
        f"SELECT count(*), min({at}), max({at}) FROM {table} WHERE ({at}) < $before_at",
        {"before_at": before_at},
    )
    return int(n_rows), first_at, last_at


def table_counts(store: Store) -> dict[str, int]:
    """Rows of each table."""
    from data.queries import schema  # here: commands ask for clusters alone

    held = schema.tables(store)
    return dict(zip(held["table"], held["n_rows"].tolist(), strict=True))
