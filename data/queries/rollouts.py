"""What was changed on a cluster and when: roll-outs, nodes that came and went, new checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from data.filters import Filter
from data.queries.fact_rates import NO_GROUPS

if TYPE_CHECKING:
    from datetime import date

    from data.filters import Selection
    from data.store import Store

_CHOSEN = Filter(columns=("cluster",))
_NOT_NEW: Final = 7
"""Days after the first record of its kind that a check or source is no new one."""


Row: TypeAlias = "tuple[str, str, str | None, str, int | None, int | None, date, date]"


def rollouts(store: Store, selection: Selection) -> list[Row]:
    """Changes of a cluster that can change how often it fails, or how many failures are seen.

    A row: `cluster`; `kind` (a key of `node_facts` such as driver; nodes added, nodes removed;
    check or source, of one that was not there from the begin); `before` and `value` (of a fact; of
    a check or source its name); `n_nodes` that changed, of `of_nodes` known (NULL of checks and
    sources); first and last day between which four fifths of the nodes changed.
    """
    unlike = ", ".join(f"'{name}'" for name in NO_GROUPS)
    return store.rows(
        f"""WITH stated AS (
              SELECT cluster, node, coalesce(gpu, '') AS gpu, lower(key) AS kind, value,
                from_at AS since_at
              FROM node_facts
              WHERE value IS NOT NULL AND from_at IS NOT NULL AND node IS NOT NULL
                AND lower(key) NOT IN ({unlike}) AND {_CHOSEN.where(selection)}),
            shown AS (
              SELECT cluster, node, '' AS gpu, 'driver' AS kind, driver AS value,
                observed_at AS since_at
              FROM node_inventory
              WHERE driver IS NOT NULL AND node IS NOT NULL AND {_CHOSEN.where(selection)}),
            fact AS (
              FROM stated
              UNION ALL FROM (FROM shown ANTI JOIN stated USING (cluster, node, kind))),
            changed AS (
              SELECT *, lag(value) OVER part AS before
              FROM fact WINDOW part AS (PARTITION BY cluster, node, gpu, kind ORDER BY since_at)),
            spell AS (
              SELECT cluster, node, min(first_seen_at) AS first_at,
                max(coalesce(last_seen_at, 'infinity')) AS last_at,
                min(min(first_seen_at)) OVER (PARTITION BY cluster) AS begun_at,
                max(max(coalesce(last_seen_at, 'infinity'))) OVER (PARTITION BY cluster) AS ended_at
              FROM nodes
              WHERE source <> 'observed' AND node IS NOT NULL AND {_CHOSEN.where(selection)}
              GROUP BY cluster, node),
            moved AS (
              SELECT cluster, node, kind, mode(before) AS before, value, min(since_at) AS since_at
              FROM changed WHERE before <> value GROUP BY cluster, node, kind, value
              UNION ALL
              SELECT cluster, node, 'nodes added', NULL,
                CAST(CAST(first_at AS DATE) AS VARCHAR), first_at
              FROM spell WHERE first_at > begun_at
              UNION ALL
              SELECT cluster, node, 'nodes removed', NULL,
                CAST(CAST(last_at AS DATE) AS VARCHAR), last_at
              FROM spell WHERE last_at < ended_at),
            counted AS (
              SELECT cluster, count(DISTINCT node) AS of_nodes FROM nodes
              WHERE coalesce(role, 'compute') = 'compute' GROUP BY cluster),
            looked AS (
              SELECT cluster, 'check' AS kind, check_name AS value, min(observed_at) AS since_at,
                min(since_at) OVER (PARTITION BY cluster) AS begun_at
              FROM health_events
              WHERE source = 'health_check' AND check_name IS NOT NULL AND observed_at IS NOT NULL
                AND {_CHOSEN.where(selection)}
              GROUP BY cluster, check_name
              UNION ALL
              SELECT cluster, 'source', source, CAST(min(day) AS TIMESTAMPTZ),
                CAST(min(min(day)) OVER (PARTITION BY cluster) AS TIMESTAMPTZ)
              FROM coverage
              WHERE day IS NOT NULL AND {_CHOSEN.where(selection)}
                AND (source = 'node_events' OR starts_with(source, 'health_events.'))
              GROUP BY cluster, source)
            SELECT cluster, kind, mode(before) AS before, value, count(DISTINCT node) AS n_nodes,
              any_value(of_nodes) AS of_nodes,
              CAST(quantile_disc(since_at, 0.1) AS DATE) AS begin_day,
              CAST(quantile_disc(since_at, 0.9) AS DATE)
            FROM moved LEFT JOIN counted USING (cluster) GROUP BY cluster, kind, value
            UNION ALL
            SELECT cluster, kind, NULL, value, NULL, NULL, CAST(since_at AS DATE) AS day, day
            FROM looked WHERE since_at > begun_at + INTERVAL {_NOT_NEW} DAY
            ORDER BY begin_day, cluster, kind, value""",
        selection.parameters,
    )
