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


def _step(at_us: str) -> str:
    """Number of the step of a time, counted from 1970-01-01, before that too."""
    return f"({at_us} // $step_us - CAST({at_us} % $step_us < 0 AS BIGINT))"


def steps(store: Store, selection: Selection, fact: str, *, days: int) -> Columns:
    """What each named node ran in each step of so many days, counted from 1970-01-01 in UTC.

    Columns cluster, node, step, level (of the fact; None where nothing says it), age and exposure
    (as a share of the step): a row for each level and age that a node had in a step.
    """
    return store.columns(
        f"""WITH {held_of(selection)}, {facts_of(fact)}, {SEGMENTS},
            held_in AS (
              SELECT cluster, node, share, begin_us, end_us,
                unnest(range({_step("begin_us")}, {_step("(end_us - 1)")} + 1)) AS step
              FROM held WHERE node IS NOT NULL),
            cut AS (
              SELECT cluster, node, step, share, greatest(begin_us, step * $step_us) AS begin_us,
                least(end_us, (step + 1) * $step_us) AS end_us
              FROM held_in)
            SELECT cut.cluster, cut.node, step, level, coalesce(age, 'unknown') AS age,
              sum(share * (least(end_us, coalesce(until_us, end_us))
                - greatest(begin_us, coalesce(from_us, begin_us)))) / $step_us AS exposure
            FROM cut LEFT JOIN segment ON cut.cluster = segment.cluster
              AND cut.node = segment.node AND from_us < end_us AND until_us > begin_us
            GROUP BY ALL HAVING exposure > 0 ORDER BY ALL""",
        {**selection.parameters, "fact": fact, "step_us": days * DAY_US},
    )


def levels(store: Store, selection: Selection, fact: str) -> list[tuple[str, str, str]]:
    """What a fact was of each node when the period ended: cluster, node, level."""
    return store.rows(
        f"""WITH {facts_of(fact)}, {SEGMENTS}
            SELECT cluster, node, arg_max_null(level, from_us) AS told FROM segment
            WHERE {_CHOSEN.where(selection)}
              AND from_us < coalesce(epoch_us(CAST($to_at AS TIMESTAMPTZ)), 9000000000000000)
            GROUP BY cluster, node HAVING told IS NOT NULL ORDER BY ALL""",
        {**selection.parameters, "fact": fact},
    )


def incidents(store: Store, selection: Selection, fact: str, *, days: int) -> Columns:
    """Incidents that hit named nodes in the period and in `BEFORE` it. Of each the first failure
    that names a node counts.

    Columns cluster, node, failed_us (microseconds since 1970-01-01), step, level and age as of
    `steps`, and inside (the period). What ended a job belongs to the time just before its end.
    """
    earlier = selection
    if selection.from_at is not None:
        earlier = replace(selection, from_at=selection.from_at - BEFORE)
    return store.columns(
        f"""WITH {ARRANGED}, {failures_of(earlier)}, {facts_of(fact)}, {SEGMENTS},
            event AS (
              SELECT cluster, node, epoch_us(failed_at) AS failed_us, 1 AS before_us,
                row_number() OVER (PARTITION BY cluster, coalesce(incident_id, attempt_key)
                  ORDER BY node IS NULL, failed_at, attempt_key) AS place
              FROM failure LEFT JOIN (
                SELECT incidents.cluster, key AS attempt_key, incident_id
                FROM incident_members JOIN incidents USING (incident_id) WHERE kind = 'failure'
              ) USING (cluster, attempt_key)
              UNION ALL
              SELECT cluster, node, epoch_us(start_at), 0, 1 FROM node_failures
              WHERE {node_failures_of(earlier)})
            SELECT event.cluster, event.node, failed_us,
              {_step("(failed_us - before_us)")} AS step, level, coalesce(age, 'unknown') AS age,
              failed_us >= coalesce(epoch_us(CAST($begin_at AS TIMESTAMPTZ)), failed_us) AS inside
            FROM event LEFT JOIN segment ON event.cluster = segment.cluster
              AND event.node = segment.node AND from_us <= failed_us - before_us
              AND until_us > failed_us - before_us
            WHERE place = 1 AND event.node IS NOT NULL ORDER BY ALL""",
        {
            **earlier.parameters,
            "fact": fact,
            "step_us": days * DAY_US,
            "begin_at": selection.from_at,
        },
    )
