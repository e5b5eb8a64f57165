"""Days on which the sources of a cluster had records, and when they were asked for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from data.filters import Filter
from data.queries.collected import days_collected

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store

Asked: TypeAlias = "tuple[str | None, str, datetime, datetime | None, str | None, int]"
LAST_ANSWERS = 30
"""Of each source, told however long ago they came: how often it was asked is seen there."""
FAILED = 2
"""Attempts that failed after each of these answers; more say no more."""
_CLUSTER = Filter(columns=("cluster",))


def of_sources(store: Store, selection: Selection) -> Columns:
    """Days with a record of each source: columns cluster, source, day (since 1970, UTC), n_rows.

    A day on which a source was collected and had no record has 0 rows.
    """
    asked = f"SELECT cluster, source, day, 0 AS n_rows FROM ({days_collected(store)})"
    return store.columns(
        f"""SELECT cluster, source, CAST(day AS DATE) - DATE '1970-01-01' AS day,
              CAST(sum(n_rows) AS BIGINT) AS n_rows
            FROM (SELECT cluster, source, day, n_rows FROM coverage UNION ALL {asked}) AS held
            WHERE day IS NOT NULL AND cluster IS NOT NULL AND {_CLUSTER.where(selection)}
            GROUP BY ALL ORDER BY ALL""",
        selection.parameters,
    )


def asked(
    store: Store, selection: Selection, since_at: datetime, until_at: datetime
) -> list[Asked]:
    """Each time in between that a source of the cluster, or of one not known yet, was asked, and of
    each source its last answers however long before, with the first attempts that failed after.

    A row: cluster, source, when, until when it answered (None: it failed), the source of `coverage`
    that it brings, and how many answers came up to it, in all. In order of cluster, source and
    time.
    """
    cluster = selection.cluster
    of_cluster = "true" if cluster is None else "(cluster = $cluster OR cluster IS NULL)"
    return store.rows(
        f"""WITH attempt AS (
              SELECT cluster, source, collected_at,
                max(until_at) FILTER (result <> 'failed') AS until_at,
                max(coalesce(covers, CASE WHEN reader = 'sacct' THEN 'jobs' END)) AS covers
              FROM collected_windows WHERE collected_at <= $until_at AND {of_cluster}
              GROUP BY ALL),
            counted AS (
              SELECT *, count(until_at) OVER of_source AS n_answers,
                count(until_at) OVER (PARTITION BY cluster, source) AS n_all
              FROM attempt
              WINDOW of_source AS (PARTITION BY cluster, source ORDER BY collected_at))
            SELECT cluster, source, collected_at, until_at, covers, n_answers FROM counted
            QUALIFY collected_at >= $since_at OR (n_answers >= n_all - {LAST_ANSWERS}
              AND row_number() OVER (PARTITION BY cluster, source, n_answers
                ORDER BY collected_at) <= {FAILED} + CAST(n_answers > 0 AS INTEGER))
            ORDER BY cluster, source, collected_at""",
        {"since_at": since_at, "until_at": until_at}
        | ({} if cluster is None else {"cluster": cluster}),
    )


def ingested(store: Store, selection: Selection, until_at: datetime) -> list[datetime]:
    """When files with records of the cluster were read, up to then; in order, each time once."""
    of_cluster = "$cluster IN (SELECT unnest(string_split(ingests.cluster, ',')))"
    rows = store.rows(
        f"""SELECT DISTINCT ingested_at FROM ingests
            WHERE ingested_at <= $until_at AND {of_cluster} ORDER BY ingested_at""",
        {"until_at": until_at, "cluster": selection.cluster},
    )
    return [at for (at,) in rows]
