"""Severity of kernel events: of their code, or of what the line itself says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.errors import AnalysisError
from analytics.failures.xid import SEVERITY_RANK, sxid_entries, xid_entries
from analytics.failures.xid_nvlink5 import FIRST_CODE, LAST_CODE, nvlink5_readings
from analytics.failures.xid_sequence import recovery_action

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = ("health_events", "node_facts")
WRITES = ("health_events.severity",)
INPUTS = ("analytics.failures",)
NEEDS = ("health_events",)

CLEANUP_CODE = 45
"""The XID by which channels are removed after another error, or as a program is killed."""
RECOVERY_CODE = 154
"""The XID that tells which recovery the driver asks for."""


def run(connection: duckdb.DuckDBPyConnection, _: Context) -> None:
    """Sets the severity of all events with an XID or SXid; of a code that nobody lists it is NULL.

    XID 45 follows its cause, or a program that was killed: alone or not it escalates nothing.
    """
    of_xid = {code: entry.severity for code, entry in xid_entries().items()}
    of_xid[CLEANUP_CODE] = "warning"
    of_sxid = {code: entry.severity for code, entry in sxid_entries().items()}
    connection.execute(
        """UPDATE health_events SET severity = new.severity
           FROM (
             WITH catalog AS (
               SELECT false AS switch, unnest(CAST($xids AS INTEGER[])) AS code,
                 unnest(CAST($of_xid AS VARCHAR[])) AS severity
               UNION ALL
               SELECT true, unnest(CAST($sxids AS INTEGER[])), unnest(CAST($of_sxid AS VARCHAR[])))
             SELECT event.id, catalog.severity FROM (
               SELECT rowid AS id, severity, sxid IS NOT NULL AS switch, coalesce(sxid, xid) AS code
               FROM health_events WHERE xid IS NOT NULL OR sxid IS NOT NULL) AS event
             LEFT JOIN catalog USING (switch, code)
             WHERE event.severity IS DISTINCT FROM catalog.severity) AS new
           WHERE health_events.rowid = new.id""",
        {"xids": list(of_xid), "of_xid": list(of_xid.values()),
         "sxids": list(of_sxid), "of_sxid": list(of_sxid.values())},
    )  # fmt: skip
    _by_message(connection)


def _by_message(connection: duckdb.DuckDBPyConnection) -> None:
    """Severity of codes whose meaning stands in the line, by the driver where it is known."""
    rows = connection.execute(
        f"""SELECT event.rowid, event.xid, event.message, arg_max(fact.value, fact.from_at)
            FROM health_events event LEFT JOIN node_facts fact
              ON fact.cluster = event.cluster AND fact.node = event.node AND fact.key = 'driver'
                AND fact.from_at <= event.observed_at
                AND (fact.to_at IS NULL OR fact.to_at > event.observed_at)
            WHERE event.message IS NOT NULL
              AND (event.xid = {RECOVERY_CODE} OR event.xid BETWEEN {FIRST_CODE} AND {LAST_CODE})
            GROUP BY ALL"""
    ).fetchall()
    read = [(severity_of_line(*line), row) for row, *line in rows]
    stated = [(severity, row) for severity, row in read if severity is not None]
    if stated:
        connection.executemany("UPDATE health_events SET severity = ? WHERE rowid = ?", stated)


def severity_of_line(code: int, message: str, driver: str | None) -> str | None:
    """Severity that a kernel line itself states; None where it states none."""
    if code == RECOVERY_CODE:
        recovery = recovery_action(message)
        return recovery.severity if recovery else None
    try:
        readings = nvlink5_readings(code, message, driver)
    except AnalysisError:  # the fact is no version of a driver
        readings = nvlink5_readings(code, message)
    fitting = [one.severity for one in readings if one.agrees and one.severity is not None]
    return max(fitting, key=lambda one: SEVERITY_RANK[one], default=None)
