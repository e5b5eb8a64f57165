"""What is said of traces on the command line: what stragglers cost, and what fixes give back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from app.answers.content import Answer, Table
from app.answers.described import listed
from app.answers.training import causes
from app.answers.training.causes import doubts
from app.words import numbers
from app.words.cells import Column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.training.stragglers.analysis import StragglerAnalysis
    from analytics.training.stragglers.causes import StragglerCause
    from analytics.training.stragglers.fixes import Fixed
    from data.store import Store

STRONGEST = 3
"""Types of operations that a row names."""
COLUMNS = (
    Column("trace", "Trace"),
    Column("S", "S", "number"),
    Column("gpu_hours_wasted_ratio", "GPU-time wasted", "ratio"),
    Column("launch_slowdown", "Launch", "number"),
    Column("steps", "Steps", "count"),
    Column("dropped_steps", "Left out", "count"),
    Column("dp", "dp", "count"),
    Column("pp", "pp", "count"),
    Column("strongest_types", "Strongest types"),
    Column("causes", "Causes (gain)"),
    Column("seconds", "Seconds", "number", none=""),
)
FIXES = (
    Column("trace", "Trace"),
    Column("fixed", "Fixed"),
    Column("original_seconds", "Step (s)", "number"),
    Column("fixed_seconds", "Step fixed (s)", "number"),
    Column("saved_ratio", "Gives back", "ratio"),
    Column("saved_gpu_hours_per_day", "GPU-hours a day", "number", none=""),
)


@dataclass(frozen=True)
class AnalysedTrace:
    """Results of a trace: this much goes from process to process."""

    facts: dict[str, Any]
    """Name of the trace and sizes of its job, by the keys of the record."""
    analysis: StragglerAnalysis
    fixes: tuple[Fixed, ...] = ()
    timeline: str | None = None
    """File of the timeline; None where none was written."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Time taken: by reading, by the what-if from columns in memory to all slowdowns, and by causes
    and patterns; none of a stored trace."""

    @property
    def name(self) -> str:
        """What people call the trace: its file, or its name in the store."""
        return str(self.facts["trace"])

    @property
    def record(self) -> dict[str, Any]:
        """All of it under the keys of the JSON."""
        from analytics.training.stragglers.analysis import analysis_record

        more: dict[str, Any] = {}
        if self.fixes:
            more["fixes"] = self.fix_records
        if self.timeline is not None:
            more["timeline"] = self.timeline
        return self.facts | analysis_record(self.analysis) | more | self.seconds

    @property
    def fix_records(self) -> list[dict[str, Any]]:
        """Before and after of each part that is fixed."""
        n_gpus = self.facts["job_meta"]["world_size"]
        return [
            {
                "part": str(fix.part),
                "original_seconds": fix.mean_original_seconds,
                "fixed_seconds": fix.mean_fixed_seconds,
                "saved_ratio": fix.saved_ratio,
                "saved_gpu_hours_per_day": None
                if n_gpus is None
                else fix.saved_gpu_hours_per_day(n_gpus),
            }
            for fix in self.fixes
        ]


def stored(store: Store) -> list[AnalysedTrace]:
    """The traces of a store that could be analysed, newest first."""
    from app.answers.training import fleet, trace
    from data.filters import Selection

    traces = fleet.traces(store, Selection())
    ids = traces.loc[traces["slowdown"].notna(), "trace_id"]
    measured = [trace.measured(store, trace_id) for trace_id in ids]
    return [AnalysedTrace(_facts(one.facts), one.analysis) for one in measured]


def answer(traces: Sequence[AnalysedTrace], *, one: bool) -> Answer:
    """Who slows each run; in CSV, which holds one table, fixes stand in place of the traces.

    `one` is whether one trace was asked of, not a list that may hold one.
    """
    table = Table("traces", "Traces", COLUMNS, [_row(trace) for trace in traces])
    blocks = [table]
    fixes = [row for trace in traces for row in _fixes(trace)]
    if fixes:
        blocks.append(Table("fixes", "What fixing a part alone gives back", FIXES, fixes))
    n_straggling = sum(trace.analysis.slowdowns.straggles for trace in traces)
    many = f"{n_straggling:,} of {numbers.counted(len(traces), 'trace')} straggle (S above 1.1)."
    return Answer(
        causes.sentence(traces[0].analysis, {}) if one else many,
        blocks=tuple(blocks),
        notes=tuple(f"{trace.name}: {note}" for trace in traces for note in _notes(trace)),
        record=traces[0].record if one else [trace.record for trace in traces],
        sheet=listed(blocks[-1].columns, blocks[-1].values),
    )


def _notes(trace: AnalysedTrace) -> Iterator[str]:
    """What is to be known of the results of a trace."""
    yield from doubts(trace.analysis)
    for dropped in trace.analysis.slowdowns.dropped_steps:
        yield f"step {dropped.step} left out: {dropped.reason}"


def _row(trace: AnalysedTrace) -> tuple[Any, ...]:
    """One trace in a line."""
    slow = trace.analysis.slowdowns
    strongest = list(slow.by_type.items())[:STRONGEST]
    return (
        trace.name,
        slow.slowdown,
        slow.wasted_ratio,
        slow.launch_slowdown,
        len(slow.steps),
        len(slow.dropped_steps),
        len(slow.by_dp),
        len(slow.by_stage),
        ", ".join(f"{name} {value:.3f}" for name, value in strongest),
        ", ".join(map(_cause, trace.analysis.causes or ())),
        trace.seconds.get("seconds"),
    )


def _fixes(trace: AnalysedTrace) -> list[tuple[Any, ...]]:
    """Before and after of each part that is fixed, without intervals."""
    return [
        (trace.name, *(getattr(value, "value", value) for value in fix.values()))
        for fix in trace.fix_records
    ]


def _cause(cause: StragglerCause) -> str:
    """A cause, where, and what fixing it gives."""
    if cause.cause == "none":
        return "none"
    places = (("dp", cause.dp), ("stage", cause.stage), ("stages", list(cause.stages) or None))
    where = [f"{word} {place}" for word, place in places if place is not None]
    place = f" ({', '.join(where)})" if where else ""
    return f"{cause.cause}{place} {numbers.percent(cause.gain_ratio)}"


def _facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Columns of a stored trace under the keys of one that was just analysed."""
    named = ("trace_id", "cluster", "job_id", "run_id", "traced_at")
    sizes = {f"{name}_size": facts[name] for name in ("dp", "pp", "tp", "vpp")}
    return (
        {"trace": facts["name"]}
        | {name: facts[name] for name in named}
        | {"job_meta": {"trial_name": facts["name"], **sizes, "world_size": facts["n_gpus"]}}
    )
