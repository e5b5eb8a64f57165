"""How often each cause struck, day by day, and every failure with who and where it hit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.queries.exposure import local_day
from data.queries.failures import verdicts_of
from data.said import ARRANGED

if TYPE_CHECKING:
    import pandas as pd

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
              SELECT cause, any_value(domain ORDER BY domain) AS domain, min(method) AS method,
                min(day) AS day, count(*) AS failures
              FROM item GROUP BY cluster, cause, item)
            SELECT cause, domain, method, day, count(*) AS n,
              CAST(sum(failures) AS BIGINT) AS failures
            FROM struck GROUP BY ALL ORDER BY ALL""",
        selection.parameters,
    )


def unexplained_failures(store: Store, selection: Selection) -> pd.DataFrame:
    """Failed attempts that no incident holds and of which nobody said the cause: columns cluster,
    failed_at, user, node, cause, job_id, held_gpu_seconds (running time x GPUs); in order of time.
    """
    return store.frame(
        f"""WITH {ARRANGED}, {verdicts_of(selection)}
            SELECT cluster, failed_at, "user", chosen.node, cause, job_id,
              CAST(gpu_seconds AS DOUBLE) AS held_gpu_seconds
            FROM chosen ANTI JOIN ({_OF_INCIDENTS}) USING (cluster, attempt_key)
            WHERE method <> 'human' ORDER BY failed_at, cluster, attempt_key""",
        selection.parameters,
    )
