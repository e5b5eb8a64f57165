"""Verdicts on failed attempts: evidence found by SQL, weighed by analytics, written with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from analytics.failures.attribution import CRASH_SIGNALS, Verdicts, attribute
from analytics.failures.precedence import Weights, weights
from data.columns import arrow_of, columns_of
from data.definitions import FAILED
from data.stages.failures.evidence import find_evidence
from data.stages.failures.nearby import calibrate, find_nearby

if TYPE_CHECKING:
    import duckdb

    from data.site import Site
    from data.stages import Context

EVIDENCE_KEPT = 12
"""Pieces of evidence written with a verdict, the strongest first."""


def attribute_failures(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Fills `failures` and `check_calibration`."""
    site, near = context.site, set[str]()
    if context.filled & {"health_events", "node_events"}:
        attribution = site.attribution
        near = find_nearby(connection, attribution.before_minutes, attribution.after_minutes)
    if near:
        calibrate(connection)
    if connection.execute(f"SELECT 1 FROM jobs WHERE {FAILED} LIMIT 1").fetchone() is None:
        return
    connection.execute(
        f"""CREATE OR REPLACE TEMP VIEW failed AS
            SELECT rowid AS attempt, cluster, attempt_key, job_id, job_id_raw, array_job_id, state,
              end_at, CASE WHEN exit_signal IN {CRASH_SIGNALS} THEN exit_signal ELSE 0 END
                AS exit_signal,
              reason, failed_node, failed_node IS NOT NULL AS names_node,
              CASE WHEN n_nodes = 1 AND NOT contains(node_list, '[') THEN node_list END AS only_node
            FROM jobs WHERE {FAILED}"""
    )
    table = weights(site.attribution.table, site.causes)
    kinds = near | {"scheduler"} | ({"job_log"} if "log_verdicts" in context.filled else set())
    _write(connection, _weighed(connection, find_evidence(connection, table, kinds), table))
    if "annotations" in context.filled:
        _decide(connection, site)


def _weighed(
    connection: duckdb.DuckDBPyConnection, evidence: pd.DataFrame, table: Weights
) -> Verdicts:
    """Verdicts of the attempts that have evidence, and of each kind of attempt without any.

    Attempts without evidence differ in state, signal and whether a node is named, no more: the
    table `bare_kind` numbers these kinds, from -1 downwards.
    """
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE bare_kind AS
           SELECT -row_number() OVER () AS attempt, * FROM (
             SELECT DISTINCT state, exit_signal, names_node FROM failed ORDER BY ALL)"""
    )
    connection.register("evident", arrow_of(evidence[["attempt"]].drop_duplicates()))
    attempts = columns_of(
        connection.execute(
            """SELECT attempt, state, exit_signal, failed_node, only_node
           FROM failed JOIN evident USING (attempt)
           UNION ALL
           SELECT attempt, state, exit_signal, CASE WHEN names_node THEN '-' END, NULL
           FROM bare_kind ORDER BY attempt"""
        )
    )
    connection.unregister("evident")
    return attribute(pd.DataFrame(attempts), evidence, table)


def _write(connection: duckdb.DuckDBPyConnection, weighed: Verdicts) -> None:
    """Writes all verdicts with their evidence and alternatives as JSON, in the order of jobs."""
    _as_table(connection, weighed)
    chosen = ", ".join(
        f"CASE WHEN own.attempt IS NULL THEN bare.{name} ELSE own.{name} END AS {name}"
        for name in ("symptom", "domain", "cause", "confidence", "method", "evidence",
                     "alternatives")
    )  # fmt: skip
    connection.execute(
        f"""INSERT INTO failures BY NAME
            SELECT cluster, attempt_key, end_at AS failed_at, failed.state,
              failed.state = 'NODE_FAIL' OR failed.names_node AS node_lost, {chosen},
              CASE WHEN own.attempt IS NOT NULL THEN own.node
                WHEN bare.cause = 'node_lost' THEN coalesce(failed_node, only_node)
                ELSE failed_node END AS node
            FROM failed LEFT JOIN weighed_verdicts own USING (attempt)
            JOIN bare_kind kind ON kind.state IS NOT DISTINCT FROM failed.state
              AND kind.exit_signal = failed.exit_signal AND kind.names_node = failed.names_node
            JOIN weighed_verdicts bare ON bare.attempt = kind.attempt"""
    )


def _decide(connection: duckdb.DuckDBPyConnection, site: Site) -> None:
    """Lays what people decided over the verdicts, which stay beside it."""
    causes = site.causes.causes
    connection.execute(
        """UPDATE failures SET derived_cause = cause, derived_domain = failures.domain,
             derived_confidence = confidence, derived_method = method, cause = said.value,
             domain = said.domain, method = 'human', confidence = 1.0
           FROM (SELECT target, value, domain FROM annotations JOIN (
                   SELECT unnest($causes) AS cause, unnest($domains) AS domain) ON value = cause
                 WHERE field = 'cause') said
           WHERE said.target = 'attempt:' || cluster || '/' || attempt_key""",
        {"causes": list(causes), "domains": [cause.domain for cause in causes.values()]},
    )


def _as_table(connection: duckdb.DuckDBPyConnection, weighed: Verdicts) -> None:
    """Temporary table weighed_verdicts: with evidence and alternatives as one JSON array each."""
    frames = {"said": weighed.verdicts}
    query = "SELECT *, '[]' AS evidence, '[]' AS alternatives FROM said"
    if len(weighed.evidence):  # without any there are no alternatives either
        pieces = weighed.evidence.assign(place=range(len(weighed.evidence)))
        frames["pieces"] = pieces.reindex(columns=_EVIDENCE)
        frames["others"] = weighed.alternatives
        query = _WITH_EVIDENCE
    for name, frame in frames.items():
        connection.register(name, arrow_of(frame))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE weighed_verdicts AS {query}")
    for name in frames:
        connection.unregister(name)


_WITH_EVIDENCE = f"""
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
FROM said LEFT JOIN evidence USING (attempt) LEFT JOIN other USING (attempt)
"""
_EVIDENCE = ["attempt", "kind", "key", "node", "offset_s", "check_name", "severity", "xid", "cause",
             "role", "why", "weight", "text", "place"]  # fmt: skip
