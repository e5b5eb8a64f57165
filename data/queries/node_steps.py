"""What nodes ran in steps of time, with what held of them then, and when they failed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from data.filters import Filter
from data.queries.exposure import failures_of, node_failures_of
from data.queries.fact_rates import SEGMENTS, facts_of, held_of
from data.running_time import DAY_US
from data.said import ARRANGED

if TYPE_CHECKING:
    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store

_CHOSEN = Filter(columns=("cluster",))
BEFORE = timedelta(days=90)
"""Time before the period whose incidents of a node are known, too."""


def steps(store: Store, selection: Selection, fact: str, *, days: int) -> Columns:
    """What each named node ran in each step of so many days, counted from 1970-01-01 in UTC.

    Columns cluster, node, step, exposure (as a share of the step), level (of the fact) and age of
    the node as the step begins; level is None where nothing says it.
    """
    return store.columns(
        f"""WITH {held_of(selection)}, {facts_of(fact)}, {SEGMENTS},
            held_in AS (
              SELECT cluster, node, share, begin_us, end_us,
                unnest(range(begin_us // $step_us, (end_us - 1) // $step_us + 1)) AS step
              FROM held WHERE node IS NOT NULL),
            ran AS (
              SELECT cluster, node, step, sum(share * (least(end_us, (step + 1) * $step_us)
                - greatest(begin_us, step * $step_us))) / $step_us AS exposure
              FROM held_in GROUP BY ALL)
            SELECT ran.cluster, ran.node, step, exposure, level, coalesce(age, 'unknown') AS age
            FROM ran ASOF LEFT JOIN segment ON ran.cluster = segment.cluster
              AND ran.node = segment.node AND step * $step_us >= from_us
            WHERE exposure > 0 ORDER BY ALL""",
        {**selection.parameters, "fact": fact, "step_us": days * DAY_US},
    )


def levels(store: Store, selection: Selection, fact: str) -> list[tuple[str, str, str]]:
    """What a fact was of each node when the period ended: cluster, node, level."""
    return store.rows(
        f"""WITH {facts_of(fact)}, {SEGMENTS}
            SELECT cluster, node, arg_max(level, from_us) FROM segment
            WHERE level IS NOT NULL AND {_CHOSEN.where(selection)}
              AND from_us < coalesce(epoch_us(CAST($to_at AS TIMESTAMPTZ)), 9000000000000000)
            GROUP BY ALL ORDER BY ALL""",
        {**selection.parameters, "fact": fact},
    )


def incidents(store: Store, selection: Selection) -> Columns:
    """Incidents that hit named nodes in the period and in `BEFORE` it: columns cluster, node and
    failed_us, microseconds since 1970-01-01. Of each the first failure that names a node counts.
    """
    earlier = selection
    if selection.from_at is not None:
        earlier = replace(selection, from_at=selection.from_at - BEFORE)
    return store.columns(
        f"""WITH {ARRANGED}, {failures_of(earlier)},
            event AS (
              SELECT cluster, node, epoch_us(failed_at) AS failed_us,
                row_number() OVER (PARTITION BY cluster, coalesce(incident_id, attempt_key)
                  ORDER BY node IS NULL, failed_at, attempt_key) AS place
              FROM failure LEFT JOIN (
                SELECT incidents.cluster, key AS attempt_key, incident_id
                FROM incident_members JOIN incidents USING (incident_id) WHERE kind = 'failure'
              ) USING (cluster, attempt_key)
              UNION ALL
              SELECT cluster, node, epoch_us(start_at), 1 FROM node_failures
              WHERE {node_failures_of(earlier)})
            SELECT cluster, node, failed_us FROM event WHERE place = 1 AND node IS NOT NULL
            ORDER BY ALL""",
        earlier.parameters,
    )
