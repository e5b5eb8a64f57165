"""Failures and exposure by what is known of the nodes: their rack, their age."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from data.queries.exposure import (
    ATTEMPTS,
    DAY_US,
    FAILURES,
    LOGGED,
    LOGGED_DAYS,
    SPANS,
    as_day,
    parameters,
    stacked,
)

if TYPE_CHECKING:
    import pandas as pd

    from data.queries.selection import Selection
    from data.store import Store

ROUNDING = 1e-9
"""Share of a day's exposure that two orders of addition may differ by."""
NodeGrouping = Literal["rack", "node_age"]
AGES = ("under 1 month", "1 to 3 months", "3 to 6 months", "6 to 12 months", "1 to 2 years",
        "over 2 years", "unknown")  # fmt: skip

_GROUPS = {
    "rack": "coalesce(rack, 'unknown')",
    "node_age": """CASE WHEN installed_day IS NULL OR day < installed_day THEN 'unknown'
        WHEN day - installed_day < 30 THEN 'under 1 month'
        WHEN day - installed_day < 91 THEN '1 to 3 months'
        WHEN day - installed_day < 183 THEN '3 to 6 months'
        WHEN day - installed_day < 365 THEN '6 to 12 months'
        WHEN day - installed_day < 730 THEN '1 to 2 years' ELSE 'over 2 years' END""",
}

_PIECES = f"""
piece AS (
  SELECT * EXCLUDE (first_day, last_day), first_day AS day, end_us - begin_us AS run_us
  FROM span WHERE first_day = last_day
  UNION ALL
  SELECT * EXCLUDE (first_day, last_day),
    least(end_us, (day + 1) * {DAY_US}) - greatest(begin_us, day * {DAY_US})
  FROM (SELECT *, unnest(range(first_day, last_day + 1)) AS day
        FROM span WHERE first_day < last_day))
"""
"""Attempts split at midnight UTC; what ran on one day goes round unnest, which costs most."""

_SPELLS = f"""
seen AS (SELECT *, epoch_us(first_seen_at) // {DAY_US} AS seen_day,
           row_number() OVER (
             PARTITION BY cluster, node ORDER BY first_seen_at NULLS FIRST) AS place
         FROM nodes),
spell AS (SELECT cluster, node, rack, source,
            CASE WHEN source = 'inventory' THEN seen_day END AS installed_day,
            CASE WHEN place = 1 THEN -1000000 ELSE seen_day END AS from_day,
            coalesce(lead(seen_day) OVER (PARTITION BY cluster, node ORDER BY place), 10000000)
              AS until_day
          FROM seen)
"""
"""Spells of nodes by day: a node's first reaches back, its last reaches on without an end."""


def failures(store: Store, selection: Selection, by: NodeGrouping) -> pd.DataFrame:
    """The failures that count, one row each: columns day, group."""
    frame = store.frame(
        f"""WITH {FAILURES}, {_SPELLS},
            event AS (
              SELECT cluster, node, failed_at FROM failure
              UNION ALL SELECT cluster, node, start_at FROM node_failures WHERE {LOGGED}),
            dated AS (SELECT *, CAST(failed_at AS DATE) - DATE '1970-01-01' AS day FROM event)
            SELECT day, {_GROUPS[by]} AS "group"
            FROM dated LEFT JOIN spell ON dated.cluster = spell.cluster
              AND dated.node = spell.node AND day >= from_day AND day < until_day
            ORDER BY ALL""",
        parameters(selection),
    )
    return frame.assign(day=as_day(frame["day"]))


def exposure(
    store: Store, selection: Selection, by: NodeGrouping, total: pd.DataFrame
) -> pd.DataFrame:
    """Exposure by group and day.

    What `total`, the attempts' exposure (columns day, exposure_node_days), holds beyond the time
    of named nodes is of the group `unknown`.
    """
    named = _of_attempts(store, selection, by)
    days = total.groupby("day")["exposure_node_days"].sum()
    missing = days.sub(named.groupby("day")["exposure_node_days"].sum(), fill_value=0.0)
    rest = missing[missing > ROUNDING * days].reset_index().assign(group="unknown")
    return stacked([named, rest, _of_inventory(store, selection, by)])


def _of_attempts(store: Store, selection: Selection, by: NodeGrouping) -> pd.DataFrame:
    """Exposure of the nodes that attempts name; an attempt's GPUs are shared evenly by them.

    Attempts are split into days before their nodes are joined, and nodes are never grouped by
    name: either way round costs twice as much on nine million nodes of attempts.
    """
    frame = store.frame(
        f"""WITH {ATTEMPTS}, {SPANS}, {_PIECES}, {_SPELLS},
            held AS (
              SELECT piece.cluster, day, {_GROUPS[by]} AS "group",
                sum(job_nodes.n_gpus * run_us) AS gpu_us, sum(run_us) AS node_us,
                sum(units * run_us / nullif(n_nodes, 0)) FILTER (job_nodes.n_gpus IS NULL)
                  AS uneven_us
              FROM piece JOIN job_nodes USING (cluster, attempt_key)
              LEFT JOIN spell ON piece.cluster = spell.cluster AND job_nodes.node = spell.node
                AND day >= from_day AND day < until_day
              GROUP BY ALL)
            SELECT day, "group", CASE WHEN basis = 'gpu_time'
              THEN (coalesce(gpu_us, 0) + coalesce(uneven_us, 0)) / gpus_per_node ELSE node_us END
              / {DAY_US} AS exposure_node_days
            FROM held JOIN clusters USING (cluster) ORDER BY cluster, "group", day""",
        parameters(selection),
    )
    return frame.assign(day=as_day(frame["day"]))


def _of_inventory(store: Store, selection: Selection, by: NodeGrouping) -> pd.DataFrame:
    """Exposure of clusters without jobs: nodes of the inventory x period; NaN without one."""
    frame = store.frame(
        f"""WITH {LOGGED_DAYS}, {_SPELLS},
            stock AS (SELECT cluster, rack, installed_day, from_day, until_day, count(*) AS n_nodes
                      FROM spell WHERE source = 'inventory' GROUP BY ALL)
            SELECT day, {_GROUPS[by]} AS "group", sum(n_nodes * days) AS exposure_node_days
            FROM logged_day LEFT JOIN stock ON logged_day.cluster = stock.cluster
              AND day >= from_day AND day < until_day
            GROUP BY logged_day.cluster, day, "group" ORDER BY ALL""",
        parameters(selection),
    )
    return frame.assign(day=as_day(frame["day"]))
