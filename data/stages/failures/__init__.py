"""Verdicts on failed attempts, and how far each check can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = ("jobs", "job_nodes", "health_events", "health_events.severity", "node_events",
         "node_names", "log_verdicts", "annotations")  # fmt: skip
WRITES = ("failures", "check_calibration")
CARRIES = ("failures",)
INPUTS = ("site.attribution", "site.taxonomy", "analytics.failures", "data.definitions")
NEEDS = ("jobs",)


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Fills `failures` and `check_calibration`."""
    from data.stages.failures.verdicts import attribute_failures  # here: it needs pandas

    attribute_failures(connection, context)
