"""How often each check fires around the end of attempts, and while attempts run on undisturbed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.failures.calibration import causal_ratio, chance_rate
from data.columns import frame_of, registered

if TYPE_CHECKING:
    import duckdb

DAY_US = 86_400_000_000


def calibrate(connection: duckdb.DuckDBPyConnection, window_us: int) -> None:
    """Fills `check_calibration`, and the temporary table `background` with its counts by node.

    Reads the temporary tables `observation` and `near`. Counts are of the days from the first to
    the last record of a check's source: of other days nobody knows whether it would have fired.
    """
    connection.execute(_REACH)
    connection.execute(_HELD, {"day": DAY_US})
    connection.execute(_BACKGROUND, {"day": DAY_US, "window": window_us})
    counts = frame_of(connection, _COUNTS, {"day": DAY_US, "window": window_us})
    counts["rate_per_node_day"] = chance_rate(counts)
    counts["causal_ratio"] = causal_ratio(counts)
    with registered(connection, counts=counts):
        connection.execute("INSERT INTO check_calibration BY NAME FROM counts")


_SPEAKS = "(kind = 'node_event' OR coalesce(severity IN ('critical', 'fatal'), false))"
"""Condition of an observation that speaks for a cause."""
_REACH = f"""
CREATE OR REPLACE TEMP TABLE reach AS
WITH span AS (
  SELECT cluster, source, min(at_us) // {DAY_US} * {DAY_US} AS from_us,
    (max(at_us) // {DAY_US} + 1) * {DAY_US} AS to_us
  FROM observation GROUP BY ALL)
SELECT cluster, signal, severity, min(from_us) AS from_us, max(to_us) AS to_us
FROM (SELECT DISTINCT cluster, source, signal, severity FROM observation)
JOIN span USING (cluster, source) GROUP BY ALL
"""
"""From when to when the source of each check was read."""
_HELD = """
CREATE OR REPLACE TEMP TABLE held AS
WITH span AS (SELECT DISTINCT cluster, from_us, to_us FROM reach)
SELECT cluster, from_us, to_us, node,
  least(to_us - from_us, sum(greatest(0, least(coalesce(epoch_us(end_at), to_us), to_us)
    - greatest(epoch_us(start_at), from_us)))) AS held_us, held_us / $day AS node_days
FROM job_nodes JOIN span USING (cluster) WHERE start_at IS NOT NULL
GROUP BY cluster, from_us, to_us, node
"""
"""Node-days that attempts held; jobs that share a node hold it at most all the time.

Microseconds are added up, not days, so that the sum is the same in whatever order rows stand.
"""
_BACKGROUND = f"""
CREATE OR REPLACE TEMP TABLE background AS
WITH apart AS (
  SELECT id, kind, cluster, signal, severity, node, at_us, at_us // $day AS day FROM observation
  WHERE {_SPEAKS}
    AND (kind, id) NOT IN (SELECT (kind, id) FROM near WHERE state <> 'COMPLETED')),
busy AS (
  SELECT cluster, node, epoch_us(start_at) AS start_us, epoch_us(end_at) AS end_us,
    unnest(range(start_us // $day, coalesce(end_us, now_us) // $day + 1)) AS day
  FROM job_nodes, (SELECT max(at_us) AS now_us FROM observation)
  WHERE start_at IS NOT NULL)
SELECT cluster, signal, severity, node, count(DISTINCT at_us // $window) AS n_hits
FROM apart JOIN busy USING (cluster, node, day)
WHERE at_us >= start_us AND (end_us IS NULL OR at_us < end_us) GROUP BY ALL
"""
"""Windows of time in which a check fired on a node that an attempt held, which ran on."""
_COUNTS = f"""
WITH ends AS (
  SELECT reach.cluster, from_us, to_us,
    count(*) FILTER (state = 'COMPLETED') AS n_completed_attempts,
    CAST(coalesce(sum(n_nodes) FILTER (state = 'COMPLETED'), 0) AS BIGINT) AS n_completed,
    CAST(coalesce(sum(n_nodes) FILTER (state IN ('FAILED', 'NODE_FAIL')), 0) AS BIGINT)
      AS n_failed
  FROM (SELECT DISTINCT cluster, from_us, to_us FROM reach) reach
  LEFT JOIN jobs ON jobs.cluster = reach.cluster
    AND epoch_us(end_at) BETWEEN from_us AND to_us
  GROUP BY ALL),
paired AS MATERIALIZED (
  SELECT cluster, signal, severity, state, job, node, bool_or({_SPEAKS}) AS speaks
  FROM near GROUP BY ALL),
hit AS (
  SELECT cluster, signal, severity, bool_or(speaks) AS speaks,
    count(*) FILTER (state = 'COMPLETED') AS n_completed_hits,
    count(DISTINCT job) FILTER (state = 'COMPLETED') AS n_completed_attempts_hit,
    count(*) FILTER (state IN ('FAILED', 'NODE_FAIL')) AS n_failed_hits
  FROM paired GROUP BY ALL),
failed_day AS (
  SELECT cluster, signal, severity, count(*) AS n_failed_node_days
  FROM (
    SELECT DISTINCT cluster, signal, severity, node, at_us // $day FROM near
    WHERE state IN ('FAILED', 'NODE_FAIL'))
  GROUP BY ALL),
exposed AS (
  SELECT cluster, from_us, to_us, sum(held_us) / $day AS background_node_days
  FROM held GROUP BY ALL),
apart AS (
  SELECT cluster, signal, severity, CAST(sum(n_hits) AS BIGINT) AS n_background_hits
  FROM background GROUP BY ALL)
SELECT hit.*, coalesce(n_failed_node_days, 0) AS n_failed_node_days, n_completed_attempts,
  n_completed, n_failed, $window / 60e6 AS window_minutes,
  coalesce(background_node_days, 0.0) AS background_node_days,
  coalesce(n_background_hits, 0) AS n_background_hits
FROM hit JOIN reach ON reach.cluster = hit.cluster AND reach.signal = hit.signal
  AND reach.severity IS NOT DISTINCT FROM hit.severity
JOIN ends ON ends.cluster = hit.cluster
  AND (ends.from_us, ends.to_us) = (reach.from_us, reach.to_us)
LEFT JOIN exposed ON exposed.cluster = hit.cluster
  AND (exposed.from_us, exposed.to_us) = (reach.from_us, reach.to_us)
LEFT JOIN apart ON apart.cluster = hit.cluster AND apart.signal = hit.signal
  AND apart.severity IS NOT DISTINCT FROM hit.severity
LEFT JOIN failed_day ON failed_day.cluster = hit.cluster AND failed_day.signal = hit.signal
  AND failed_day.severity IS NOT DISTINCT FROM hit.severity
ORDER BY hit.cluster, hit.signal, hit.severity
"""
"""Each check and severity that fired near an end: its hits near ends, and in the background."""
