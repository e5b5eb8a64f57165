"""The run of each attempt: which jobs are one task, set when the ledger is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

READS = ("jobs", "jobs.attempt")
WRITES = ("jobs.run_id", "run_links")
INPUTS = ("site.runs", "analytics.efficiency")
NEEDS = ("jobs",)
ON_DEMAND = True


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Sets `jobs.run_id` by the site's rule; `run_links` says what joined runs of several jobs."""
    from data.stages.runs.linking import set_runs  # here: it needs pandas and SciPy

    context.progress("joining attempts to runs")
    set_runs(connection, context.site.runs.rule)
