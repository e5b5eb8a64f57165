"""When attempts on several nodes ended, and on which: of these raw samples are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.nodes.machines.samples import LEAST_MACHINES
from data.reduce.windows import LAST_US, JobWindow

if TYPE_CHECKING:
    from data.store import Store

_ENDS = f"""SELECT held.cluster, held.attempt_key, min(held.start_at) AS start_at,
    max(held.end_at) AS end_at, count(*) AS n_nodes
  FROM job_nodes AS held WHERE held.start_at < held.end_at
  GROUP BY ALL HAVING count(*) >= {LEAST_MACHINES}"""
_NAMES = """SELECT cluster, attempt_key,
    list(DISTINCT name ORDER BY name) FILTER (name IS NOT NULL) AS names
  FROM (
    SELECT cluster, attempt_key, unnest([node, node_written]) AS name
    FROM job_nodes SEMI JOIN ends USING (cluster, attempt_key)
    UNION ALL
    SELECT cluster, attempt_key, written
    FROM job_nodes SEMI JOIN ends USING (cluster, attempt_key)
      JOIN node_names USING (cluster, node))
  GROUP BY ALL"""


class JobEnds:
    """The last half hour of each attempt on four nodes or more that a store knows to have ended."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def marks(self) -> dict[str, str]:
        """Day (UTC) -> hash of the attempts that ended on it, of days with any."""
        rows = self._store.rows(
            f"""SELECT strftime(end_at, '%Y-%m-%d') AS day, md5(string_agg(concat_ws(
                  ' ', cluster, attempt_key, epoch_us(start_at), epoch_us(end_at), n_nodes),
                  '; ' ORDER BY cluster, attempt_key))[:16]
                FROM ({_ENDS}) GROUP BY day"""
        )
        return dict(rows)

    def windows(self, day: str) -> list[JobWindow]:
        """Those that ended on a day: failed ones first, then those on most nodes."""
        rows = self._store.rows(
            f"""WITH ends AS MATERIALIZED (
                  FROM ({_ENDS}) WHERE strftime(end_at, '%Y-%m-%d') = $day)
                SELECT cluster, names, greatest(epoch_us(start_at), epoch_us(end_at) - {LAST_US}),
                  epoch_us(end_at) + 1
                FROM ends JOIN ({_NAMES}) USING (cluster, attempt_key)
                  LEFT JOIN (SELECT DISTINCT cluster, attempt_key, true AS failed FROM failures)
                    USING (cluster, attempt_key)
                ORDER BY failed NULLS LAST, n_nodes DESC, end_at, cluster, attempt_key""",
            {"day": day},
        )
        return [JobWindow(*row) for row in rows]
