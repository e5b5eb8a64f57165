"""What a reduction of accounting would read and take, by a measured sample of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.reduce.engine import Found
from data.reduce.estimate import Trial, estimate
from data.reduce.job_engine import MOST_ROWS, DuckDBJobs
from data.reduce.job_running import JOBS
from data.reduce.job_texts import FORMS
from data.reduce.plan import UNKNOWN

if TYPE_CHECKING:
    from pathlib import Path

    from data.reduce.inputs import Partition
    from data.reduce.running import Request


def estimate_jobs(request: Request) -> dict[str, Any]:
    """Files, bytes and records that are new or changed, with the time and memory it would cost.

    As `data.reduce.estimate.estimate`.

    Raises
    ------
    DataError
        Where the inputs or the folder cannot be used.
    """
    return estimate(request, Trial(JOBS, FORMS, MOST_ROWS, DuckDBJobs, _of_jobs))


def _of_jobs(engine: DuckDBJobs, sample: Partition, folder: Path) -> int:
    """Reduces records of accounting."""
    found = engine.survey(sample)
    days = [None if begin == UNKNOWN else int(begin) for begin in found.hours]
    if days:
        engine.reduce(Found([sample], ()), days, (0, 1), folder / "out")
    return found.rows
