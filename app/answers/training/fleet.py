"""Which traces are stored, and how many of these runs straggle beside those published?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.training.stragglers.fleet import (
    PUBLISHED_QUANTILES,
    PUBLISHED_STRAGGLING,
    PUBLISHED_WASTED,
    StragglerFleet,
    straggler_fleet,
)
from app.answers.columns import columns
from app.answers.content import Answer, Chart, Missing, Table
from app.answers.training import causes
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_training
from data.queries import stragglers

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

ID_DIGITS = 8
"""Digits of a trace's id in its label."""
SOURCE = "Lin et al., arXiv 2505.05713, 3,079 jobs of 128 GPUs and more, January to May 2024"
COMMANDS = (
    "faultline ingest straggler-trace trace.parquet --meta meta.yaml --job-id 4711",
    "faultline stragglers trace.parquet --meta meta.yaml",
)
NO_TRACE = Answer(
    "No traced run yet",
    blocks=(
        Missing(
            "straggler_traces",
            "No straggler trace is stored.",
            "It holds one row an operation of some training steps on every worker, as NDTimeline "
            "writes it. Upload one below, or:",
            COMMANDS,
        ),
    ),
    about="Who slows a run is read from the operations of its steps",
)
PUBLISHED = (
    Column("share", "Share of"),
    Column("here", "Here", "share"),
    Column("published", "Published", "ratio"),
    Column("n", "Traces", "count"),
)
CAUSES = (
    Column("strongest_cause", "Strongest cause"),
    Column("traces", "Traces", "count"),
    Column("ratio", "Share", "share", help=of_training.SHARE_OF_TRACES.definition),
    Column("mean_slowdown", "Mean S", "number"),
    Column("cause", "Cause in SQL", shown=False),
)
_NO_JOB = "the trace names no job that the store knows"
_NO_META = "unknown: no meta file states it"
TRACES = (
    *columns("trace"),
    Column("strongest_cause", "Strongest cause"),
    Column("slowdown", "Slowdown", "number", help=of_training.SLOWDOWN.definition),
    Column("wasted_ratio", "Wasted share", "ratio", help=of_training.WASTED_SHARE.definition),
    Column("n_gpus", "GPUs", "count", none=_NO_META),
    Column("gpu_hours", "GPU-hours", "number", none=f"unknown: {_NO_JOB}",
           help=of_training.GPU_HOURS_OF_TRACE.definition),
    Column("traced_at", "Traced at", "time", "UTC", none="the trace has only relative times"),
    Column("job_id", "Job", link="job", none=_NO_JOB),
    Column("cluster", "Cluster", none=_NO_JOB),
    Column("dp", "Data-parallel ranks", "count"),
    Column("pp", "Pipeline stages", "count"),
    Column("n_steps", "Steps", "count"),
    Column("n_dropped_steps", "Steps left out", "count"),
    Column("simulation_error_ratio", "Simulation error", "ratio",
           help=of_training.SIMULATION_ERROR.definition),
    Column("cause", "Cause in SQL", shown=False),
    Column("trace_id", "Trace id", shown=False),
)  # fmt: skip


def n_traces(store: Store) -> int:
    """How many traces are stored, whatever the selection?"""
    return stragglers.n_traces(store)


def traces(store: Store, selection: Selection) -> pd.DataFrame:
    """Which traces are stored? Newest first, with their labels as the column `trace`."""
    return labelled(stragglers.traces(store, selection))


def traces_of_job(store: Store, cluster: str, job_id: str) -> pd.DataFrame:
    """Was this job traced, and how slow was it? Newest first, with their labels."""
    return labelled(stragglers.traces_of_job(store, cluster, job_id))


def labelled(found: pd.DataFrame) -> pd.DataFrame:
    """Traces as they are named in lists and addresses, and their strongest causes in words."""
    return found.assign(
        trace=found["name"] + " · " + found["trace_id"].str[:ID_DIGITS],
        strongest_cause=found["cause"].fillna("unknown").map(causes.title),
    )


def measured(store: Store, selection: Selection, *, conf_level: float = 0.90) -> StragglerFleet:
    """How many of the traced runs straggle, and what share of their GPU-hours is wasted?"""
    return straggler_fleet(stragglers.traces(store, selection), conf_level=conf_level)


def nothing(n_stored: int, filters: str) -> Answer:
    """What is said where the selection has no trace."""
    if not n_stored:
        return NO_TRACE
    outside = Missing(
        "straggler_traces",
        f"The store holds {n_stored:,} outside of it.",
        "Choose a longer period, another cluster, or reset the filters.",
    )
    return Answer("No traced run in this selection", blocks=(outside,), about=filters)


def answer(ask: Ask, selection: Selection) -> Answer:
    """Shares with intervals beside the published, their distribution, causes, and every trace."""
    found = ask(traces, selection)
    fleet = ask(measured, selection)
    title = "How much do traced runs waste, beside what was published?"
    drawn = (fleet.distribution, found[found["wasted_ratio"].notna()])
    return Answer(
        _sentence(fleet),
        blocks=(
            _beside_published(fleet),
            _by_cause(fleet),
            Chart("training.fleet_waste", title, title, drawn, rows=_drawn(drawn[1])),
            Table(
                "straggler_traces",
                "All traces",
                TRACES,
                found[[column.key for column in TRACES]],
            ),
        ),
        notes=tuple(_notes(fleet, int(found["slowdown"].isna().sum()))),
    )


def _drawn(counted: pd.DataFrame) -> pd.DataFrame:
    """Traces as the chart lists them, from the least wasted on."""
    names = ["trace_id", "name", "slowdown", "wasted_ratio", "cause", "gpu_hours"]
    return counted[names].sort_values("wasted_ratio")


def _sentence(fleet: StragglerFleet) -> str:
    """How many straggle, and what that costs."""
    if not fleet.n_traces:
        return "No trace of this selection can be counted."
    n_straggling = sum(each.n_traces for each in fleet.by_cause)
    verb = "straggles" if n_straggling == 1 else "straggle"
    text = f"{n_straggling:,} of {numbers.counted(fleet.n_traces, 'trace')} {verb}"
    wasted = fleet.wasted_ratio.value
    if wasted is None:
        return f"{text}."
    return f"{text}; {numbers.percent(wasted)} of their GPU-hours are wasted."


def _beside_published(fleet: StragglerFleet) -> Table:
    """Our shares and the paper's."""
    shares = [
        ("traces that straggle (S > 1.1)", fleet.straggling_ratio, PUBLISHED_STRAGGLING),
        ("GPU-hours wasted", fleet.wasted_ratio, PUBLISHED_WASTED),
        *(
            (f"wasted by a run, p{100 * q:.0f}", estimate, PUBLISHED_QUANTILES[q])
            for q, estimate in fleet.quantiles.items()
        ),
    ]
    rows = [(name, here, published / 100, here.n) for name, here, published in shares]
    note = "Where no interval stands, the traces are too few for one."
    return Table("straggler_published", "Here and published", PUBLISHED, rows, note=note)


def _by_cause(fleet: StragglerFleet) -> Table:
    """Straggling traces by strongest cause."""
    rows = [
        (causes.title(each.cause), each.n_traces, each.ratio, each.mean_slowdown, each.cause)
        for each in fleet.by_cause
    ]
    title = "Straggling traces by strongest cause"
    empty = "No trace straggles." if fleet.n_traces else "No trace is there to judge by."
    return Table("straggler_causes_of_fleet", title, CAUSES, rows, empty)


def _notes(fleet: StragglerFleet, n_unanalysed: int) -> Iterator[str]:
    """What the shares leave out and take for granted."""
    yield f"Published: {SOURCE}. Traces here are those that somebody took: no sample of all."
    if n_unanalysed:
        yield f"{numbers.counted(n_unanalysed, 'trace')} could not be analysed: S is not known."
    if fleet.n_inaccurate:
        left_out = numbers.counted(fleet.n_inaccurate, "trace")
        yield f"{left_out} left out: the simulation is more than 5 % off."
    if fleet.n_without_gpu_hours:
        unknown = numbers.counted(fleet.n_without_gpu_hours, "trace")
        yield f"GPU-hours wasted leave out {unknown} whose run the store does not know."
