"""Which jobs have a faulty machine by their metrics, each of a file of its own?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.answers.content import Answer
from app.answers.described import Rows, field, sheet_of
from app.answers.nodes import machines
from app.words import numbers
from app.words.cells import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.nodes.machines.detection import Settings

COLUMNS = (Column("file", "File"), field("said", "Verdict", of="sentence"))


@dataclass(frozen=True)
class JudgedJob:
    """What is said of one job: this much goes from process to process."""

    file: str
    sentence: str
    notes: tuple[str, ...]
    record: dict[str, Any]


def judged(file: str, settings: Settings, roles: machines.Roles) -> JudgedJob:
    """The verdict on the job of a file.

    Raises
    ------
    DataError
        Where it cannot be read.
    AnalysisError
        Where it holds too few machines, or too short a time.
    """
    said = machines.answer(machines.examined([file], settings, roles))
    return JudgedJob(file, said.sentence, said.notes, {"file": file} | said.record)


def answer(jobs: Sequence[JudgedJob]) -> Answer:
    """The verdicts, in the order of the files."""
    rows = [row for job in jobs for row in machines.rows_of(job.record)]
    return Answer(
        _sentence(jobs),
        blocks=(Rows(COLUMNS, jobs).table("jobs", "Jobs"),),
        notes=tuple(f"{job.file}: {note}" for job in jobs for note in job.notes),
        record=[job.record for job in jobs],
        sheet=sheet_of(rows, ("file", *machines.SHEET)),
    )


def _sentence(jobs: Sequence[JudgedJob]) -> str:
    """In how many of those that could be judged."""
    n_of = Counter(job.record["verdict"] for job in jobs)
    n_judged = len(jobs) - n_of["unknown"]
    if not n_judged:
        return f"Cannot be judged: {numbers.counted(len(jobs), 'job')} without metrics that tell."
    more = f"; {n_of['unknown']:,} more cannot be judged" if n_of["unknown"] else ""
    return f"A machine is faulty in {n_of['faulty']:,} of {numbers.counted(n_judged, 'job')}{more}."
