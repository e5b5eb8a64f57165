"""Failures and exposure by node, level of a fact, age of the node and size of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.filters import Filter
from data.queries.exposure import (
    attempts_of,
    failures_of,
    node_days_of,
    node_failures_of,
)
from data.running_time import DAY_US
from data.said import ARRANGED

if TYPE_CHECKING:
    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store

NO_GROUPS = ("serial", "uuid")
"""Facts that tell every part apart, so that they group nothing."""
_EVER = 9_000_000_000_000_000
"""Microseconds since 1970 before which all that is recorded ends."""
_AGES = (
    (0, "under 3 months"),
    (91, "3 to 12 months"),
    (365, "1 to 2 years"),
    (730, "over 2 years"),
)
"""Days since a node was installed from which it is of an age."""
_SIZES = """CASE WHEN units IS NULL THEN 'unknown' WHEN units <= of_node THEN '1 node'
  WHEN units <= 8 * of_node THEN '2 to 8 nodes' WHEN units <= 64 * of_node THEN '9 to 64 nodes'
  ELSE 'over 64 nodes' END"""
_OF_NODES = Filter(columns=("cluster",))

_OBSERVED = f"""
  SELECT cluster, node, '' AS gpu, {{column}} AS value,
    CASE WHEN {{reaches_back}} AND row_number() OVER spell = 1 THEN -{_EVER}
      ELSE epoch_us(observed_at) END AS from_us,
    lead(epoch_us(observed_at), 1, {_EVER}) OVER spell AS until_us
  FROM (SELECT *, last_value(source) OVER (PARTITION BY cluster, node ORDER BY observed_at, source
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS latest
        FROM node_inventory WHERE {{column}} IS NOT NULL AND node IS NOT NULL)
  WHERE source = latest WINDOW spell AS (PARTITION BY cluster, node ORDER BY observed_at)"""
_ELSEWHERE = {
    "driver": _OBSERVED.format(column="driver", reaches_back="false"),
    "gpu_model": _OBSERVED.format(column="gpu_model", reaches_back="true"),
    "rack": f"""
  SELECT cluster, node, '' AS gpu, rack AS value,
    CASE WHEN row_number() OVER spell = 1 THEN -{_EVER} ELSE epoch_us(first_seen_at) END AS from_us,
    lead(epoch_us(first_seen_at), 1, {_EVER}) OVER spell AS until_us
  FROM nodes WHERE rack IS NOT NULL AND node IS NOT NULL
  WINDOW spell AS (PARTITION BY cluster, node ORDER BY first_seen_at NULLS FIRST)""",
}
"""What says a fact of nodes of which `node_facts` does not: cluster, node, gpu, value, from_us,
until_us. Of inventories the latest source counts; a model is taken to have been there before
somebody looked, a driver is not."""


def facts_of(key: str) -> str:
    """Common table `fact`: what holds of a node, or of one of its GPUs, and from when to when.

    What is said later of the same thing ends what was said before.
    """
    elsewhere = _ELSEWHERE.get(key)
    other = f"UNION ALL SELECT * FROM ({elsewhere}) ANTI JOIN stated USING (cluster, node)"
    return f"""
stated AS (
  SELECT cluster, node, coalesce(gpu, '') AS gpu, value, epoch_us(from_at) AS from_us,
    least(coalesce(epoch_us(to_at), {_EVER}), lead(epoch_us(from_at), 1, {_EVER}) OVER (
      PARTITION BY cluster, node, gpu ORDER BY from_at)) AS until_us
  FROM node_facts
  WHERE lower(key) = $fact AND value IS NOT NULL AND from_at IS NOT NULL AND node IS NOT NULL),
fact AS (SELECT * FROM stated {other if elsewhere else ""})
"""


SEGMENTS = f"""
installed AS (
  SELECT cluster, node, epoch_us(first_seen_at) AS installed_us,
    lead(epoch_us(first_seen_at), 1, {_EVER}) OVER (
      PARTITION BY cluster, node ORDER BY first_seen_at) AS replaced_us
  FROM nodes WHERE source = 'inventory' AND first_seen_at IS NOT NULL AND node IS NOT NULL),
aged AS (
  SELECT cluster, node, age, installed_us + days * {DAY_US} AS from_us,
    least(replaced_us, coalesce(installed_us + until_days * {DAY_US}, {_EVER})) AS until_us
  FROM installed, (SELECT age, days, lead(days) OVER (ORDER BY days) AS until_days
    FROM (VALUES {", ".join(f"({days}, '{age}')" for days, age in _AGES)}) ages(days, age))
  WHERE installed_us + days * {DAY_US} < replaced_us),
point AS (
  SELECT cluster, node, from_us AS at_us FROM fact UNION SELECT cluster, node, until_us FROM fact
  UNION SELECT cluster, node, from_us FROM aged UNION SELECT cluster, node, until_us FROM aged
  UNION SELECT cluster, node, -{_EVER} FROM nodes WHERE node IS NOT NULL),
stretch AS (
  SELECT cluster, node, at_us AS from_us, lead(at_us, 1, {_EVER}) OVER (
    PARTITION BY cluster, node ORDER BY at_us) AS until_us
  FROM point WHERE at_us < {_EVER}),
segment AS MATERIALIZED (
  SELECT stretch.cluster, stretch.node, stretch.from_us, stretch.until_us,
    string_agg(DISTINCT value, ' + ' ORDER BY value) AS level,
    coalesce(any_value(age), 'unknown') AS age
  FROM stretch
  LEFT JOIN fact ON fact.cluster = stretch.cluster AND fact.node = stretch.node
    AND fact.from_us <= stretch.from_us AND fact.until_us > stretch.from_us
  LEFT JOIN aged ON aged.cluster = stretch.cluster AND aged.node = stretch.node
    AND aged.from_us <= stretch.from_us AND aged.until_us > stretch.from_us
  GROUP BY stretch.cluster, stretch.node, stretch.from_us, stretch.until_us)
"""
"""Stretches of time of each node in which neither the fact nor the age changes."""


def held_of(selection: Selection) -> str:
    """Common tables up to `held`: the time of each node in each attempt, as a share of the node,
    and the period where failures are known without jobs.
    """
    return f"""{attempts_of(selection)}, {node_days_of(selection)},
held AS (
  SELECT attempt.cluster, node, {_SIZES} AS size, begin_us, end_us,
    CASE WHEN basis = 'gpu_time'
      THEN coalesce(job_nodes.n_gpus, units / nullif(n_nodes, 0)) / of_node ELSE 1 END AS share
  FROM attempt JOIN job_nodes USING (cluster, attempt_key) JOIN clusters USING (cluster)
  WHERE end_us > begin_us
  UNION ALL
  SELECT cluster, node, 'unknown', epoch_us(begin_at), epoch_us(end_at), 1
  FROM logged_span JOIN (SELECT DISTINCT cluster, node FROM nodes
                         WHERE source <> 'observed' AND node IS NOT NULL)
  USING (cluster))
"""


def rows(store: Store, selection: Selection, fact: str) -> Columns:
    """Failures and exposure, a row for each node, level, age and size of job.

    Columns cluster, node, level, age, size, failures, exposure_node_days; node and level are None
    where nothing says them. Exposure is split where the fact changes. Of the failures of one
    incident the first that names a node counts. Two values that hold at once, of GPUs of one node,
    say, are a level of their own, `a + b`.
    """
    return store.columns(
        f"""WITH {ARRANGED}, {held_of(selection)},
            {failures_of(selection)}, {facts_of(fact)}, {SEGMENTS},
            ran AS (
              SELECT held.cluster, held.node, level, coalesce(age, 'unknown') AS age, size,
                sum(share * (least(end_us, until_us) - greatest(begin_us, from_us))) / {DAY_US}
                AS exposure_node_days
              FROM held JOIN segment ON held.cluster = segment.cluster AND held.node = segment.node
                AND from_us < end_us AND until_us > begin_us
              GROUP BY ALL),
            event AS (
              SELECT cluster, node, {_SIZES} AS size, epoch_us(failed_at) AS failed_us,
                row_number() OVER (PARTITION BY cluster, coalesce(incident_id, attempt_key)
                  ORDER BY node IS NULL, failed_at, attempt_key) AS place
              FROM (
                SELECT failure.*, incident_id,
                  CASE WHEN node_time THEN 1 ELSE coalesce(node_gpus, gpus_per_node) END AS of_node
                FROM failure JOIN clusters USING (cluster) JOIN jobs USING (cluster, attempt_key)
                LEFT JOIN (
                  SELECT incidents.cluster, key AS attempt_key, incident_id
                  FROM incident_members JOIN incidents USING (incident_id) WHERE kind = 'failure'
                ) USING (cluster, attempt_key))
              UNION ALL
              SELECT cluster, node, 'unknown', epoch_us(start_at), 1 FROM node_failures
              WHERE {node_failures_of(selection)}),
            failed AS (
              SELECT event.cluster, event.node, level, coalesce(age, 'unknown') AS age, size,
                count(*) AS failures
              FROM event LEFT JOIN segment ON event.cluster = segment.cluster
                AND event.node = segment.node AND from_us <= failed_us AND until_us > failed_us
              WHERE place = 1 GROUP BY ALL)
            SELECT cluster, node, level, age, size,
              coalesce(sum(failures), 0)::BIGINT AS failures,
              coalesce(sum(exposure_node_days), 0) AS exposure_node_days
            FROM (FROM ran UNION ALL BY NAME FROM failed) GROUP BY ALL ORDER BY ALL""",
        {**selection.parameters, "fact": fact},
    )


def known(store: Store, selection: Selection) -> list[tuple[str, int, int]]:
    """Facts by which rates can be compared: key, values and nodes of each, most nodes first."""
    found: list[Any] = store.rows(
        f"""SELECT key, count(DISTINCT value), count(DISTINCT (cluster, node)) FROM (
              SELECT lower(key) AS key, value, cluster, node FROM node_facts
              WHERE from_at IS NOT NULL AND node IS NOT NULL
              UNION ALL SELECT 'rack', rack, cluster, node FROM nodes
              UNION ALL SELECT 'driver', driver, cluster, node FROM node_inventory
              UNION ALL SELECT 'gpu_model', gpu_model, cluster, node FROM node_inventory)
            WHERE value IS NOT NULL AND key NOT IN {NO_GROUPS} AND {_OF_NODES.where(selection)}
            GROUP BY key ORDER BY 3 DESC, key""",
        selection.parameters,
    )
    return [(str(key), int(values), int(nodes)) for key, values, nodes in found]
