"""One trace as `faultline stragglers` answers it: results, fixes and a timeline."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

    from analytics.training.stragglers.analysis import StragglerAnalysis
    from analytics.training.stragglers.fixes import Fixed
    from analytics.training.stragglers.timeline import TimelineOf
    from analytics.training.stragglers.trace import TraceRows
    from analytics.training.stragglers.what_if import WhatIf

TIMELINES: tuple[TimelineOf, ...] = ("original", "ideal", "fixed", "traced")
_PARQUET = b"PAR1"


@dataclass(frozen=True)
class TraceOptions:
    """What is wanted of a trace beside its results."""

    fixes: tuple[str, ...]
    timeline: str | None
    of: TimelineOf
    steps: tuple[int, ...] | None

    @classmethod
    def of_arguments(cls, arguments: argparse.Namespace, n_traces: int) -> TraceOptions:
        """What the arguments want; refuses those that need something else."""
        fixes, timeline = tuple(arguments.fix), arguments.timeline
        of: TimelineOf = arguments.of or ("fixed" if len(fixes) == 1 else "original")
        if timeline is None and (arguments.of or arguments.step):
            raise DataError("--of and --step choose what a timeline draws: add --timeline FILE")
        if timeline is not None and n_traces != 1:
            raise DataError(f"--timeline draws one trace, got {n_traces}: name one")
        if timeline is not None and of == "fixed" and len(fixes) != 1:
            raise DataError(
                f"--of fixed draws one part fixed, got {len(fixes)}: add one --fix, e.g. "
                "--fix worker:3,1"
            )
        return cls(fixes, timeline, of, tuple(arguments.step) if arguments.step else None)

    def refuse_overwriting(self, trace: str) -> None:
        """Refuses a timeline in place of the trace that it draws."""
        if self.timeline is None:
            return
        target, given = Path(self.timeline), Path(trace)
        if target.exists() and given.exists() and target.samefile(given):
            raise DataError(f"--timeline {target} is the trace itself: name another file")

    def write_timeline(self, model: WhatIf) -> None:
        """Writes the timeline, if one is wanted."""
        from analytics.training.stragglers.timeline import drawn_timeline

        if self.timeline is None:
            return
        part = self.fixes[0] if self.of == "fixed" else None
        text = drawn_timeline(model, self.of, part=part, steps=self.steps)
        try:
            Path(self.timeline).write_text(text, encoding="utf-8")
        except OSError as error:
            raise DataError(
                f"{self.timeline}: cannot be written ({error.strerror}): name another file"
            ) from None


@dataclass(frozen=True)
class AnalysedTrace:
    """Results of a trace: this much goes from process to process."""

    facts: terminal.Row
    """Name of the trace and sizes of its job, by the keys of the record."""
    analysis: StragglerAnalysis
    fixes: tuple[Fixed, ...] = ()
    timeline: str | None = None
    """File of the timeline; None where none was written."""
    seconds: terminal.Row = field(default_factory=dict)
    """Time taken: by reading, by the what-if from columns in memory to all slowdowns, and by causes
    and patterns; none of a stored trace."""

    @property
    def name(self) -> str:
        """What people call the trace: its file, or its name in the store."""
        return str(self.facts["trace"])

    def record(self) -> terminal.Row:
        """All of it under the keys of the JSON."""
        from analytics.training.stragglers.analysis import analysis_record

        more: terminal.Row = {}
        if self.fixes:
            more["fixes"] = [self._fix_record(fix) for fix in self.fixes]
        if self.timeline is not None:
            more["timeline"] = self.timeline
        return self.facts | analysis_record(self.analysis) | more | self.seconds

    def _fix_record(self, fix: Fixed) -> terminal.Row:
        n_gpus = self.facts["job_meta"]["world_size"]
        hours = None if n_gpus is None else fix.saved_gpu_hours_per_day(n_gpus)
        return {
            "part": str(fix.part),
            "original_seconds": fix.mean_original_seconds,
            "fixed_seconds": fix.mean_fixed_seconds,
            "saved_ratio": fix.saved_ratio,
            "saved_gpu_hours_per_day": hours,
        }


def analysed_trace(
    name: str, meta_name: str | None, options: TraceOptions
) -> tuple[AnalysedTrace | None, str | None]:
    """The results of a trace file, or why there are none."""
    from analytics.errors import AnalysisError

    try:
        return _analysed(name, meta_name, options), None
    except DataError as error:
        return None, str(error)
    except AnalysisError as error:
        return None, f"{name}: {error}"
    except OSError as error:
        reason = error.strerror or error
        return None, f"{name}: cannot be read ({reason}): check the path and access"


def _analysed(name: str, meta_name: str | None, options: TraceOptions) -> AnalysedTrace:
    from analytics.training.stragglers.analysis import analyse_trace
    from analytics.training.stragglers.fixes import Part, fixed
    from analytics.training.stragglers.what_if import WhatIf
    from data.ingest.straggler_trace import trace_meta

    times = [time.perf_counter()]

    def note_time() -> None:
        """Ends one part of the work."""
        times.append(time.perf_counter())

    options.refuse_overwriting(name)
    rows = _rows(name)
    meta = trace_meta(rows, name, meta_name)
    note_time()
    model = WhatIf.of_rows(rows, dsp_size=meta.dsp_size or 1)
    analysis = analyse_trace(model, on_slowdowns=note_time)
    note_time()
    fixes = fixed(model, [Part.named(part) for part in options.fixes])
    options.write_timeline(model)
    taken = (round(after - before, 4) for before, after in pairwise(times))
    return AnalysedTrace(
        {"trace": name, "job_meta": vars(meta)},
        analysis,
        fixes,
        options.timeline,
        dict(zip(("read_seconds", "seconds", "findings_seconds"), taken, strict=True)),
    )


def _rows(name: str) -> TraceRows:
    """The rows of a file; one that is no Parquet is unpacked and checked as text."""
    from data.ingest.straggler_rows import read_rows

    path = Path(name)
    if path.is_file():
        with path.open("rb") as stream:
            if stream.read(len(_PARQUET)) == _PARQUET:
                return read_rows(path, name)
    from tempfile import TemporaryDirectory

    from data.ingest.source import opened

    with TemporaryDirectory() as folder, opened(name, Path(folder)) as source:
        rows = read_rows(source.path, name)
        for text in source.notices():
            terminal.notice(f"{name}: {text}")
    return rows


def stored_traces(root: Path) -> list[AnalysedTrace]:
    """All traces of a store, newest first."""
    from app.answers.training import stragglers
    from data.filters import Selection
    from data.store import Store

    with contextlib.closing(Store.open(root)) as store:
        ids = stragglers.straggler_traces(store, Selection())["trace_id"]
        traces = [stragglers.straggler_trace(store, trace_id) for trace_id in ids]
    if not traces:
        raise DataError(
            f"{root}: holds no straggler trace: name trace files, or store one with "
            "`faultline ingest straggler-trace FILE`"
        )
    return [AnalysedTrace(_stored_facts(trace.facts), trace.analysis) for trace in traces]


def _stored_facts(facts: terminal.Row) -> terminal.Row:
    """Columns of a stored trace under the keys of one that was just analysed."""
    named = ("trace_id", "cluster", "job_id", "run_id", "traced_at")
    sizes = {f"{name}_size": facts[name] for name in ("dp", "pp", "tp", "vpp")}
    return (
        {"trace": facts["name"]}
        | {name: facts[name] for name in named}
        | {"job_meta": {"trial_name": facts["name"], **sizes, "world_size": facts["n_gpus"]}}
    )
