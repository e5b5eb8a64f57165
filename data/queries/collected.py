"""What was collected: until when, and on which days."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.filters import Filter, equal
from data.tables import dated

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd

    from data.filters import Selection
    from data.store import Store

_OF_DAY = Filter(columns=("cluster",), within="CAST(day AS TIMESTAMPTZ)")
_COLLECTED_DAYS = """
WITH compute AS (
  SELECT DISTINCT cluster, node FROM nodes WHERE role IS DISTINCT FROM 'unknown'),
counted AS (SELECT cluster, count(*) AS n_nodes FROM compute GROUP BY cluster),
asked AS (
  SELECT a.cluster, covers, whole_cluster, coalesce(known.node, a.node) AS host,
    unnest(range(CAST(from_at AS DATE),
      CAST(greatest(from_at, until_at - INTERVAL 1 MICROSECOND) AS DATE) + 1,
      INTERVAL 1 DAY)) AS day
  FROM collected_windows AS a LEFT JOIN node_names AS known
    ON known.cluster = a.cluster AND lower(known.written) = lower(a.node)
  WHERE result <> 'failed' AND covers IS NOT NULL AND a.cluster IS NOT NULL)
SELECT asked.cluster, covers AS source, day FROM asked
LEFT JOIN compute ON compute.cluster = asked.cluster AND lower(node) = lower(host)
LEFT JOIN counted ON counted.cluster = asked.cluster
GROUP BY asked.cluster, covers, day
HAVING bool_or(whole_cluster) OR 2 * count(DISTINCT node) >= any_value(n_nodes)
"""
_NO_DAYS = "SELECT '' AS cluster, '' AS source, CAST(NULL AS TIMESTAMP) AS day WHERE false"


def days_collected(store: Store) -> str:
    """A query: cluster, source and day of which the source was asked for any part and gave an
    answer, of all nodes, or of the logs of at least half of them, each its own.

    Where nothing was ever collected it is one that costs no plan.
    """
    return _COLLECTED_DAYS if store.n_rows("collected_windows") else _NO_DAYS


def until(store: Store, selection: Selection) -> pd.DataFrame:
    """Until when each source was collected, and what became of the last attempt.

    Columns cluster, source, reader, collected_until, asked_at, error (of the last attempt; NULL
    where it succeeded), n_quiet (answers without a record) and n_answers.
    """
    return store.frame(
        f"""SELECT cluster, source, any_value(reader) AS reader,
              max(until_at) FILTER (result <> 'failed') AS collected_until,
              max(collected_at) AS asked_at,
              CASE WHEN max_by(result, collected_at) = 'failed'
                THEN arg_max(error, collected_at) FILTER (result = 'failed') END AS error,
              count(*) FILTER (result = 'empty') AS n_quiet,
              count(*) FILTER (result <> 'failed') AS n_answers
            FROM collected_windows WHERE {equal(cluster=selection.cluster)}
            GROUP BY cluster, source ORDER BY cluster, source""",
        selection.parameters,
    )


def collected_days(store: Store, selection: Selection) -> pd.DataFrame:
    """Days of the selection on which a source was collected: cluster, source, day (UTC)."""
    days = selection.days
    return store.frame(
        f"""SELECT cluster, source, CAST(day AS TIMESTAMPTZ) AS day FROM ({days_collected(store)})
            WHERE {_OF_DAY.where(days)} ORDER BY ALL""",
        days.parameters,
    )


def reached(store: Store, cluster: str | None = None) -> datetime | None:
    """Until when anything was collected; None where nothing ever was."""
    ((until_at,),) = store.rows(
        f"""SELECT max(until_at) FROM collected_windows
            WHERE result <> 'failed' AND {equal(cluster=cluster)}""",
        {} if cluster is None else {"cluster": cluster},
    )
    return until_at  # type: ignore[no-any-return]


def is_seen(store: Store, from_at: datetime, to_at: datetime, cluster: str | None = None) -> bool:
    """Whether a record lies in a time, or any part of it was collected."""
    spans = " UNION ALL ".join(
        f"SELECT 1 FROM {name} WHERE {first} < $to_at AND {last} >= $from_at AND {{of_cluster}}"
        for name, _, (first, last) in dated()
    )
    of_cluster = equal(cluster=cluster)
    ((found,),) = store.rows(
        f"""SELECT EXISTS ({spans.format(of_cluster=of_cluster)}
              UNION ALL SELECT 1 FROM coverage WHERE CAST(day AS TIMESTAMPTZ) < $to_at
                AND CAST(day AS TIMESTAMPTZ) + INTERVAL 1 DAY > $from_at AND {of_cluster}
              UNION ALL SELECT 1 FROM collected_windows WHERE result <> 'failed'
                AND coalesce(from_at, until_at) < $to_at AND until_at > $from_at AND {of_cluster})
        """,
        {"from_at": from_at, "to_at": to_at} | ({} if cluster is None else {"cluster": cluster}),
    )
    return bool(found)
