"""What would fixing one worker, stage or type of operations of a traced run give?"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from analytics.training.stragglers.fixes import Part, fixed
from analytics.training.stragglers.slowdown import ranked
from analytics.training.stragglers.step_model import StepModel
from analytics.training.stragglers.timeline import drawn_timeline
from app.answers.content import Answer, Chart, estimated
from app.answers.described import Rows
from app.answers.training import causes, trace
from app.words import numbers
from app.words.glossary import of_training
from data.errors import DataError
from data.ingest.readers.training.straggler_rows import read_rows
from data.queries import stragglers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.training.stragglers.fixes import Fixed
    from analytics.training.stragglers.timeline import TimelineOf
    from app.answers.training.trace import StragglerTrace
    from app.ask import Ask
    from data.store import Store

MOST_WORKERS = 64
"""Workers to choose from, slowest first."""
BEYOND_IDEAL = (
    "This is more than fixing everything gives: the ideal compute is the mean of all, which the "
    "slow part raises; parts that are not fixed stay faster than it."
)


def measured(store: Store, trace_id: str, part: str, *, conf_level: float = 0.90) -> Fixed:
    """Step times before and after."""
    return fixed(_model(store, trace_id), [Part.named(part)], conf_level=conf_level)[0]


def timeline(
    store: Store,
    trace_id: str,
    of: TimelineOf,
    *,
    part: str | None = None,
    steps: Sequence[int] | None = None,
) -> str:
    """What does the run look like, operation by operation? JSON for ui.perfetto.dev."""
    return drawn_timeline(_model(store, trace_id), of, part=part, steps=steps)


def parts(found: StragglerTrace) -> list[str]:
    """What can be fixed, named as on the command line; the strongest cause's first."""
    slow, strongest = found.analysis.slowdowns, found.analysis.strongest
    known = [
        *(Part(dp=dp, stage=stage) for dp, stage in slow.workers[:MOST_WORKERS]),
        *(Part(stage=stage) for stage in ranked(slow.by_stage)),
        *(Part(optype=name) for name in slow.by_type),
    ]
    first = None if strongest is None else strongest.part
    return [str(part) for part in sorted(known, key=lambda part: part != first)]


def answer(ask: Ask, found: StragglerTrace, part: str) -> Answer:
    """What the fix gives back of the step time, and of the GPU-hours of a day."""
    fix = ask(measured, found.facts["trace_id"], part)
    ideal = found.analysis.slowdowns.ideal_seconds
    hours = None if found.n_gpus is None else fix.saved_gpu_hours_per_day(found.n_gpus)
    name, dp, stage = fix.part.words, fix.part.dp, fix.part.stage
    if dp is not None and stage is not None:
        name = f"worker {causes.worker(dp, stage, found.nodes.node_of)}"
    gained = f"Fixing {name} gives back {numbers.percent(fix.saved_ratio.value)} of the step time"
    if hours is not None:
        gained += f": {numbers.number(hours.value)} GPU-hours a day of training"
    seconds = {
        "as it ran": fix.mean_original_seconds,
        "this fixed": fix.mean_fixed_seconds,
        "all ideal": ideal,
    }
    rows = Rows.of(("scenario", "mean_step_seconds"), seconds.items())
    title = "How long does a step take as it ran, fixed, and ideal?"
    return Answer(
        f"{gained}.",
        (
            estimated(of_training.GIVEN_BACK, "share", fix.saved_ratio),
            trace.per_day(of_training.GIVEN_BACK_HOURS, hours),
        ),
        (Chart("training.before_after", title, title, (seconds,), whole=True, rows=rows),),
        notes=(BEYOND_IDEAL,) if fix.mean_fixed_seconds < ideal else (),
    )


def _model(store: Store, trace_id: str) -> StepModel:
    """The trace, read again, as a model of its step."""
    facts = stragglers.trace(store, trace_id)
    file = stragglers.file_of(store, facts["path"])
    if not file.exists():
        raise DataError(f"{file}: is missing: ingest the trace {facts['name']} again")
    return StepModel.of_rows(read_rows(file, facts["name"]), dsp_size=_dsp_size(facts))


def _dsp_size(row: Mapping[str, Any]) -> int:
    """Data-sequence-parallel size: what the GPUs of the job leave for it; 1 where unknown."""
    sizes = [row[name] for name in ("dp", "pp", "tp")]
    if row["n_gpus"] is None or None in sizes:
        return 1
    return int(row["n_gpus"]) // prod(int(size or 1) for size in sizes)
