"""faultline stragglers: slowdown of a job by its stragglers: what if all were as fast as usual."""

from __future__ import annotations

import os
import signal
from itertools import repeat
from typing import TYPE_CHECKING, Any

from app.cli import options
from app.cli.straggler_trace import TIMELINES, TraceOptions, analysed_trace, stored_traces
from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from analytics.training.stragglers.causes import StragglerCause
    from app.cli.straggler_trace import AnalysedTrace

EXAMPLE = "faultline stragglers ./demo-store/metrics/straggler_traces/*.parquet"
STRONGEST = 3
"""Types of operations that a row names."""
HEADER = ["trace", "S", "GPU-time wasted", "launch", "steps", "left out", "dp", "pp",
          "strongest types (S_t)", "causes (gain)", "seconds"]  # fmt: skip
FIXES_HEADER = ["fixed", "step s", "step s fixed", "gives back", "GPU-hours a day"]
FIXES_COLUMNS = ["trace", "fixed", "original_seconds", "fixed_seconds", "saved_ratio",
                 "saved_gpu_hours_per_day"]  # fmt: skip


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
    parser.add_argument(
        "--workers",
        type=options.whole,
        metavar="N",
        help="processes for several traces (default one a core)",
    )
    parser.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="PART",
        help="step time before and after fixing worker:DP,STAGE, stage:N or type:NAME; again for "
        "each of several",
    )
    _add_timeline(parser)
    options.add_store(parser)
    options.add_format(parser)


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
    form = terminal.chosen(arguments.format)
    names: list[str] = arguments.traces
    wanted = TraceOptions.of_arguments(arguments, len(names))
    metas = _metas(names, arguments.meta or [])
    if not names:
        if wanted.fixes:
            raise DataError("--fix is asked of trace files: name them")
        _print_traces(stored_traces(arguments.store), form, one=False)
        return 0
    results = list(_all_analysed(names, metas, wanted, workers=arguments.workers))
    errors = [error for _, error in results if error is not None]
    traces = [trace for trace, _ in results if trace is not None]
    if not traces:
        raise DataError("; ".join(errors))
    for error in errors:
        terminal.notice(f"faultline stragglers: {error}")
    for trace in traces:
        for dropped in trace.analysis.slowdowns.dropped_steps:
            terminal.notice(f"{trace.name}: step {dropped.step} left out: {dropped.reason}")
    _print_traces(traces, form, one=len(names) == 1)
    return 2 if errors else 0


def _all_analysed(
    names: Sequence[str], metas: Sequence[str | None], wanted: TraceOptions, *, workers: int | None
) -> Iterator[tuple[AnalysedTrace | None, str | None]]:
    """The results of several traces in their order, on several cores."""
    n_workers = min(workers or len(os.sched_getaffinity(0)), len(names))
    if n_workers == 1:
        yield from map(analysed_trace, names, metas, repeat(wanted))
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")  # libraries with threads do not survive a fork
    pool = ProcessPoolExecutor(n_workers, mp_context=context)
    # Workers inherit that they ignore Ctrl-C: one that dies of it may leave the others waiting.
    handled = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        results = pool.map(analysed_trace, names, metas, repeat(wanted))
    finally:
        signal.signal(signal.SIGINT, handled)
    n_done = 0
    try:
        for result in results:
            n_done += 1
            terminal.progress(f"{n_done} of {len(names)} traces")
            yield result
    except BrokenProcessPool:  # out of memory, most often: one at a time needs less
        terminal.notice("a process ended before its time: the other traces follow one by one")
        yield from map(analysed_trace, names[n_done:], metas[n_done:], repeat(wanted))
    except KeyboardInterrupt:
        for worker in multiprocessing.active_children():
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    terminal.progress_done()


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


def _print_traces(traces: Sequence[AnalysedTrace], form: str, *, one: bool) -> None:
    """JSON of all numbers; else one row a trace, and the fixes as a table of their own.

    In CSV, which holds one table, the fixes stand in place of the traces.
    """
    fixes = [fix for trace in traces for fix in _fixes(trace)]
    rows = [_summary(trace) for trace in traces]
    if form == "json":
        terminal.print_json(traces[0].record() if one else [trace.record() for trace in traces])
    elif form == "table":
        shares = [100 * row["gpu_hours_wasted_ratio"] for row in rows]
        terminal.print_table(
            HEADER,
            [
                list((row | {"gpu_hours_wasted_ratio": f"{share:.1f} %"}).values())
                for row, share in zip(rows, shares, strict=True)
            ],
        )
        _print_fixes(fixes)
    elif fixes:
        terminal.print_csv(FIXES_COLUMNS, fixes)
    else:
        terminal.print_csv(list(rows[0]), [list(row.values()) for row in rows])


def _fixes(trace: AnalysedTrace) -> list[list[Any]]:
    """Before and after of each part that is fixed, without intervals."""
    return [
        [trace.name, *(getattr(value, "value", value) for value in fix.values())]
        for fix in trace.record().get("fixes", ())
    ]


def _print_fixes(fixes: Sequence[Sequence[Any]]) -> None:
    """Before and after of each part that is fixed."""
    if fixes:
        print()
        terminal.print_table(
            FIXES_HEADER,
            [
                [part, own, fixed, f"{100 * saved:.1f} %", hours]
                for _, part, own, fixed, saved, hours in fixes
            ],
        )


def _summary(trace: AnalysedTrace) -> terminal.Row:
    """One line of a trace."""
    slow = trace.analysis.slowdowns
    strongest = list(slow.by_type.items())[:STRONGEST]
    return {
        "trace": trace.name,
        "S": slow.slowdown,
        "gpu_hours_wasted_ratio": slow.wasted_ratio,
        "launch_slowdown": slow.launch_slowdown,
        "steps": len(slow.steps),
        "dropped_steps": len(slow.dropped_steps),
        "dp": len(slow.by_dp),
        "pp": len(slow.by_stage),
        "strongest_types": ", ".join(f"{name} {value:.3f}" for name, value in strongest),
        "causes": ", ".join(map(_cause_words, trace.analysis.causes or ())),
        "seconds": trace.seconds.get("seconds"),
    }


def _cause_words(cause: StragglerCause) -> str:
    """A cause, where, and what fixing it gives."""
    if cause.cause == "none":
        return "none"
    places = (("dp", cause.dp), ("stage", cause.stage), ("stages", list(cause.stages) or None))
    where = [f"{word} {place}" for word, place in places if place is not None]
    place = f" ({', '.join(where)})" if where else ""
    return f"{cause.cause}{place} {100 * cause.gain_ratio:.1f} %"
