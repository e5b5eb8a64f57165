"""Verdicts: the evidence around each failed attempt, found by SQL and weighed by analytics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from analytics.failures.attribution import CRASH_SIGNALS, Verdicts, attribute
from analytics.failures.calibration import causal_ratio
from analytics.failures.evidence import of_events, of_reasons
from analytics.failures.precedence import Weights, weights
from data.derive.log_verdicts import log_evidence
from data.derive.nearby import find_nearby

if TYPE_CHECKING:
    import duckdb

    from data.derive.site_model import SiteModel
    from data.site import Site

EVIDENCE_KEPT = 12
"""Pieces of evidence written with a verdict, the strongest first."""

FAILED = """CASE state WHEN 'FAILED' THEN true WHEN 'NODE_FAIL' THEN true
  WHEN 'TIMEOUT' THEN true WHEN 'OUT_OF_MEMORY' THEN true WHEN 'BOOT_FAIL' THEN true
  WHEN 'DEADLINE' THEN true WHEN 'REQUEUED' THEN true
  ELSE failed_node IS NOT NULL OR coalesce(contains(flags, 'REQUEUE'), false) END"""
"""Condition of an attempt that gets a verdict: it failed, or was requeued."""


def attribute_failures(
    connection: duckdb.DuckDBPyConnection, site: Site, model: SiteModel | None = None
) -> None:
    """Fills `failures` and `check_calibration`; `model` reads the logs that no rule understands."""
    table = weights(site.attribution.table, site.causes)
    connection.execute(
        f"""CREATE OR REPLACE TEMP VIEW failed AS
            SELECT rowid AS attempt, cluster, attempt_key, job_id, job_id_raw, array_job_id, state,
              end_at, CASE WHEN exit_signal IN {CRASH_SIGNALS} THEN exit_signal ELSE 0 END
                AS exit_signal,
              reason, failed_node, failed_node IS NOT NULL AS names_node,
              CASE WHEN n_nodes = 1 AND NOT contains(node_list, '[') THEN node_list END AS only_node
            FROM jobs WHERE {FAILED}"""
    )
    find_nearby(connection, site.attribution.before_minutes, site.attribution.after_minutes)
    _calibrate(connection)
    connection.execute("DELETE FROM failures")
    if connection.execute("SELECT 1 FROM failed LIMIT 1").fetchone() is None:
        return
    evidence = pd.concat(
        [
            _of_events(connection, table),
            _of_outages(connection, table),
            _of_scheduler(connection, table),
            log_evidence(connection, table, model),
        ],
        ignore_index=True,
    )
    _write(connection, _weighed(connection, evidence, table), _bare(connection, table))
    _decide(connection, site)


def _calibrate(connection: duckdb.DuckDBPyConnection) -> None:
    """How often each check fires around the end of successful and of failed attempts."""
    counts = connection.execute(
        """WITH ends AS (
             SELECT cluster, count(*) FILTER (state = 'COMPLETED') AS n_completed_attempts,
               CAST(coalesce(sum(n_nodes) FILTER (state = 'COMPLETED'), 0) AS BIGINT)
                 AS n_completed,
               CAST(coalesce(sum(n_nodes) FILTER (state IN ('FAILED', 'NODE_FAIL')), 0) AS BIGINT)
                 AS n_failed
             FROM jobs WHERE end_at IS NOT NULL GROUP BY cluster),
           hit AS (
             SELECT cluster, signal, severity,
               count(DISTINCT (job, node)) FILTER (state = 'COMPLETED') AS n_completed_hits,
               count(DISTINCT job) FILTER (state = 'COMPLETED') AS n_completed_attempts_hit,
               count(DISTINCT (job, node)) FILTER (state IN ('FAILED', 'NODE_FAIL'))
                 AS n_failed_hits
             FROM near GROUP BY ALL)
           SELECT * FROM hit JOIN ends USING (cluster) ORDER BY cluster, signal, severity"""
    ).df()
    counts["causal_ratio"] = causal_ratio(counts)
    connection.register("calibration_rows", counts)
    connection.execute("DELETE FROM check_calibration")
    connection.execute("INSERT INTO check_calibration BY NAME FROM calibration_rows")
    connection.unregister("calibration_rows")


def _of_events(connection: duckdb.DuckDBPyConnection, table: Weights) -> pd.DataFrame:
    """Health events near the end of failed attempts."""
    found = connection.execute(
        """SELECT attempt, near.cluster, 'health_event' AS kind, event_id AS key, near.node,
             offset_us / 1e6 AS offset_s, check_name, event.severity, xid, sxid, event.source,
             message, message AS text,
             CASE WHEN event.job_id IS NULL THEN NULL
               ELSE list_contains([failed.job_id, job_id_raw, array_job_id], event.job_id) END
               AS job_named, causal_ratio
           FROM near JOIN failed ON near.job = failed.attempt
           JOIN health_events event ON near.kind = 'health_event' AND event.rowid = near.id
           LEFT JOIN check_calibration calibration ON calibration.cluster = near.cluster
             AND calibration.signal = near.signal
             AND calibration.severity IS NOT DISTINCT FROM near.severity
           ORDER BY attempt, observed_at, event_id"""
    ).df()
    found = found.join(of_events(found, table))
    found.loc[found["scope"].eq("process"), "causal_ratio"] = 1.0  # one attempt claims it
    return found


def _of_outages(connection: duckdb.DuckDBPyConnection, table: Weights) -> pd.DataFrame:
    """Unplanned outages of nodes that begin near the end of failed attempts."""
    found = connection.execute(
        """SELECT attempt, 'node_event' AS kind,
             event.node || ' ' || strftime(event.start_at, '%Y-%m-%dT%H:%M:%SZ') AS key,
             near.node, offset_us / 1e6 AS offset_s, 'node_event' AS check_name,
             concat_ws(': ', event.state, event.reason) AS text,
             coalesce(event.reason, '') AS reason, causal_ratio
           FROM near JOIN failed ON near.job = failed.attempt
           JOIN node_events event ON near.kind = 'node_event' AND event.rowid = near.id
           LEFT JOIN check_calibration calibration ON calibration.cluster = near.cluster
             AND calibration.signal = near.signal
             AND calibration.severity IS NOT DISTINCT FROM near.severity
           ORDER BY attempt, event.start_at, near.node"""
    ).df()
    return _with_reasons(found, "node_event", table)


def _of_scheduler(connection: duckdb.DuckDBPyConnection, table: Weights) -> pd.DataFrame:
    """The scheduler's reason, and the node whose failure it names."""
    found = connection.execute(
        """SELECT attempt, 'scheduler' AS kind, '' AS key, failed_node AS node,
             0.0 AS offset_s, 'scheduler' AS check_name,
             concat_ws('; ', CASE WHEN failed_node IS NOT NULL THEN 'FailedNode ' || failed_node
               END, CASE WHEN reason IS NOT NULL THEN 'reason ' || reason END) AS text,
             coalesce(reason, '') AS reason, 1.0 AS causal_ratio
           FROM failed
           WHERE failed_node IS NOT NULL OR reason NOT IN ('', 'None', 'none', 'NonZeroExitCode')
           ORDER BY attempt"""
    ).df()
    return _with_reasons(found, "scheduler", table)


def _with_reasons(found: pd.DataFrame, check: str, table: Weights) -> pd.DataFrame:
    """Rows with the cause and odds of their reason."""
    distinct = found["reason"].drop_duplicates().tolist()
    said = dict(zip(distinct, of_reasons(distinct, check, table), strict=True))
    return found.assign(
        cause=[said[reason][0] for reason in found["reason"]],
        odds=[said[reason][1] for reason in found["reason"]],
        scope="node",
        job_named=None,
    ).drop(columns="reason")


def _weighed(
    connection: duckdb.DuckDBPyConnection, evidence: pd.DataFrame, table: Weights
) -> Verdicts:
    """Verdicts of the attempts that have evidence."""
    connection.register("evident", pd.DataFrame({"attempt": evidence["attempt"].unique()}))
    attempts = connection.execute(
        """SELECT attempt, state, exit_signal, failed_node, only_node
           FROM failed JOIN evident USING (attempt) ORDER BY attempt"""
    ).df()
    connection.unregister("evident")
    return attribute(attempts, evidence, table)


def _bare(connection: duckdb.DuckDBPyConnection, table: Weights) -> Verdicts:
    """Verdicts without evidence, one for each state, signal and whether a node is named."""
    kinds = connection.execute(
        """SELECT row_number() OVER () AS attempt, * FROM (
             SELECT DISTINCT state, exit_signal, names_node FROM failed ORDER BY ALL)"""
    ).df()
    connection.register("kinds", kinds)
    connection.execute("CREATE OR REPLACE TEMP TABLE bare_kind AS FROM kinds")
    connection.unregister("kinds")
    named = kinds["names_node"].map({True: "-", False: None})
    nothing = pd.DataFrame(columns=["attempt", "kind", "key", "node", "offset_s", "cause", "odds",
                                    "scope", "job_named", "causal_ratio", "text", "check_name",
                                    "severity", "xid"])  # fmt: skip
    return attribute(kinds.assign(failed_node=named, only_node=None), nothing, table)


def _write(connection: duckdb.DuckDBPyConnection, weighed: Verdicts, bare: Verdicts) -> None:
    """Writes all verdicts with their evidence and alternatives as JSON, in the order of jobs."""
    for name, found in (("weighed", weighed), ("bare", bare)):
        _as_table(connection, name, found)
    chosen = ", ".join(
        f"CASE WHEN found.attempt IS NULL THEN bare.{name} ELSE found.{name} END AS {name}"
        for name in ("symptom", "domain", "cause", "confidence", "method", "evidence",
                     "alternatives")
    )  # fmt: skip
    connection.execute(
        f"""INSERT INTO failures BY NAME
            SELECT cluster, attempt_key, end_at AS failed_at, failed.state,
              failed.state = 'NODE_FAIL' OR failed.names_node AS node_lost, {chosen},
              CASE WHEN found.attempt IS NOT NULL THEN found.node
                WHEN bare.cause = 'node_lost' THEN coalesce(failed_node, only_node)
                ELSE failed_node END AS node
            FROM failed LEFT JOIN weighed_verdicts found USING (attempt)
            JOIN bare_kind kind ON kind.state IS NOT DISTINCT FROM failed.state
              AND kind.exit_signal = failed.exit_signal AND kind.names_node = failed.names_node
            JOIN bare_verdicts bare ON bare.attempt = kind.attempt"""
    )


def _decide(connection: duckdb.DuckDBPyConnection, site: Site) -> None:
    """Lays what people decided over the verdicts, which stay beside it."""
    domains = [(name, cause.domain) for name, cause in site.causes.causes.items()]
    connection.execute("CREATE OR REPLACE TEMP TABLE domains (cause VARCHAR, domain VARCHAR)")
    connection.executemany("INSERT INTO domains VALUES (?, ?)", domains)
    connection.execute(
        """UPDATE failures SET derived_cause = cause, derived_domain = failures.domain,
             derived_confidence = confidence, derived_method = method, cause = said.value,
             domain = said.domain, method = 'human', confidence = 1.0
           FROM (SELECT target, value, domain FROM annotations JOIN domains ON value = cause
                 WHERE field = 'cause') said
           WHERE said.target = 'attempt:' || cluster || '/' || attempt_key"""
    )


def _as_table(connection: duckdb.DuckDBPyConnection, name: str, found: Verdicts) -> None:
    """Verdicts with evidence and alternatives as one JSON array each: `<name>_verdicts`."""
    connection.register("said", found.verdicts)
    pieces = found.evidence.assign(place=range(len(found.evidence)))
    connection.register("pieces", pieces.reindex(columns=_EVIDENCE))
    connection.register("others", found.alternatives)
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE {name}_verdicts AS
            WITH burst AS (
              SELECT attempt, kind, check_name, severity, CAST(xid AS INTEGER) AS xid, node, cause,
                role, why, first(key ORDER BY place) AS key, min(offset_s) AS offset_s,
                first(CAST(text AS VARCHAR) ORDER BY place) AS text, max(weight) AS weight,
                count(*) AS n,
                min(place) AS place
              FROM pieces GROUP BY ALL),
            ranked AS (
              SELECT *, row_number() OVER (
                PARTITION BY attempt ORDER BY weight DESC, place) AS rank FROM burst),
            evidence AS (
              SELECT attempt, CAST(to_json(list({{'kind': kind, 'key': key, 'node': node,
                  'offset_s': round(offset_s, 1), 'check': check_name, 'severity': severity,
                  'xid': xid, 'cause': cause, 'role': role, 'why': why, 'n': n,
                  'odds': round(weight, 2), 'text': text[:300]}} ORDER BY rank)) AS VARCHAR)
                AS evidence
              FROM ranked WHERE rank <= {EVIDENCE_KEPT} GROUP BY attempt),
            other AS (
              SELECT attempt, CAST(to_json(list({{'cause': cause,
                  'confidence': round(confidence, 4), 'reason': reason}}
                  ORDER BY confidence DESC, cause)) AS VARCHAR) AS alternatives
              FROM others GROUP BY attempt)
            SELECT said.*, coalesce(evidence, '[]') AS evidence,
              coalesce(alternatives, '[]') AS alternatives
            FROM said LEFT JOIN evidence USING (attempt) LEFT JOIN other USING (attempt)"""
    )
    for view in ("said", "pieces", "others"):
        connection.unregister(view)


_EVIDENCE = ["attempt", "kind", "key", "node", "offset_s", "check_name", "severity", "xid", "cause",
             "role", "why", "weight", "text", "place"]  # fmt: skip
