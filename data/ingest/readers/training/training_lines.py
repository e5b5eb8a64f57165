"""Reader of the lines in a job's log that a trainer prints at each step."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from data.ingest.reader import Batch, Options, Reader, Source
from data.ingest.readers.logs.job_log import line_time, log_name
from data.ingest.readers.training.iteration_lines import BAR, parts_of, values_of
from data.ingest.readers.training.step_records import EVERYTHING, NO_JOB, StepRecords
from data.ingest.rows import PROGRESS_RECORDS, LocalClock

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from data.ingest.readers.training.step_records import Value

_RANK = re.compile(r"^\s*(?:\x1b\[[\d;]*m)*(?:\[rank(\d{1,9})\]|rank(\d{1,9}):|(\d{1,6}): )")
"""Global rank, or task of srun; `[default7]` of torchrun is a rank within its node."""


def sniff(head: str) -> bool:
    """Whether one of the first lines is of a step."""
    return any(values_of(part) is not None for line in head.splitlines() for part in parts_of(line))


def holds_steps(path: Path) -> bool:
    """Whether any line of a file is of a step."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        return any(values_of(part) is not None for line in lines for part in parts_of(line))


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Lines of steps, saves and loads as rows of `training_metrics`; all others are skipped.

    The job is that of `--job-id`, else of the file's name, as of `job-log`. A state of a progress
    bar that says the same again is skipped.

    Raises
    ------
    SourceError
        Where no line is of a step, or nobody stated whose run it is.
    """
    records = StepRecords(source, options, EVERYTHING)
    clock, cluster = LocalClock(options), options.cluster_of()
    is_stated = {options.job_id, options.run_id} - {None, NO_JOB}
    name = None if is_stated else log_name(PurePath(source.name).name, options.pattern)
    job_id = None if name is None else name.job_id
    last: dict[str, Value] = {}
    with source.path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        for line_no, line in enumerate(lines, 1):
            is_cut = not line.endswith("\n")
            for part in parts_of(line):
                values = values_of(part, is_cut=is_cut)
                if values is None or (BAR in part and values == last):
                    records.skipped["other_line" if values is None else "repeated"] += 1
                    continue
                last = dict(values)
                records.add(line_no, values | _told(part, clock, cluster, job_id))
            if line_no % PROGRESS_RECORDS == 0:
                options.progress(f"{source.name}: {line_no:,} lines")
    batch = records.batch(connection)
    batch.local |= clock.local
    batch.notices += clock.notices()
    return batch


def _told(line: str, clock: LocalClock, cluster: str, job_id: str | None) -> dict[str, Value]:
    """What stands before a line, and in the name of its file."""
    told: dict[str, Value] = {"job_id": job_id}
    if (at := line_time(line, clock, cluster)) is not None:
        told["logged_at"] = at.isoformat()
    if (found := _RANK.match(line)) is not None:
        told["rank"] = float(next(one for one in found.groups() if one is not None))
    return told


READER = Reader(
    "training-lines",
    "lines of steps in a job's log",
    export="the log of a job that prints its steps: Megatron-LM, NeMo, DeepSpeed",
    reads=(
        "lines of steps in a job's log (Megatron-LM, NeMo, DeepSpeed's pipeline): step time in the "
        "unit that the line names, loss, learning rate, loss scale, gradient norm; all other lines "
        "are skipped. The job as of `job-log`, which reads the same file for its last words"
    ),
    script="# the log of the job, e.g. slurm-4711.out",
    example="slurm-4711.out",
    advice="Give the same file to `job-log` too: it keeps the lines that tell why the job ended.",
    fills=("training_metrics",),
    place=7.6,
    options=("job_id", "run_id", "pattern"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
