"""Incidents and what they consist of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from data.filters import Filter, equal, of_cluster
from data.queries.efficiency import has_ledger, ledger_notes
from data.said import ARRANGED, SAID, VERDICTS

if TYPE_CHECKING:
    import pandas as pd

    from data.filters import Selection
    from data.store import Store


def _said(*fields: str, of: str = "VARCHAR") -> str:
    """What people said of an incident, a column a field."""
    return ", ".join(
        f"CAST(max(value) FILTER (field = '{name}') AS {of}) AS {name}" for name in fields
    )


def _hours(at: str) -> str:
    """Hours from the start of an incident; NULL where nobody said it, or somebody too early."""
    return f"CASE WHEN {at} >= start_at THEN date_diff('second', start_at, {at}) / 3600.0 END"


def _hit(which: str = "true") -> str:
    """Common table of the attempts of incidents, each once; `aside`: preempted by the requeue of
    one that failed. `which` is a condition on `incidents`."""
    return f"""
hit AS (
  SELECT incident_id, incidents.cluster, key AS attempt_key, min(member.start_at) AS struck_at,
    bool_and(kind = 'preemption') AS aside
  FROM incident_members member JOIN incidents USING (incident_id)
  WHERE kind IN ('failure', 'preemption') AND {which} GROUP BY ALL)"""


def lost(which: str = "true") -> str:
    """Common tables up to `lost`: what the attempts of incidents lost; of those that lost nothing
    that counts there is no row. `which` is as `_hit` has it.

    An attempt struck when it ended: of a period the database then reads few of all losses.
    """
    return f"""{_hit(which)},
lost AS (
  SELECT incident_id, sum(gpu_seconds) FILTER (bucket <> '') / 3600.0 AS lost_gpu_hours,
    coalesce(sum(gpu_seconds) FILTER (bucket <> '' AND aside), 0) / 3600.0
      AS second_order_gpu_hours,
    CAST(count(*) - count(gpu_seconds) FILTER (bucket <> '') AS INTEGER) AS n_unmeasured
  FROM hit JOIN lost_time ON lost_time.cluster = hit.cluster
    AND lost_time.attempt_key = hit.attempt_key AND lost_time.end_at = struck_at
  GROUP BY incident_id)"""


_NOT_BUILT = """
lost AS (
  SELECT NULL::VARCHAR AS incident_id, NULL::DOUBLE AS lost_gpu_hours,
    NULL::DOUBLE AS second_order_gpu_hours, NULL::INTEGER AS n_unmeasured WHERE false)"""
_BY_RULE = ("lost_gpu_seconds", "second_order_gpu_seconds", "n_unmeasured")
"""Columns of the table that the ledger's take the place of."""


def _incidents(store: Store, which: str = "true") -> str:
    """Common tables up to `incident`: the table `incidents` with what people said over it, and with
    what its attempts lost by the ledger: `lost_gpu_hours`, `second_order_gpu_hours` (the part that
    preempted attempts lost) and `n_unmeasured` (attempts of which nobody knows it). NULL where the
    ledger is not built, and of a retired one whose attempts ended otherwise since; 0 where the
    attempts lost nothing that counts. `which` is a condition that all incidents that are asked for
    meet: the losses of others are not summed.
    """
    built = has_ledger(store)
    zero = "CASE WHEN lost.incident_id IS NULL AND NOT retired THEN 0 ELSE lost.{0} END AS {0}"
    names = ("lost_gpu_hours", "second_order_gpu_hours", "n_unmeasured")
    sums = ", ".join(zero.format(name) if built else f"lost.{name}" for name in names)
    return f"""{ARRANGED}, {SAID}, {lost(which) if built else _NOT_BUILT},
of_incident AS (
  SELECT key AS incident_id, max(value) FILTER (field = 'cause') AS said_cause,
    max(domain) FILTER (field = 'cause') AS said_domain,
    {_said("status", "note", "owner", "assignee", "remedy", "acknowledged_by", "resolved_by")},
    {_said("acknowledged_at", "resolved_at", of="TIMESTAMPTZ")}
  FROM said WHERE kind = 'incident' GROUP BY key),
incident AS (
  SELECT incidents.* EXCLUDE ({", ".join(_BY_RULE)})
      REPLACE (coalesce(said_cause, cause) AS cause, coalesce(said_domain, domain) AS domain),
    {sums}, cause AS derived_cause, said_cause IS NOT NULL AS decided,
    coalesce(status, 'open') AS status, note, owner, assignee, acknowledged_at, acknowledged_by,
    {_hours("acknowledged_at")} AS hours_to_acknowledge,
    resolved_at, resolved_by, {_hours("resolved_at")} AS hours_to_resolve, remedy
  FROM incidents LEFT JOIN of_incident USING (incident_id) LEFT JOIN lost USING (incident_id))
"""


_TOUCHED = Filter(columns=("cluster",), overlaps=("start_at", "end_at"))
_OF_MEMBER = Filter(
    of="incidents", columns=("cluster",), overlaps=("incidents.start_at", "incidents.end_at")
)
_FAILED = Filter(of="jobs", columns=("partition", "account"), n_gpus="jobs.n_gpus")
FIRST_BY = {
    "latest": "start_at DESC",
    "largest": "lost_gpu_hours DESC NULLS LAST, n_gpus DESC NULLS LAST, start_at DESC",
}
"""Words that stand for an incident, with the order in which it is the first: the largest lost most
by the ledger; where that is not built, it hit most GPUs."""


def incident_rows(
    store: Store,
    selection: Selection,
    *,
    first: str = "latest",
    limit: int = 10_000,
    **which: str | None,
) -> pd.DataFrame:
    """Living incidents that touch the period, the latest or the largest first; nodes as JSON.

    `which` names values of columns (domain, cause, status, owner, assignee); None leaves one open.
    With a partition, account or size only those in which such an attempt failed.
    """
    failed = _FAILED.where(selection)
    touched = f"""incident_id IN (
                SELECT incident_id FROM incident_members member JOIN incidents USING (incident_id)
                JOIN jobs ON member.kind = 'failure' AND jobs.attempt_key = member.key
                  AND jobs.cluster = incidents.cluster
                WHERE {failed})"""
    return store.frame(
        f"""WITH {_incidents(store, _OF_MEMBER.where(selection))} FROM incident
            WHERE NOT retired AND {_TOUCHED.where(selection)} AND {equal(**which)}
              AND {"true" if failed == "true" else touched}
            ORDER BY {FIRST_BY[first]}, incident_id LIMIT {int(limit)}""",
        selection.parameters | which,
    )


def incident(store: Store, incident_id: str) -> pd.DataFrame:
    """One incident: at most one row, also where it was superseded or retired."""
    return store.frame(
        f"""WITH {_incidents(store, "incident_id = $incident")} FROM incident
            WHERE incident_id = $incident""",
        _of(incident_id),
    )


class Standing(NamedTuple):
    """Whether an incident is one."""

    incident_id: str
    cluster: str
    retired: bool
    superseded_by: str | None


def standing(store: Store, incident_id: str) -> Standing | None:
    """What became of an incident; None where the store knows none of this id."""
    rows = store.rows(
        f"""WITH {ARRANGED} SELECT incident_id, cluster, coalesce(retired, false), superseded_by
            FROM incidents WHERE incident_id = $incident""",
        _of(incident_id),
    )
    return Standing(*rows[0]) if rows else None


def quiet(store: Store, incident_ids: list[str]) -> pd.DataFrame:
    """How long incidents are over: columns incident_id, quiet_days (from the last record of it, or
    the return of its last node, to the last record of a job of its cluster; without jobs to the
    last day with any record), n_out (nodes whose outage has no end).
    """
    return store.frame(
        f"""WITH {ARRANGED}, seen AS (
              SELECT cluster,
                coalesce(any_value(as_of_at), CAST(max(day) AS TIMESTAMPTZ)) AS last_at
              FROM clusters LEFT JOIN coverage USING (cluster) GROUP BY cluster)
            SELECT incident_id, date_diff('second',
                greatest(any_value(incidents.end_at), max(member.start_at), max(member.end_at)),
                any_value(last_at)) / 86400.0 AS quiet_days,
              count(DISTINCT member.node) FILTER (
                member.kind = 'node_event' AND member.end_at IS NULL) AS n_out
            FROM incidents JOIN (SELECT unnest($incidents) AS incident_id) USING (incident_id)
            JOIN seen USING (cluster) LEFT JOIN incident_members member USING (incident_id)
            GROUP BY incident_id ORDER BY incident_id""",
        {"incidents": incident_ids},
    )


def first_by(store: Store, word: str) -> str | None:
    """Id of the latest or the largest living incident; None where there is none."""
    rows = store.rows(
        f"""WITH {_incidents(store)} SELECT incident_id FROM incident WHERE NOT retired
            ORDER BY {FIRST_BY[word]}, incident_id LIMIT 1"""
    )
    return rows[0][0] if rows else None


def losses(store: Store, incident_id: str) -> pd.DataFrame:
    """What the runs that an incident hit lost by the ledger, one row a run: the counts of
    `gpu_time`, n_attempts whose loss is known.

    Raises
    ------
    LedgerMissingError
        Where the ledger is not built.
    """
    ledger_notes(store)
    return store.frame(
        f"""WITH {ARRANGED}, {_hit()}
            SELECT sum(gpu_seconds) AS gpu_seconds,
              sum(coalesce(lower_gpu_seconds, 0)) AS lower_gpu_seconds,
              sum(coalesce(upper_gpu_seconds, 0)) AS upper_gpu_seconds,
              sum(coalesce(shared_gpu_seconds, 0)) AS shared_gpu_seconds,
              pow(sum(coalesce(habit_gpu_seconds, 0)), 2) AS habit_gpu_s2,
              sum(coalesce(variance_gpu_s2, 0)) AS variance_gpu_s2,
              count(gpu_seconds) AS n_attempts
            FROM hit JOIN lost_time USING (cluster, attempt_key)
            JOIN jobs USING (cluster, attempt_key)
            WHERE incident_id = $incident AND bucket <> '' AND gpu_seconds IS NOT NULL
            GROUP BY cluster, coalesce(run_id, attempt_key)""",
        _of(incident_id),
    )


def near_ids(store: Store, prefix: str) -> list[str]:
    """Ids that begin so."""
    rows = store.rows(
        """SELECT incident_id FROM incidents WHERE starts_with(incident_id, lower($prefix))
           ORDER BY incident_id LIMIT 5""",
        {"prefix": prefix},
    )
    return [row[0] for row in rows]


def members(store: Store, incident_id: str) -> pd.DataFrame:
    """Members of an incident in order of time, with the attempt or node each is about.

    Columns kind, key, start_at, end_at, node, text, severity, role, signal, cluster, job_id,
    attempt, state, n_gpus, began_at, user, account, cause, domain, confidence, source (scheduler,
    node_events, or that of the health event).
    """
    return store.frame(
        f"""WITH {ARRANGED}, {VERDICTS}
            SELECT member.kind, member.key, member.start_at, member.end_at, member.node,
              member.text, member.severity, member.role, member.signal, incidents.cluster,
              jobs.job_id, jobs.attempt, jobs.state, jobs.n_gpus, jobs.start_at AS began_at,
              jobs."user", jobs.account,
              verdict.cause, verdict.domain, verdict.confidence,
              CASE member.kind WHEN 'health_event' THEN event.source
                WHEN 'node_event' THEN 'node_events' ELSE 'scheduler' END AS source
            FROM incident_members member JOIN incidents USING (incident_id)
            LEFT JOIN jobs ON member.kind IN ('failure', 'preemption')
              AND jobs.cluster = incidents.cluster AND jobs.attempt_key = member.key
            LEFT JOIN verdict ON member.kind = 'failure'
              AND verdict.cluster = incidents.cluster AND verdict.attempt_key = member.key
            LEFT JOIN health_events event ON member.kind = 'health_event'
              AND event.cluster = incidents.cluster AND event.event_id = member.key
            WHERE member.incident_id = $incident
            ORDER BY member.start_at, member.kind, member.key""",
        _of(incident_id),
    )


def of_attempt(store: Store, cluster: str, attempt_key: str) -> pd.DataFrame:
    """Living incidents that an attempt is part of: columns incident_id, summary, start_at."""
    return store.frame(
        f"""WITH {ARRANGED} SELECT incident_id, summary, incidents.start_at
           FROM incident_members JOIN incidents USING (incident_id)
           WHERE kind = 'failure' AND key = $key AND cluster = $cluster AND NOT retired
           ORDER BY incidents.start_at DESC, incident_id""",
        {"cluster": cluster, "key": attempt_key},
    )


def has_failed(store: Store, cluster: str, attempt_key: str) -> bool:
    """Whether an attempt is one that failed."""
    rows = store.rows(
        "SELECT 1 FROM failures WHERE cluster = $cluster AND attempt_key = $key LIMIT 1",
        {"cluster": cluster, "key": attempt_key},
    )
    return bool(rows)


def of_node(store: Store, cluster: str | None, node: str) -> pd.DataFrame:
    """Living incidents in which a node is named, the latest first."""
    return store.frame(
        f"""WITH {_incidents(store)}
            SELECT * FROM incident WHERE {of_cluster(cluster)} AND NOT retired
              AND list_contains(CAST(nodes AS JSON)::VARCHAR[], $node)
            ORDER BY start_at DESC, incident_id""",
        {"cluster": cluster, "node": node},
    )


def _of(incident_id: str) -> dict[str, Any]:
    return {"incident": incident_id}


def evidence_rows(store: Store, incident_ids: list[str]) -> pd.DataFrame:
    """Members of incidents: columns incident_id, kind, key, start_at, node, severity, role, signal,
    text; in order of time."""
    return store.frame(
        f"""WITH {ARRANGED}
           SELECT incident_id, kind, key, start_at, node, severity, role, signal, text
           FROM incident_members SEMI JOIN (SELECT unnest($incidents) AS incident_id)
             USING (incident_id)
           ORDER BY incident_id, start_at, kind, key""",
        {"incidents": incident_ids},
    )


def verdicts(store: Store, incident_id: str) -> pd.DataFrame:
    """Verdicts of the failed attempts of an incident, in order of time.

    Columns cluster, attempt_key, job_id, attempt, state, failed_at, node, cause, domain,
    derived_cause, confidence, method, symptom; evidence and alternatives as JSON arrays.
    """
    return store.frame(
        f"""WITH {ARRANGED}, {VERDICTS}
            SELECT verdict.cluster, verdict.attempt_key, jobs.job_id, jobs.attempt, verdict.state,
              verdict.failed_at, verdict.node, verdict.cause, verdict.domain,
              verdict.derived_cause, verdict.confidence, verdict.method, verdict.symptom,
              verdict.evidence, verdict.alternatives
            FROM incident_members member JOIN incidents USING (incident_id)
            JOIN verdict ON verdict.cluster = incidents.cluster
              AND verdict.attempt_key = member.key
            JOIN jobs ON jobs.cluster = incidents.cluster AND jobs.attempt_key = member.key
            WHERE member.incident_id = $incident AND member.kind = 'failure'
            ORDER BY verdict.failed_at, verdict.attempt_key""",
        _of(incident_id),
    )


def signal_rows(store: Store, incident_ids: list[str]) -> pd.DataFrame:
    """What health events showed in these incidents: columns incident_id, signal; each pair once."""
    return store.frame(
        f"""WITH {ARRANGED} SELECT DISTINCT incident_id, signal
           FROM incident_members SEMI JOIN (SELECT unnest($incidents) AS incident_id)
             USING (incident_id)
           WHERE kind = 'health_event' AND signal IS NOT NULL ORDER BY ALL""",
        {"incidents": incident_ids},
    )
