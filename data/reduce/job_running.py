"""Reducing accounting: inputs are surveyed, then some days of submission at once are made.

A day (UTC) of submission holds all records of its attempts, however late they came: what supersedes
a record was submitted when it was. So a late record makes one day anew, and no other.
"""

from __future__ import annotations

import secrets
import shutil
from collections import Counter
from typing import TYPE_CHECKING

from data.current import sync
from data.errors import DataError
from data.reduce.engine import NO_LAST, Found
from data.reduce.kinds import JOBS
from data.reduce.manifest import Done
from data.reduce.plan import UNKNOWN, Day, due
from data.reduce.running import ASIDE, DAY, refuse_moved

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from data.reduce.inputs import Partition
    from data.reduce.job_engine import JobEngine
    from data.reduce.manifest import Manifest
    from data.reduce.running import Reduced, Request


_NAMED = 3
"""Files that are named in a message."""


def make_days_of_jobs(
    engine: JobEngine, request: Request, given: Sequence[Partition], result: Reduced
) -> None:
    """Makes the days that are due, as many at once as the engine holds."""
    todo = due(result.manifest, given)
    for some in _together(todo, request.most_rows or engine.most_rows):
        n_done = len(result.days_done) + len(some)
        request.progress(f"{some[0].day}: {n_done:,} of {len(todo):,} days of submission")
        result.notices += [
            f"{day.day}: {sum(day.late.values()):,} records of {', '.join(day.late)} came when the "
            "day was done: it was made anew"
            for day in some
            if day.late
        ]
        _make(engine, request, given, some, result.manifest)
        result.days_done += [day.day for day in some]
    result.manifest.save(request.out)


def _together(days: Sequence[Day], most_rows: int) -> Iterator[list[Day]]:
    """Days in groups of at most so many records; a larger day alone."""
    some: list[Day] = []
    for day in days:
        if some and sum(map(_n_rows, (*some, day))) > most_rows:
            yield some
            some = []
        some.append(day)
    if some:
        yield some


def _n_rows(day: Day) -> int:
    """Records of a day."""
    return sum(day.hours.values())


def _make(
    engine: JobEngine,
    request: Request,
    given: Sequence[Partition],
    days: Sequence[Day],
    manifest: Manifest,
) -> None:
    """Makes some days: files are written aside, named, then the manifest names them at once."""
    old = [manifest.partitions.pop(day.day, None) for day in days]
    filled = [day for day in days if day.inputs]
    if filled:
        paths = {path for day in filled for path in day.inputs}
        of_days = [partition for partition in given if partition.path in paths]
        clean = {path for path in paths if manifest.inputs[path].is_clean}
        made = _written(engine, request, Found(of_days, clean), filled)
        refuse_moved(of_days)
        for day in filled:
            files, of_day = made[day.day]
            _refuse_otherwise_read(day, of_day["rows_in"])
            manifest.partitions[day.day] = Done(
                day.inputs,
                {JOBS: files},
                of_day["rows_in"],
                0,
                {JOBS: of_day["rows_out"]},
                NO_LAST,
                NO_LAST,
                superseded={
                    reason: n
                    for reason, n in of_day.items()
                    if reason not in ("rows_in", "rows_out")
                },
            )
    manifest.save(request.out)
    for done in old:
        for name in done.files[JOBS] if done else ():
            (request.out / name).unlink(missing_ok=True)


def _refuse_otherwise_read(day: Day, rows_in: int) -> None:
    """Refuses a day of which other records were reduced than were counted: some would be lost."""
    if rows_in != _n_rows(day):
        files = ", ".join(sorted(day.inputs)[:_NAMED])
        raise DataError(
            f"{day.day}: {_n_rows(day):,} records were counted and {rows_in:,} were reduced, of "
            f"{files}: the engines read them differently, reduce into another folder by one engine"
        )


def _written(
    engine: JobEngine, request: Request, found: Found, days: Sequence[Day]
) -> dict[str, tuple[list[str], Counter[str]]]:
    """Day -> its files, in their places, with rows_in, rows_out and superseded ones by reason."""
    run, out, number = secrets.token_hex(4), request.out, 0
    made: dict[str, tuple[list[str], Counter[str]]] = {day.day: ([], Counter()) for day in days}
    begins = [None if day.day == UNKNOWN else day.begin_us for day in days]
    shares = -(-sum(map(_n_rows, days)) // (request.most_rows or engine.most_rows))
    for share in range(shares):
        aside = out / f"{ASIDE}{secrets.token_hex(4)}"
        for day, of_day in engine.reduce(found, begins, (share, shares), aside).items():
            files, counts = made[day]
            counts.update(of_day.superseded, rows_in=of_day.rows_in, rows_out=of_day.rows_out)
            for path in of_day.files:
                name = f"{JOBS}/{DAY}{day}/{run}-{number}.parquet"
                (out / name).parent.mkdir(parents=True, exist_ok=True)
                sync(path)
                path.rename(out / name)
                files.append(name)
                number += 1
        shutil.rmtree(aside, ignore_errors=True)
    return made
