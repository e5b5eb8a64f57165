"""What is said of traces on the command line: what stragglers cost, and what fixes give back."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as attribute
from typing import TYPE_CHECKING, Any

from app.answers.content import Answer
from app.answers.described import Rows, field
from app.answers.training import causes
from app.answers.training.causes import doubts
from app.words import numbers
from app.words.cells import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from analytics.training.stragglers.analysis import StragglerAnalysis
    from analytics.training.stragglers.causes import StragglerCause
    from analytics.training.stragglers.fixes import Fixed
    from data.store import Store

STRONGEST = 3
"""Types of operations that a row names."""


@dataclass(frozen=True)
class AnalysedTrace:
    """Results of a trace: this much goes from process to process."""

    facts: dict[str, Any]
    """Name of the trace and sizes of its job, by the keys of the record."""
    analysis: StragglerAnalysis
    fixes: tuple[Fixed, ...] = ()
    timeline: str | None = None
    """File of the timeline; None where none was written."""
    seconds: dict[str, float] = attribute(default_factory=dict)
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
    rows = Rows(COLUMNS, traces)
    blocks = [rows.table("traces", "Traces")]
    if fixes := [fix | {"trace": trace.name} for trace in traces for fix in trace.fix_records]:
        rows = Rows(FIXES, fixes)
        blocks.append(rows.table("fixes", "What fixing a part alone gives back"))
    n_straggling = sum(trace.analysis.slowdowns.straggles for trace in traces)
    many = f"{n_straggling:,} of {numbers.counted(len(traces), 'trace')} straggle (S above 1.1)."
    return Answer(
        causes.sentence(traces[0].analysis, {}) if one else many,
        blocks=tuple(blocks),
        notes=tuple(f"{trace.name}: {note}" for trace in traces for note in _notes(trace)),
        record=traces[0].record if one else [trace.record for trace in traces],
        sheet=rows.sheet(),
    )


def _notes(trace: AnalysedTrace) -> Iterator[str]:
    """What is to be known of the results of a trace."""
    yield from doubts(trace.analysis)
    for dropped in trace.analysis.slowdowns.dropped_steps:
        yield f"step {dropped.step} left out: {dropped.reason}"


def _strongest_types(trace: AnalysedTrace) -> str:
    """The types of operations that slow it most."""
    strongest = list(trace.analysis.slowdowns.by_type.items())[:STRONGEST]
    return ", ".join(f"{name} {value:.3f}" for name, value in strongest)


def _cause(cause: StragglerCause) -> str:
    """A cause, where, and what fixing it gives."""
    if cause.cause == "none":
        return "none"
    places = (("dp", cause.dp), ("stage", cause.stage), ("stages", list(cause.stages) or None))
    where = [f"{word} {place}" for word, place in places if place is not None]
    place = f" ({', '.join(where)})" if where else ""
    return f"{cause.cause}{place} {numbers.percent(cause.gain_ratio)}"


def _n(part: str) -> Callable[[AnalysedTrace], int]:
    """How many steps, ranks or stages a trace has."""
    return lambda trace: len(getattr(trace.analysis.slowdowns, part))


COLUMNS = (
    field("trace", "Trace", of="name"),
    field("S", "S", "number", "analysis.slowdowns.slowdown"),
    field("gpu_hours_wasted_ratio", "GPU-time wasted", "ratio", "analysis.slowdowns.wasted_ratio"),
    field("launch_slowdown", "Launch", "number", "analysis.slowdowns.launch_slowdown"),
    field("steps", "Steps", "count", _n("steps")),
    field("dropped_steps", "Left out", "count", _n("dropped_steps")),
    field("dp", "dp", "count", _n("by_dp")),
    field("pp", "pp", "count", _n("by_stage")),
    field("strongest_types", "Strongest types", of=_strongest_types),
    field(
        "causes",
        "Causes (gain)",
        of=lambda trace: ", ".join(map(_cause, trace.analysis.causes or ())),
    ),
    field("seconds", "Seconds", "number", lambda trace: trace.seconds.get("seconds"), none=""),
)
FIXES = (
    Column("trace", "Trace"),
    field("fixed", "Fixed", of="part"),
    Column("original_seconds", "Step (s)", "number"),
    Column("fixed_seconds", "Step fixed (s)", "number"),
    field("saved_ratio", "Gives back", "ratio", "saved_ratio.value"),
    field(
        "saved_gpu_hours_per_day",
        "GPU-hours a day",
        "number",
        lambda fix: getattr(fix["saved_gpu_hours_per_day"], "value", None),
        none="",
    ),
)


def _facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Columns of a stored trace under the keys of one that was just analysed."""
    named = ("trace_id", "cluster", "job_id", "run_id", "traced_at")
    sizes = {f"{name}_size": facts[name] for name in ("dp", "pp", "tp", "vpp")}
    return (
        {"trace": facts["name"]}
        | {name: facts[name] for name in named}
        | {"job_meta": {"trial_name": facts["name"], **sizes, "world_size": facts["n_gpus"]}}
    )
