"""How often each cause struck, day by day, and every failure with who and where it hit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.failures.mass_failures import BY, LEAST, NAMELESS, WINDOW_MINUTES
from data.queries.failures import verdicts_of
from data.running_time import local_day
from data.said import ARRANGED

if TYPE_CHECKING:
    import pandas as pd

    from analytics.failures.mass_failures import By
    from data.filters import Selection
    from data.store import Store

_OF_INCIDENTS = """
  SELECT incidents.cluster, key AS attempt_key, min(incident_id) AS incident_id
  FROM incident_members JOIN incidents USING (incident_id)
  WHERE kind = 'failure' AND NOT retired GROUP BY ALL"""
"""The living incident of each failed attempt that is in one."""


def occurrences(store: Store, selection: Selection) -> pd.DataFrame:
    """Occurrences of each cause by day: columns cause, domain, method, day (number of the day since
    1970-01-01 where its cluster stands), n, failures.

    Failures of one cause in one incident are one occurrence, on its first day; without an incident
    those of one user on one day are, or of one node or job where no user is known. Only attempts
    with exposure count.
    """
    return store.frame(
        f"""WITH {ARRANGED}, {verdicts_of(selection)},
            item AS (
              SELECT cluster, cause, domain, method,
                {local_day("failed_at")} AS day,
                coalesce(incident_id, concat_ws('/', coalesce("user", chosen.node, job_id),
                  {local_day("failed_at")})) AS item
              FROM chosen LEFT JOIN ({_OF_INCIDENTS}) USING (cluster, attempt_key)
              WHERE exposed),
            struck AS (
              SELECT cause, min(domain) AS domain, min(method) AS method,
                min(day) AS day, count(*) AS failures
              FROM item GROUP BY cluster, cause, item)
            SELECT cause, domain, method, day, count(*) AS n,
              CAST(sum(failures) AS BIGINT) AS failures
            FROM struck GROUP BY ALL ORDER BY ALL""",
        selection.parameters,
    )


def crowded_failures(store: Store, selection: Selection) -> pd.DataFrame:
    """Failed attempts that no incident holds and of which nobody said the cause, where so many of
    one user, node or named cause failed within minutes that they may be a mass failure: all of that
    user, node or cause.

    Columns cluster, failed_at, user, node, cause, job_id, held_gpu_seconds (running time x GPUs),
    span_minutes (from the first to the last failure that nobody explained, crowded or not); in
    order of time. Failures in a window lie in two neighbouring stretches of its length, so that
    where no two such hold enough there is no mass failure: of millions of failures few are left.
    """
    crowds = ", ".join(_crowd(by) for by in BY)
    crowded = " OR ".join(
        f"""(cluster, "{by}") IN (SELECT cluster, name FROM crowd_{by})""" for by in BY
    )
    return store.frame(
        f"""WITH {ARRANGED}, {verdicts_of(selection)},
            open AS MATERIALIZED (
              SELECT cluster, failed_at, "user", chosen.node, cause, job_id, attempt_key,
                CAST(gpu_seconds AS DOUBLE) AS held_gpu_seconds,
                epoch_us(failed_at) // {int(WINDOW_MINUTES * 60e6)} AS stretch
              FROM chosen ANTI JOIN ({_OF_INCIDENTS}) USING (cluster, attempt_key)
              WHERE method <> 'human'),
            {crowds}
            SELECT cluster, failed_at, "user", node, cause, job_id, held_gpu_seconds,
              (SELECT (epoch_us(max(failed_at)) - epoch_us(min(failed_at))) / 60e6 FROM open)
                AS span_minutes
            FROM open WHERE {crowded} ORDER BY failed_at, cluster, attempt_key""",
        selection.parameters | {"nameless": list(NAMELESS)},
    )


def _crowd(by: By) -> str:
    """Common tables of the users, nodes or causes of whom two neighbouring stretches hold enough:
    one of the two then holds half of it, which few do."""
    named = "AND cause NOT IN (SELECT unnest($nameless))" if by == "cause" else ""
    return f"""stretch_{by} AS MATERIALIZED (
              SELECT cluster, "{by}" AS name, stretch, count(*) AS n FROM open
              WHERE "{by}" IS NOT NULL {named} GROUP BY ALL),
            crowd_{by} AS (
              SELECT DISTINCT cluster, name FROM (
                SELECT cluster, name, n + CASE WHEN lead(stretch) OVER next = stretch + 1
                    THEN lead(n) OVER next ELSE 0 END AS near
                FROM stretch_{by} SEMI JOIN (FROM stretch_{by} WHERE 2 * n >= {LEAST})
                  USING (cluster, name)
                WINDOW next AS (PARTITION BY cluster, name ORDER BY stretch))
              WHERE near >= {LEAST})"""
