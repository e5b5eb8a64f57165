"""Who slows a run, what would fixing it give, and how is it over all traces?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analytics.training.stragglers.analysis import analysis_of_record
from analytics.training.stragglers.causes import node_concentration
from analytics.training.stragglers.fixes import (
    Part,
    daily_gpu_hours,
    fixed,
    slowdown_estimate,
    wasted_estimate,
)
from analytics.training.stragglers.fleet import straggler_fleet
from analytics.training.stragglers.timeline import drawn_timeline
from analytics.training.stragglers.what_if import WhatIf
from app.answers.training.worker_nodes import worker_nodes
from data.errors import DataError
from data.ingest.straggler_rows import read_rows
from data.queries import stragglers as straggler_queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from analytics.estimate import Estimate
    from analytics.training.stragglers.analysis import StragglerAnalysis
    from analytics.training.stragglers.causes import Concentration
    from analytics.training.stragglers.fixes import Fixed
    from analytics.training.stragglers.fleet import StragglerFleet
    from analytics.training.stragglers.timeline import TimelineOf
    from app.answers.training.worker_nodes import WorkerNodes
    from data.filters import Selection
    from data.store import Store


@dataclass(frozen=True)
class StragglerTrace:
    """One stored trace with its results."""

    facts: dict[str, Any]
    """Columns of `straggler_traces`."""
    analysis: StragglerAnalysis
    slowdown: Estimate
    """S; n = steps."""
    wasted: Estimate
    """Share of the job's GPU-hours that stragglers waste."""
    nodes: WorkerNodes

    @property
    def n_gpus(self) -> int | None:
        """GPUs of the job; None where no meta file states them."""
        n: int | None = self.facts["n_gpus"]
        return n

    @property
    def wasted_gpu_hours_per_day(self) -> Estimate | None:
        """GPU-hours wasted in a day of training; None where the job's GPUs are unknown."""
        return None if self.n_gpus is None else daily_gpu_hours(self.wasted, self.n_gpus)

    @property
    def node_concentration(self) -> tuple[str, Concentration] | None:
        """The node whose workers cost most by themselves, and how unevenly nodes do.

        None where nodes are unknown.
        """
        return node_concentration(self.analysis.slowdowns, self.nodes.node_of)


def straggler_traces(store: Store, selection: Selection) -> pd.DataFrame:
    """Which traces are stored? Newest first."""
    return straggler_queries.traces(store, selection)


def straggler_traces_of_job(store: Store, cluster: str, job_id: str) -> pd.DataFrame:
    """Was this job traced, and how slow was it? Newest first."""
    return straggler_queries.traces_of_job(store, cluster, job_id)


def n_straggler_traces(store: Store) -> int:
    """How many traces are stored, whatever the selection?"""
    return straggler_queries.n_traces(store)


def stragglers_of_fleet(
    store: Store, selection: Selection, *, conf_level: float = 0.90
) -> StragglerFleet:
    """How many of the traced runs straggle, and what share of their GPU-hours is wasted?"""
    return straggler_fleet(straggler_queries.traces(store, selection), conf_level=conf_level)


def straggler_trace(store: Store, trace_id: str, *, conf_level: float = 0.90) -> StragglerTrace:
    """Who slows this run?

    Raises
    ------
    DataError
        Where the store has no such trace.
    """
    facts = straggler_queries.trace(store, trace_id)
    analysis = analysis_of_record(facts.pop("results"))
    slow = analysis.slowdowns
    slowdown = slowdown_estimate(slow.original_seconds, slow.ideal_seconds, conf_level=conf_level)
    return StragglerTrace(
        facts, analysis, slowdown, wasted_estimate(slowdown), worker_nodes(store, facts)
    )


def straggler_fix(store: Store, trace_id: str, part: str, *, conf_level: float = 0.90) -> Fixed:
    """What would fixing a worker, a stage or a type of operations give?"""
    return fixed(_model(store, trace_id), [Part.named(part)], conf_level=conf_level)[0]


def straggler_timeline(
    store: Store,
    trace_id: str,
    of: TimelineOf,
    *,
    part: str | None = None,
    steps: Sequence[int] | None = None,
) -> str:
    """What does the run look like, operation by operation? JSON for ui.perfetto.dev."""
    return drawn_timeline(_model(store, trace_id), of, part=part, steps=steps)


def _model(store: Store, trace_id: str) -> WhatIf:
    """The trace, read again, as a model of its step."""
    facts = straggler_queries.trace(store, trace_id)
    file = straggler_queries.file_of(store, facts["path"])
    if not file.exists():
        raise DataError(f"{file}: is missing: ingest the trace {facts['name']} again")
    return WhatIf.of_rows(read_rows(file, facts["name"]), dsp_size=_dsp_size(facts))


def _dsp_size(row: Mapping[str, Any]) -> int:
    """Data-sequence-parallel size: what the GPUs of the job leave for it; 1 where unknown."""
    sizes = [row[name] for name in ("dp", "pp", "tp")]
    if row["n_gpus"] is None or None in sizes:
        return 1
    n_traced = 1
    for size in sizes:
        n_traced *= int(size or 1)
    return int(row["n_gpus"]) // n_traced
