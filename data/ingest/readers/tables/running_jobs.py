"""A table of jobs that run, CSV or Parquet: how many GPUs each has and can do with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from data.errors import SourceError
from data.ingest.formats.tabular import table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from data.ingest.formats.tabular import Record

COLUMNS: Final = {
    "job": ("job", "job_id", "jobid", "name"),
    "gpus": ("gpus", "n_gpus"),
    "least_gpus": ("min_gpus", "least_gpus"),
    "most_gpus": ("max_gpus", "most_gpus"),
    "weight": ("weight",),
    "flops": ("flops", "throughput"),
    "scaling": ("scaling",),
}
"""What is read -> names of its column, in any case; the first two must be there."""


@dataclass(frozen=True)
class RunningJob:
    """A job that runs; what no column says is None."""

    job: str
    gpus: int
    least_gpus: int | None
    most_gpus: int | None
    weight: float | None
    flops: float | None
    scaling: float | None


def read_running_jobs(name: str) -> tuple[list[RunningJob], list[int]]:
    """Jobs of a file, `-` is standard input, and lines that were left out: no name or GPUs, a cell
    that holds no number above 0, a name that stood there before.

    Raises
    ------
    SourceError
        Where the file cannot be read, lacks a column or holds no job.
    """
    with table_of(name) as (source, header, records):
        there = {column.strip().casefold(): column for column in reversed(header)}
        place = {
            key: next((there[each] for each in names if each in there), None)
            for key, names in COLUMNS.items()
        }
        for key in ("job", "gpus"):
            if place[key] is None:
                raise SourceError(
                    f"{name}: has no column {' or '.join(COLUMNS[key])}; there are "
                    f"{', '.join(header[:20])}"
                )
        found: dict[str, RunningJob] = {}
        left_out = []
        for record in records:
            job = _job(record, place)
            if job is None or job.job in found:
                left_out.append(record.line_no)
            else:
                found[job.job] = job
        left_out += [line.line_no for line in source.too_long]
    if not found:
        raise SourceError(f"{name}: holds no job with its GPUs ({len(left_out):,} rows left out)")
    return list(found.values()), left_out


def _job(record: Record, place: Mapping[str, str | None]) -> RunningJob | None:
    """One job; None where the row is none."""
    if record.values is None:
        return None
    cells = {key: record.values.get(column) for key, column in place.items() if column}
    name = str(cells.pop("job") or "").strip()
    numbers: dict[str, float | None] = dict.fromkeys(COLUMNS)
    for key, cell in cells.items():
        if cell is None or not str(cell).strip():
            continue
        try:
            value = float(cell)
        except (TypeError, ValueError):
            return None
        whole = key.endswith("gpus")
        if not (0 < value < math.inf) or (whole and value != int(value)):
            return None
        numbers[key] = value
    gpus = numbers["gpus"]
    if not name or gpus is None:
        return None
    least, most = numbers["least_gpus"], numbers["most_gpus"]
    if (least or 0) > gpus or (most is not None and most < gpus):
        return None
    return RunningJob(
        name,
        int(gpus),
        None if least is None else int(least),
        None if most is None else int(most),
        numbers["weight"],
        numbers["flops"],
        numbers["scaling"],
    )
