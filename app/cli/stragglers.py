"""faultline stragglers: what a job would gain without its stragglers."""

from __future__ import annotations

import os
import signal
import time
from itertools import pairwise, repeat
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import options, output, straggler_table
from app.cli.straggler_asked import Asked, stored
from app.cli.straggler_asked import add_arguments as add_asked
from data.errors import DataError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from analytics.training.stragglers.rows import TraceRows
    from data.ingest.straggler_meta import TraceMeta

HELP = "slowdown of a job by its stragglers: what if all were as fast as usual"
EXAMPLE = "faultline stragglers ./demo-store/metrics/straggler_traces/*.parquet"
_PARQUET = b"PAR1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The traces and what is known of them."""
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="Parquet or CSV; - is standard "
                        "input; none: those of the store")  # fmt: skip
    parser.add_argument(
        "--meta",
        action="append",
        metavar="FILE",
        help="meta YAML of the trace; again for each of several",
    )
    parser.add_argument(
        "--engine",
        choices=["local"],
        default="local",
        help="where traces are analysed: local is processes of this machine, the only one",
    )
    parser.add_argument(
        "--workers",
        type=options.whole,
        metavar="N",
        help="processes for several traces (default one a core)",
    )
    add_asked(parser)
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the results of each trace; 2 where one could not be analysed."""
    form = output.chosen(arguments.format)
    names: list[str] = arguments.traces
    asked = Asked.of_arguments(arguments, len(names))
    metas = _metas(names, arguments.meta or [])
    if not names:
        return _list_stored(arguments, form)
    if len(names) == 1:
        found = [what_if(names[0], metas[0], asked)]
    else:
        workers = arguments.workers or len(os.sched_getaffinity(0))
        found = list(_all_what_ifs(names, metas, asked, workers=min(workers, len(names))))
    errors = [error for _, error in found if error is not None]
    records = [record for record, _ in found if record is not None]
    if not records:
        raise DataError("; ".join(errors))
    for error in errors:
        output.notice(f"faultline stragglers: {error}")
    for record in records:
        for dropped in record["dropped_steps"]:
            output.notice(f"{record['trace']}: step {dropped['step']} left out: "
                          f"{dropped['reason']}")  # fmt: skip
    if form == "json":
        output.print_json(records[0] if len(names) == 1 else records)
    elif form == "table" or not asked.fixes:
        straggler_table.print_records(records, form)
    if form == "table" or (form == "csv" and asked.fixes):
        straggler_table.print_fixes(records, form)
    return 2 if errors else 0


def _list_stored(arguments: argparse.Namespace, form: str) -> int:
    """Prints the results of all stored traces."""
    if arguments.fix:
        raise DataError("--fix is asked of trace files: name them")
    records = stored(arguments.store)
    if form == "json":
        output.print_json(records)
    else:
        straggler_table.print_records(records, form)
    return 0


def what_if(name: str, meta_name: str | None, asked: Asked) -> tuple[output.Row | None, str | None]:
    """The record of a trace, or why there is none: this much goes from process to process.

    Its `seconds` are those of the what-if alone, from columns in memory to all numbers of
    `analysis_record`; reading the file and `findings_record` have theirs.
    """
    from analytics.errors import AnalysisError
    from analytics.training.stragglers.findings_record import findings_record
    from analytics.training.stragglers.record import analysis_record
    from analytics.training.stragglers.slowdown import analyse
    from analytics.training.stragglers.trace import Trace

    times = [time.perf_counter()]
    try:
        asked.refuse_overwriting(name)
        rows = _rows(name)
        meta = _meta(rows, name, meta_name)
        times.append(time.perf_counter())
        trace = Trace.of_columns(rows, dsp_size=meta.dsp_size if meta is not None else 1)
        analysis = analyse(trace)
        record = analysis_record(analysis)
        times.append(time.perf_counter())
        found = findings_record(analysis)
        times.append(time.perf_counter())
        answers = asked.answers(analysis.what_if, meta.world_size if meta is not None else None)
    except DataError as error:
        return None, str(error)
    except AnalysisError as error:
        return None, f"{name}: {error}"
    except OSError as error:
        reason = error.strerror or error
        return None, f"{name}: cannot be read ({reason}): check the path and access"
    named = {"trace": name, "job_meta": _job_meta(rows, name, meta)}
    spent = (round(after - before, 4) for before, after in pairwise(times))
    taken = dict(zip(("read_seconds", "seconds", "findings_seconds"), spent, strict=True))
    return named | record | found | answers | taken, None


def _all_what_ifs(
    names: Sequence[str], metas: Sequence[str | None], asked: Asked, *, workers: int
) -> Iterator[tuple[output.Row | None, str | None]]:
    """The records of several traces in their order, on several cores."""
    if workers == 1:
        yield from map(what_if, names, metas, repeat(asked))
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")  # libraries with threads do not survive a fork
    pool = ProcessPoolExecutor(workers, mp_context=context)
    # Workers inherit that they ignore Ctrl-C: one that dies of it may leave the others waiting.
    handled = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        results = pool.map(what_if, names, metas, repeat(asked))
    finally:
        signal.signal(signal.SIGINT, handled)
    n_done = 0
    try:
        for result in results:
            n_done += 1
            output.progress(f"{n_done} of {len(names)} traces")
            yield result
    except BrokenProcessPool:  # out of memory, most often: one at a time needs less
        output.notice("a process ended before its time: the other traces follow one by one")
        yield from map(what_if, names[n_done:], metas[n_done:], repeat(asked))
    except KeyboardInterrupt:
        for worker in multiprocessing.active_children():
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    output.progress_done()


def _metas(names: Sequence[str], metas: list[str]) -> Sequence[str | None]:
    """The meta file of each trace."""
    if metas and len(metas) not in (1, len(names)):
        raise DataError(
            f"--meta is given {len(metas)} times for {len(names)} traces: give one for all of a "
            "job, or one each in their order"
        )
    if "-" in names and len(names) > 1:
        raise DataError("standard input is one trace: name the others as files in a run of its own")
    return metas if len(metas) == len(names) else (metas or [None]) * len(names)


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

    with TemporaryDirectory() as folder, opened(name, Path(folder)) as found:
        rows = read_rows(found.source.path, name)
        for text in found.notices():
            output.notice(f"{name}: {text}")
    return rows


def _meta(rows: TraceRows, name: str, meta_name: str | None) -> TraceMeta | None:
    """What the meta file says, None where there is none; refuses that of another job."""
    from data.ingest.straggler_meta import read_meta
    from data.ingest.straggler_trace import refuse_other_sizes

    if meta_name is None:
        return None
    meta = read_meta(Path(meta_name), meta_name)
    refuse_other_sizes(rows, meta, name)
    return meta


def _job_meta(rows: TraceRows, name: str, meta: TraceMeta | None) -> output.Row:
    """Sizes of the job: as the meta file states them, else what the trace shows."""
    from data.ingest.straggler_trace import trace_sizes

    if meta is not None:
        return vars(meta)
    sizes = trace_sizes(rows)
    return {
        "trial_name": Path(name).stem,
        "run_id": None,
        "dp_size": sizes.dp,
        "pp_size": sizes.pp,
        "tp_size": None,
        "dsp_size": None,
        "vpp_size": sizes.vpp,
        "world_size": None,
    }
