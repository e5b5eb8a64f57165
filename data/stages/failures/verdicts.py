"""Verdicts on failed attempts: evidence found by SQL, weighed by analytics, written with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.failures.attribution import CRASH_SIGNALS, Verdicts, attribute
from analytics.failures.calibration import not_by_chance
from analytics.failures.evidence import evidence_frame, of_events, of_reason
from analytics.failures.precedence import Weights, weights
from data.columns import frame_of, registered
from data.definitions import ENDED_BY_USER, FAILED, TOLD_TWICE
from data.stages.failures.calibration import calibrate

if TYPE_CHECKING:
    from collections.abc import Collection

    import duckdb
    import pandas as pd

    from data.site import Site
    from data.stages import Context

EVIDENCE_KEPT = 12
"""Pieces of evidence written with a verdict, the strongest first."""


def attribute_failures(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Fills `failures` and `check_calibration`.

    Where only some jobs, events and outages came or went, a verdict stays that rests on no other
    than the attempt's own records: near observations weigh by all of them, so that an attempt
    which has any, or had, gets its verdict anew.
    """
    site, near = context.site, set[str]()
    if context.filled & {"health_events", "node_events"}:
        attribution = site.attribution
        near = find_nearby(connection, attribution.before_minutes, attribution.after_minutes)
    if near:
        window = attribution.before_minutes + attribution.after_minutes
        calibrate(connection, max(int(window * 60e6), 1))
    due, of_due = "true", "true"
    if context.by_row(*_BY_ROW, besides=("health_events.severity",)):
        _find_due(connection, touched="jobs" in (context.changed or ()), near=bool(near))
        due = "(cluster, attempt_key) IN (SELECT cluster, attempt_key FROM due)"
        of_due = "jobs.rowid IN (SELECT attempt FROM due)"
        connection.execute(f"DELETE FROM failures WHERE {due}")
    else:
        connection.execute("DELETE FROM failures")
    ((n_failed,),) = connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE failed AS
            SELECT jobs.rowid AS attempt, jobs.cluster, attempt_key, job_id, job_id_raw,
              array_job_id, state, start_at, end_at, "user", account, partition, n_gpus,
              CASE WHEN exit_signal IN {CRASH_SIGNALS} THEN exit_signal ELSE 0 END AS exit_signal,
              reason, n_nodes, coalesce(lost.node, failed_node) AS failed_node,
              failed_node IS NOT NULL AS names_node,
              {ENDED_BY_USER} AS ended_by_user,
              {_CRITICAL if "health_events" in context.filled else "NULL::BOOLEAN"}
                AS critical_check,
              CASE WHEN n_nodes = 1 AND NOT contains(node_list, '[')
                THEN coalesce(alone.node, node_list) END AS only_node
            FROM jobs
            LEFT JOIN node_names lost ON lost.cluster = jobs.cluster AND lost.written = failed_node
            LEFT JOIN node_names alone ON alone.cluster = jobs.cluster AND alone.written = node_list
            WHERE {of_due} AND {FAILED}"""
    ).fetchall()
    if n_failed == 0:
        return
    table = weights(site.attribution.table, site.causes)
    kinds = near | {"scheduler"} | ({"job_log"} if "log_verdicts" in context.filled else set())
    _weigh(connection, _evidence(connection, table, kinds), table)
    if "annotations" in context.filled:
        _decide(connection, site, due)


_BY_ROW = ("jobs", "job_nodes", "health_events", "node_events")
"""Tables of which few rows that came or went leave most verdicts as they are."""


def _find_due(connection: duckdb.DuckDBPyConnection, *, touched: bool, near: bool) -> None:
    """Temporary table due: attempts that came or went, or have or had an observation near them.

    Columns cluster, attempt_key and attempt (rowid of jobs; NULL of one that went). Of the evidence
    that is kept with a verdict observations are a part: a scheduler and a log say one thing each.
    """
    found = [_HAD_NEAR.format(near="ANTI JOIN near USING (cluster, attempt_key)" if near else "")]
    found += [_TOUCHED] if touched else []
    found += ["SELECT cluster, attempt_key, job FROM near"] if near else []
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE due (cluster VARCHAR, attempt_key VARCHAR, attempt BIGINT)"
    )
    for rows in found:
        connection.execute(f"INSERT INTO due {rows}")


_HAD_NEAR = """
SELECT cluster, attempt_key, jobs.rowid FROM (
  FROM failures {near} WHERE contains(evidence, '"kind":"health_event"')
    OR contains(evidence, '"kind":"node_event"')) JOIN jobs USING (cluster, attempt_key)
"""
_TOUCHED = """
WITH came AS (
  SELECT cluster, attempt_key, jobs.rowid AS attempt FROM jobs
  SEMI JOIN touched_jobs USING (cluster, attempt_key, submit_at)
  UNION ALL
  SELECT cluster, attempt_key, rowid FROM jobs WHERE submit_at IS NULL
    AND (cluster, attempt_key) IN (SELECT cluster, attempt_key FROM touched_jobs))
FROM came UNION ALL
SELECT cluster, attempt_key, NULL FROM touched_jobs
"""
"""By the time of submission DuckDB finds the rows of jobs without looking through all of them."""


def find_nearby(
    connection: duckdb.DuckDBPyConnection, before_minutes: float, after_minutes: float
) -> set[str]:
    """Makes the temporary table `near`: node ends of attempts, each with an observation near it.

    Returns the kinds of observation in it.

    Each observation is put into the buckets of time that its window touches (a bucket is as long
    as the window, so two at most); ends and observations are joined by node and bucket, then
    compared to the microsecond. Columns job (rowid of jobs), state, cluster, attempt_key, node,
    kind (health_event or node_event), id (rowid there), signal, severity, at_us, offset_us. All
    observations stand in the temporary table `observation`.
    """
    before, after = (int(minutes * 60e6) for minutes in (before_minutes, after_minutes))
    width = max(before + after, 60_000_000)
    connection.execute(_OBSERVATIONS)
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE near AS
            WITH placed AS (
              SELECT *, unnest(range((at_us - {after}) // {width},
                (at_us + {before}) // {width} + 1)) AS bucket FROM observation),
            hit AS (
              SELECT job_nodes.cluster, attempt_key, job_nodes.node, kind, id, signal, severity,
                at_us, at_us - epoch_us(end_at) AS offset_us
              FROM job_nodes JOIN placed ON job_nodes.node = placed.node
                AND job_nodes.cluster = placed.cluster
                AND epoch_us(end_at) // {width} = bucket
              WHERE end_at IS NOT NULL
                AND at_us - epoch_us(end_at) BETWEEN {-before} AND {after})
            SELECT jobs.rowid AS job, state, hit.*
            FROM hit JOIN jobs USING (cluster, attempt_key)"""
    )
    return {kind for (kind,) in connection.execute("SELECT DISTINCT kind FROM near").fetchall()}


def _evidence(
    connection: duckdb.DuckDBPyConnection, table: Weights, kinds: Collection[str]
) -> pd.DataFrame:
    """All evidence of these kinds on the attempts in `failed`; the table `near` holds what is near.

    Kinds are health_event, node_event, scheduler and job_log.
    """
    found = [
        (frame_of(connection, query), shaped)
        for kind, (query, shaped) in _KINDS.items()
        if kind in kinds
    ]
    return evidence_frame([shaped(rows, table) for rows, shaped in found if len(rows)])


_OBSERVATIONS = f"""
CREATE OR REPLACE TEMP TABLE observation AS
SELECT 'health_event' AS kind, rowid AS id, cluster, node, epoch_us(observed_at) AS at_us,
  severity, source, CASE WHEN xid IS NOT NULL THEN 'xid ' || xid
    WHEN sxid IS NOT NULL THEN 'sxid ' || sxid ELSE coalesce(check_name, source) END AS signal
FROM health_events WHERE observed_at IS NOT NULL AND node IS NOT NULL AND NOT {TOLD_TWICE}
UNION ALL
SELECT 'node_event', rowid, cluster, node, epoch_us(start_at), NULL, 'node_event',
  'node ' || coalesce(state, 'event')
FROM node_events WHERE planned IS NOT TRUE
"""
"""What was observed of nodes: health events, and outages that nobody planned."""
_CHANCE = """
LEFT JOIN check_calibration calibration ON calibration.cluster = near.cluster
  AND calibration.signal = near.signal
  AND calibration.severity IS NOT DISTINCT FROM near.severity
LEFT JOIN background ON background.cluster = near.cluster AND background.node = near.node
  AND background.signal = near.signal
  AND background.severity IS NOT DISTINCT FROM near.severity
LEFT JOIN reach ON reach.cluster = near.cluster AND reach.signal = near.signal
  AND reach.severity IS NOT DISTINCT FROM near.severity
LEFT JOIN held ON held.cluster = near.cluster AND held.node = near.node
  AND held.from_us = reach.from_us AND held.to_us = reach.to_us
"""
_CHANCES = """
  CASE WHEN failed_node = near.node THEN 1 ELSE greatest(failed.n_nodes, 1) END AS n_nodes,
  n_hits, node_days, rate_per_node_day, window_minutes, causal_ratio"""
"""What says how likely a piece of evidence is chance: a node that the scheduler names is one."""
_CRITICAL = """jobs.rowid IN (
  SELECT job FROM near WHERE kind = 'health_event' AND severity IN ('critical', 'fatal'))"""
"""Whether an attempt has a critical check near its end."""
_EVENTS = f"""
SELECT attempt, near.cluster, event_id AS key, near.node,
  offset_us / 1e6 AS offset_s, check_name, event.severity, xid, sxid, event.source,
  message, event.n_records,
  CASE WHEN event.job_id IS NULL THEN NULL
    ELSE list_contains([failed.job_id, job_id_raw, array_job_id], event.job_id) END
    AS job_named, {_CHANCES}
FROM near JOIN failed ON near.job = failed.attempt
JOIN health_events event ON near.kind = 'health_event' AND event.rowid = near.id
{_CHANCE}
ORDER BY attempt, observed_at, event_id
"""
"""Health events near the end of failed attempts."""
_OUTAGES = f"""
SELECT attempt, 'node_event' AS kind,
  event.node || ' ' || strftime(event.start_at, '%Y-%m-%dT%H:%M:%SZ') AS key,
  near.node, offset_us / 1e6 AS offset_s, 'node_event' AS check_name,
  concat_ws(': ', event.state, event.reason) AS text,
  coalesce(event.reason, '') AS reason, {_CHANCES}
FROM near JOIN failed ON near.job = failed.attempt
JOIN node_events event ON near.kind = 'node_event' AND event.rowid = near.id
{_CHANCE}
ORDER BY attempt, event.start_at, near.node
"""
"""Unplanned outages of nodes that begin near the end of failed attempts."""
_SCHEDULER = """
SELECT attempt, 'scheduler' AS kind, '' AS key, failed_node AS node,
  0.0 AS offset_s, 'scheduler' AS check_name,
  concat_ws('; ', CASE WHEN failed_node IS NOT NULL THEN 'FailedNode ' || failed_node
    END, CASE WHEN reason IS NOT NULL THEN 'reason ' || reason END) AS text,
  coalesce(reason, '') AS reason, 1.0 AS causal_ratio
FROM failed
WHERE failed_node IS NOT NULL OR reason NOT IN ('', 'None', 'none', 'NonZeroExitCode')
ORDER BY attempt
"""
"""The scheduler's reason, and the node whose failure it names."""
_LOGS = """
SELECT attempt, 'job_log' AS kind, file || ':' || line_no AS key,
  coalesce(node_names.node, log_verdicts.node) AS node, 0.0 AS offset_s,
  'job_log' AS check_name, cause, confidence, method AS log_method, text,
  true AS job_named, 1.0 AS causal_ratio, 'node' AS scope
FROM log_verdicts JOIN failed USING (cluster, attempt_key)
LEFT JOIN node_names ON node_names.cluster = failed.cluster
  AND node_names.written = log_verdicts.node
WHERE method <> 'none' ORDER BY attempt
"""
"""What logs of failed attempts say: one row for each log whose first cause is known."""


def _of_events(rows: pd.DataFrame, table: Weights) -> pd.DataFrame:
    """Health events with what they speak for."""
    rows["kind"], rows["text"] = "health_event", rows["message"]  # fetching texts is dear
    rows["causal_ratio"] = not_by_chance(rows)
    for name, column in of_events(rows, table).items():
        rows[name] = column
    rows.loc[rows["scope"].eq("process"), "causal_ratio"] = 1.0  # one attempt claims it
    return rows


def _of_outages(rows: pd.DataFrame, table: Weights) -> pd.DataFrame:
    """Outages with the cause and odds of their reason."""
    return _of_reasons(rows.assign(causal_ratio=not_by_chance(rows)), table)


def _of_reasons(rows: pd.DataFrame, table: Weights) -> pd.DataFrame:
    """Outages, or what the scheduler says, with the cause and odds of their reason."""
    check = rows["check_name"].iloc[0]
    said = {reason: of_reason(reason, check, table) for reason in rows["reason"].unique()}
    cause, odds = zip(*rows["reason"].map(said), strict=True)
    return rows.assign(cause=cause, odds=odds, scope="node", job_named=None)


def _of_logs(rows: pd.DataFrame, table: Weights) -> pd.DataFrame:
    """Logs with the odds of their first cause."""
    likely = rows["confidence"].clip(upper=0.999)
    return rows.assign(odds=(likely / (1 - likely)).clip(upper=table.odds["most_of_log"]))


_KINDS = {
    "health_event": (_EVENTS, _of_events),
    "node_event": (_OUTAGES, _of_outages),
    "scheduler": (_SCHEDULER, _of_reasons),
    "job_log": (_LOGS, _of_logs),
}


def _weigh(connection: duckdb.DuckDBPyConnection, evidence: pd.DataFrame, table: Weights) -> None:
    """Writes verdicts of the attempts that have evidence, and of each kind of attempt without any.

    Attempts without evidence differ in state, signal and whether a node is named, no more: the
    table `bare_kind` numbers these kinds, from -1 downwards.
    """
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE bare_kind AS
           SELECT -row_number() OVER () AS attempt, * FROM (
             SELECT DISTINCT state, exit_signal, names_node FROM failed ORDER BY ALL)"""
    )
    if len(evidence):
        evident = {"attempt": evidence["attempt"].unique()}
        with registered(connection, evident=evident):
            attempts = frame_of(connection, f"{_EVIDENT} UNION ALL {_BARE} ORDER BY attempt")
    else:
        attempts = frame_of(connection, _BARE)
    _write(connection, attribute(attempts, evidence, table))


_EVIDENT = """
SELECT attempt, state, exit_signal, failed_node, only_node FROM failed JOIN evident USING (attempt)
"""
_BARE = """
SELECT attempt, state, exit_signal, CASE WHEN names_node THEN '-' END AS failed_node,
  CAST(NULL AS VARCHAR) AS only_node
FROM bare_kind
"""


def _write(connection: duckdb.DuckDBPyConnection, weighed: Verdicts) -> None:
    """Writes all verdicts with their evidence and alternatives as JSON."""
    frames = {"said": weighed.verdicts}
    query = "SELECT *, '[]' AS evidence, '[]' AS alternatives FROM said"
    if len(weighed.evidence):  # without any there are no alternatives either
        frames["pieces"] = weighed.evidence.reindex(columns=_EVIDENCE)
        frames["pieces"]["place"] = range(len(weighed.evidence))
        frames["pieces"]["n_records"] = frames["pieces"]["n_records"].fillna(1)  # most are of one
        frames["others"] = weighed.alternatives
        query = _WITH_EVIDENCE
    with registered(connection, **frames):
        connection.execute(f"CREATE OR REPLACE TEMP TABLE weighed_verdicts AS {query}")
    chosen = ", ".join(
        f"CASE WHEN own.attempt IS NULL THEN bare.{name} ELSE own.{name} END AS {name}"
        for name in ("symptom", "domain", "cause", "confidence", "method", "evidence",
                     "alternatives")
    )  # fmt: skip
    connection.execute(
        f"""INSERT INTO failures BY NAME
            SELECT cluster, attempt_key, end_at AS failed_at, failed.state,
              failed.state = 'NODE_FAIL' OR failed.names_node AS node_lost, ended_by_user,
              critical_check, job_id AS job, "user" AS job_user, account AS job_account,
              partition AS job_partition, n_gpus AS job_gpus, n_nodes AS job_nodes,
              start_at AS job_start_at, {chosen},
              CASE WHEN own.attempt IS NOT NULL THEN own.node
                WHEN bare.cause = 'node_lost' THEN coalesce(failed_node, only_node)
                ELSE failed_node END AS node
            FROM failed LEFT JOIN weighed_verdicts own USING (attempt)
            JOIN bare_kind kind ON kind.state IS NOT DISTINCT FROM failed.state
              AND kind.exit_signal = failed.exit_signal AND kind.names_node = failed.names_node
            JOIN weighed_verdicts bare ON bare.attempt = kind.attempt"""
    )


def _decide(connection: duckdb.DuckDBPyConnection, site: Site, due: str) -> None:
    """Lays what people decided over the verdicts of attempts due, which stay beside it."""
    causes = site.causes.causes
    connection.execute(
        f"""UPDATE failures SET derived_cause = cause, derived_domain = failures.domain,
             derived_confidence = confidence, derived_method = method, cause = said.value,
             domain = said.domain, method = 'human', confidence = 1.0
           FROM (SELECT target, value, domain FROM annotations JOIN (
                   SELECT unnest($causes) AS cause, unnest($domains) AS domain) ON value = cause
                 WHERE field = 'cause') said
           WHERE said.target = 'attempt:' || cluster || '/' || attempt_key AND {due}""",
        {"causes": list(causes), "domains": [cause.domain for cause in causes.values()]},
    )


_WITH_EVIDENCE = f"""
WITH burst AS (
  SELECT attempt, kind, check_name, severity, CAST(xid AS INTEGER) AS xid, node, cause,
    role, why, first(key ORDER BY place) AS key, min(offset_s) AS offset_s,
    first(CAST(text AS VARCHAR) ORDER BY place) AS text, max(weight) AS weight,
    CAST(sum(n_records) AS BIGINT) AS n,
    min(place) AS place
  FROM pieces GROUP BY ALL),
ranked AS (
  SELECT *, row_number() OVER (
    PARTITION BY attempt ORDER BY weight DESC, place) AS rank FROM burst),
piece AS (
  SELECT attempt, rank, CAST(to_json({{'kind': kind, 'key': key, 'node': node,
      'offset_s': round(offset_s, 1), 'check': check_name, 'severity': severity,
      'xid': xid, 'cause': cause, 'role': role, 'why': why, 'n': n,
      'odds': round(weight, 2), 'text': text[:300]}}) AS VARCHAR) AS json
  FROM ranked WHERE rank <= {EVIDENCE_KEPT}),
evidence AS (
  SELECT attempt, '[' || string_agg(json, ',' ORDER BY rank) || ']' AS evidence
  FROM piece GROUP BY attempt),
other AS (
  SELECT attempt, CAST(to_json(list({{'cause': cause,
      'confidence': round(confidence, 4), 'reason': reason}}
      ORDER BY confidence DESC, cause)) AS VARCHAR) AS alternatives
  FROM others GROUP BY attempt)
SELECT said.*, coalesce(evidence, '[]') AS evidence,
  coalesce(alternatives, '[]') AS alternatives
FROM said LEFT JOIN evidence USING (attempt) LEFT JOIN other USING (attempt)
"""
_EVIDENCE = ["attempt", "kind", "key", "node", "offset_s", "check_name", "severity", "xid", "cause",
             "role", "why", "weight", "text", "n_records"]  # fmt: skip
