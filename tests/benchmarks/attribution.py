"""Verdicts of all failures, and incidents, with an event for each eight attempts of a store.

`python -m tests.benchmarks.attribution STORE N_EVENTS ROUNDS` writes into that store.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from data.publish import writer
from data.said import Said
from data.site import load_site
from data.stages import Context, incidents, severities
from data.stages.failures.verdicts import attribute_failures, find_nearby
from tests.benchmarks.spent import spent

if TYPE_CHECKING:
    import duckdb

BEFORE_MINUTES, AFTER_MINUTES = 10, 5
ENDS = """
CREATE TEMP TABLE ends AS
SELECT 0 AS severe, rowid AS place, node, end_at AS ended, 1800e6 AS spread
FROM job_nodes
UNION ALL
SELECT 1, row_number() OVER () - 1, node, job_nodes.end_at, 200e6
FROM job_nodes JOIN jobs USING (cluster, attempt_key) WHERE state = 'FAILED'
"""
"""Where events lie: about the ends of all attempts, and severe ones about those that failed."""
EVENTS = """
INSERT INTO health_events BY NAME
SELECT 'rsc' AS cluster, 'e' || i AS event_id, node,
  ended + to_microseconds(CAST(hash(i) % CAST(spread AS BIGINT) - spread / 2 AS BIGINT))
    AS observed_at,
  CASE WHEN i % 20 = 0 THEN 'kernel' ELSE 'health_check' END AS source,
  CASE i % 20 WHEN 0 THEN 'xid' WHEN 1 THEN 'check-ib' ELSE 'check-sensors' END AS check_name,
  CASE i % 20 WHEN 0 THEN NULL WHEN 1 THEN 'critical' ELSE 'warning' END AS severity,
  CASE WHEN i % 20 = 0 THEN [31, 48, 79, 63, 119][1 + i // 20 % 5] END AS xid,
  'an observation' AS message
FROM (SELECT i, CASE WHEN i % 20 < 2 THEN 1 ELSE 0 END AS severe,
        CAST(hash(i + 13) % CASE WHEN i % 20 < 2
          THEN (SELECT count(*) FROM ends WHERE severe = 1)
          ELSE (SELECT count(*) FROM ends WHERE severe = 0) END AS BIGINT) AS place
      FROM range({n_events}) t(i)) JOIN ends USING (severe, place)
"""


def measured(root: Path, n_events: int, rounds: int) -> dict[str, float]:
    """Median processor seconds of the bare join, of all verdicts and of all incidents."""
    join, verdicts, groups = [], [], []
    with writer(root) as building:
        connection = building.connection
        connection.execute(ENDS)
        connection.execute(EVENTS.format(n_events=n_events))
        context = Context(root, load_site(root), Said(), filled={"health_events"})
        severities.run(connection, context)
        for _ in range(rounds):
            join.append(spent(lambda: find_nearby(connection, BEFORE_MINUTES, AFTER_MINUTES)))
            connection.execute("DELETE FROM failures")
            connection.execute("DELETE FROM check_calibration")
            verdicts.append(spent(lambda: attribute_failures(connection, context)))
            groups.append(spent(lambda: incidents.run(connection, context)))
        _check(connection, n_events)
    return {"join": median(join), "verdicts": median(verdicts), "incidents": median(groups)}


def _check(connection: duckdb.DuckDBPyConnection, n_events: int) -> None:
    """Something was found, so that something was measured.

    Raises
    ------
    ValueError
        Where it was not.
    """
    found = connection.execute(
        """SELECT (SELECT count(*) FROM health_events) >= 0.99 * ?,
             (SELECT count(*) FROM failures) > 2 * ?,
             (SELECT count(*) FROM failures WHERE domain = 'hardware') > 0.02 * ?,
             (SELECT count(*) FROM incidents) > 0.002 * ?""",
        [n_events] * 4,
    ).fetchone()
    if found != (True, True, True, True):
        raise ValueError(f"events, failures, failures by hardware, incidents: {found}")


if __name__ == "__main__":
    _, store, many, often = sys.argv
    print("\n" + json.dumps(measured(Path(store), int(many), int(often))))
