"""Severity of kernel events: of their code, or of what the line itself says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.errors import AnalysisError
from analytics.failures.xid import sxid_severities, xid_severities
from analytics.failures.xid_nvlink5 import FIRST_CODE, LAST_CODE, nvlink5_readings
from analytics.failures.xid_sequence import recovery_action
from analytics.failures.xid_severity import SEVERITY_RANK

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

CLEANUP_CODE = 45
"""The XID by which channels are removed after another error, or as a program is killed."""
RECOVERY_CODE = 154
"""The XID that tells which recovery the driver asks for."""


def set_severities(connection: duckdb.DuckDBPyConnection) -> None:
    """Sets the severity of all events with an XID or SXid; what nobody lists stays NULL.

    XID 45 follows its cause, or a program that was killed: alone or not it escalates nothing.
    """
    _by_code(connection, "xid", xid_severities() | {CLEANUP_CODE: "warning"})
    _by_code(connection, "sxid", sxid_severities())
    _by_message(connection)


def _by_code(
    connection: duckdb.DuckDBPyConnection, column: str, catalog: Mapping[int, str | None]
) -> None:
    """Severity by the catalog of codes."""
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE catalog AS
           SELECT unnest(CAST(? AS INTEGER[])) AS code, unnest(CAST(? AS VARCHAR[])) AS severity""",
        [list(catalog), list(catalog.values())],
    )
    connection.execute(
        f"""UPDATE health_events SET severity = new.severity
            FROM (SELECT event.rowid AS id, catalog.severity
                  FROM health_events event LEFT JOIN catalog ON event.{column} = catalog.code
                  WHERE event.{column} IS NOT NULL
                    AND event.severity IS DISTINCT FROM catalog.severity) AS new
            WHERE health_events.rowid = new.id"""
    )


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
    said = [(row, severity_of_line(*line)) for row, *line in rows]
    stated = [(severity, row) for row, severity in said if severity is not None]
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
