"""faultline stragglers: slowdown of a job by its stragglers: what if all were as fast as usual."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import options, spread
from app.show import terminal
from app.show.files import write_file
from data.errors import DataError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from analytics.training.stragglers.step_model import StepModel
    from analytics.training.stragglers.timeline import TimelineOf
    from analytics.training.stragglers.trace import TraceRows
    from app.answers.training.analysed import AnalysedTrace

EXAMPLE = "faultline stragglers ./demo-store/metrics/straggler_traces/*.parquet"
TIMELINES: tuple[TimelineOf, ...] = ("original", "ideal", "fixed", "traced")
_PARQUET = b"PAR1"


@dataclass(frozen=True)
class TraceOptions:
    """What is wanted of a trace beside its results."""

    fixes: tuple[str, ...]
    timeline: str | None
    of: TimelineOf
    steps: tuple[int, ...] | None
    partial: bool = False
    """Whether of a cut-off archive what came before the cut is analysed."""

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
        steps = tuple(arguments.step) if arguments.step else None
        return cls(fixes, timeline, of, steps, arguments.partial)

    def refuse_overwriting(self, trace: str) -> None:
        """Refuses a timeline in place of the trace that it draws."""
        if self.timeline is None:
            return
        target, given = Path(self.timeline), Path(trace)
        if target.exists() and given.exists() and target.samefile(given):
            raise DataError(f"--timeline {target} is the trace itself: name another file")

    def write_timeline(self, model: StepModel) -> None:
        """Writes the timeline, if one is wanted."""
        from analytics.training.stragglers.timeline import drawn_timeline

        if self.timeline is None:
            return
        part = self.fixes[0] if self.of == "fixed" else None
        text = drawn_timeline(model, self.of, part=part, steps=self.steps)
        write_file(Path(self.timeline), text.encode())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The traces, what is known of them, and what is wanted beside their results."""
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="Parquet or CSV; - is standard "
                        "input; none: those of the store")  # fmt: skip
    parser.add_argument(
        "--meta",
        action="append",
        metavar="FILE",
        help="meta YAML of the trace; again for each of several",
    )
    spread.add_arguments(parser, "traces")
    parser.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="PART",
        help="step time before and after fixing worker:DP,STAGE, stage:N or type:NAME; again for "
        "each of several",
    )
    _add_timeline(parser)
    options.add(parser, "partial", "store", "format")


def _add_timeline(parser: argparse.ArgumentParser) -> None:
    """--timeline and what it draws."""
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        help="write the operations of one trace as JSON that ui.perfetto.dev opens",
    )
    parser.add_argument(
        "--of",
        choices=TIMELINES,
        help="what the timeline draws: simulated with its own costs, with ideal ones, or with the "
        "part of --fix fixed; or as traced (default original, with one --fix fixed)",
    )
    parser.add_argument(
        "--step",
        type=options.whole,
        action="append",
        metavar="N",
        help="draw this step alone; again for each of several (default all)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the results of each trace; 2 where one could not be analysed."""
    from app.answers.training import analysed

    form = terminal.chosen(arguments.format)
    names: list[str] = arguments.traces
    wanted = TraceOptions.of_arguments(arguments, len(names))
    metas = _metas(names, arguments.meta or [])
    where = spread.Spread.of(arguments, names, "no TRACE means the store's traces")
    if arguments.timeline is not None:
        where.refuse_on_spark("--timeline draws one trace, into a file of this machine")
    if not names:
        if wanted.fixes:
            raise DataError("--fix is asked of trace files: name them")
        terminal.write(analysed.answer(_stored(arguments.store), one=False), form)
        return 0
    pieces = [
        spread.Piece((name, meta, wanted), tuple(filter(None, (name, meta))), name)
        for name, meta in zip(names, metas, strict=True)
    ]
    results = list(spread.outcomes(_analysed, pieces, where, "traces"))
    errors = [error for _, error in results if error is not None]
    traces = [trace for trace, _ in results if trace is not None]
    if not traces:
        raise DataError("; ".join(errors))
    for error in errors:
        terminal.notice(f"faultline stragglers: {error}")
    terminal.write(analysed.answer(traces, one=len(names) == 1), form)
    return 2 if errors else 0


def _stored(root: Path) -> list[AnalysedTrace]:
    """The traces of a store, newest first; those that cannot be analysed are told."""
    from app.answers.training import analysed
    from data.queries.stragglers import unanalysed
    from data.store import Store

    with contextlib.closing(Store.open(root)) as store:
        traces, others = analysed.stored(store), unanalysed(store)
    for name, why in others:
        terminal.notice(f"faultline stragglers: {name} cannot be analysed: {why}")
    if not traces and not others:
        raise DataError(
            f"{root}: holds no straggler trace: name trace files, or store one with "
            "`faultline ingest straggler-trace FILE`"
        )
    return traces


def _metas(names: Sequence[str], metas: list[str]) -> Sequence[str | None]:
    """The meta file of each trace."""
    if metas and len(metas) not in (1, len(names)):
        raise DataError(
            f"--meta is given {len(metas)} times for {len(names)} traces: give one for all of a "
            "job, or one each in their order"
        )
    if "-" in names and len(names) > 1:
        raise DataError("standard input is one trace: name the others as files in a run of its own")
    if len(metas) == len(names):
        return metas
    return [metas[0] if metas else None] * len(names)


def _analysed(name: str, meta_name: str | None, options: TraceOptions) -> AnalysedTrace:
    from analytics.training.stragglers.analysis import analyse_trace
    from analytics.training.stragglers.fixes import Part, fixed
    from analytics.training.stragglers.step_model import StepModel
    from app.answers.training.analysed import AnalysedTrace
    from data.ingest.readers.training.straggler_trace import trace_meta

    times = [time.perf_counter()]

    def note_time() -> None:
        """Ends one part of the work."""
        times.append(time.perf_counter())

    options.refuse_overwriting(name)
    rows = _rows(name, partial=options.partial)
    meta = trace_meta(rows, name, meta_name)
    note_time()
    model = StepModel.of_rows(rows, dsp_size=meta.dsp_size or 1)
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


def _rows(name: str, *, partial: bool) -> TraceRows:
    """The rows of a file; one that is no Parquet is unpacked and checked as text."""
    from data.ingest.readers.training.straggler_rows import read_rows

    path = Path(name)
    if path.is_file():
        with path.open("rb") as stream:
            if stream.read(len(_PARQUET)) == _PARQUET:
                return read_rows(path, name)
    from tempfile import TemporaryDirectory

    from data.ingest.formats.source import opened

    with TemporaryDirectory() as folder, opened(name, Path(folder), partial=partial) as source:
        rows = read_rows(source.path, name)
        for text in source.notices():
            terminal.notice(f"{name}: {text}")
    return rows
