"""The engine that reduces a kind of records; none needs what the other imports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.errors import DataError
from data.reduce.kinds import EVENTS, JOBS, METRICS

if TYPE_CHECKING:
    from pathlib import Path

    from data.reduce.manifest import Manifest
    from data.reduce.running import Request


def refuse_engine(request: Request) -> None:
    """Refuses an engine that does not reduce such records.

    Raises
    ------
    DataError
        Where it is Spark, and the records are no metrics.
    """
    if request.engine == "spark" and request.kind != METRICS:
        raise DataError(
            f"--engine spark reduces metrics alone: leave it out, and {request.kind} are reduced "
            "on this machine"
        )


def engine_of(aside: Path, manifest: Manifest, request: Request) -> Any:
    """An engine that is started, for the records of a reduction."""
    if request.engine != "spark":
        return duckdb_engine(aside, manifest)
    from data.reduce.spark_engine import SparkEngine

    return SparkEngine(aside, manifest.zone, manifest.cluster, request.master)


def duckdb_engine(aside: Path, manifest: Manifest) -> Any:
    """The engine of this machine."""
    from data.reduce.duckdb_engine import DuckDBEngine
    from data.reduce.duckdb_events import DuckDBEvents
    from data.reduce.job_engine import DuckDBJobs

    of_kind = {EVENTS: DuckDBEvents, JOBS: DuckDBJobs}.get(manifest.kind, DuckDBEngine)
    return of_kind(aside, manifest.zone, manifest.cluster)
