"""The engine that reduces a kind of records; none needs what the other imports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.reduce.kinds import EVENTS, JOBS
from data.reduce.objects import is_address

if TYPE_CHECKING:
    from pathlib import Path

    from data.reduce.manifest import Manifest
    from data.reduce.running import Request


def engine_of(aside: Path, manifest: Manifest, request: Request) -> Any:
    """An engine that is started, for the records of a reduction."""
    if request.engine != "spark":
        return duckdb_engine(aside, manifest, request)
    from data.reduce.job_spark import SparkJobs
    from data.reduce.spark_engine import SparkEngine
    from data.reduce.spark_events import SparkEvents

    of_kind = {EVENTS: SparkEvents, JOBS: SparkJobs}.get(manifest.kind, SparkEngine)
    return of_kind(aside, manifest.zone, manifest.cluster, request.master)


def duckdb_engine(aside: Path, manifest: Manifest, request: Request) -> Any:
    """The engine of this machine."""
    from data.reduce.duckdb_engine import DuckDBEngine
    from data.reduce.duckdb_events import DuckDBEvents
    from data.reduce.job_engine import DuckDBJobs

    of_kind = {EVENTS: DuckDBEvents, JOBS: DuckDBJobs}.get(manifest.kind, DuckDBEngine)
    engine: Any = of_kind(aside, manifest.zone, manifest.cluster)
    if any(map(is_address, request.inputs)):
        engine.reach()
    return engine
