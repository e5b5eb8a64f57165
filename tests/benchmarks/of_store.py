"""Rows of what is done to a large store: ingest, first answers, ledger, an hour more, verdicts."""

from __future__ import annotations

import json
from functools import partial
from math import isclose
from typing import TYPE_CHECKING, Any

from tests.benchmarks.made import snapshot
from tests.benchmarks.measured import (
    ROUNDS,
    FailedError,
    Measured,
    by_turns,
    faultline,
    python,
)
from tests.benchmarks.row import Row, Section, jobs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.benchmarks.made import Made

FLOORS = "tests.benchmarks.floors"
TYPED = "DuckDB's typed `read_csv` of the file into one table"
HOUR = 100
JOBS_AN_EVENT = 8
SCRIPTS = {
    "a pandas script": "tests.benchmarks.sums_pandas",
    "a polars script": "tests.benchmarks.sums_polars",
    "plain DuckDB": "tests.benchmarks.sums_duckdb",
}
MTTF = ("mttf", "--format", "json", "--min-gpus", "0")


def ingest(made: Made) -> list[Section]:
    """Accounting into a new store."""
    small, large = made.sizes
    (of_small,) = by_turns(partial(_ingest, made, small))
    of_large, floor = by_turns(partial(_ingest, made, large), partial(_typed_read, made, large))
    row = Row(
        "`faultline ingest sacct` into a new store",
        (of_small.seconds, of_large.seconds),
        TYPED,
        floor.seconds,
        of_large.peak_gb,
        most_ratio=2.8,
        most_gb=3.0,
    )
    return [Section("Ingest", [row])]


def answers(made: Made) -> list[Section]:
    """The same sums from the same file, by Faultline and by what a user would write instead."""
    small, large = made.sizes
    works = _of_sums(made, small)
    of_small = dict(zip(works, by_turns(*works.values()), strict=True))
    works = _of_sums(made, large) | {TYPED: partial(_typed_read, made, large)}
    of_large = dict(zip(works, by_turns(*works.values()), strict=True))
    floor = of_large.pop(TYPED)
    for found in (of_small, of_large):
        expected = found["plain DuckDB"].printed
        for name, each in found.items():
            agree(name, each.printed, expected)
    rows = [
        Row(name, (of_small[name].seconds, each.seconds), TYPED, floor.seconds, each.peak_gb)
        for name, each in of_large.items()
    ]
    about = (
        "How many attempts lost a node, and node-days of exposure, the same to nine digits in each "
        "row. A script has only the file: its next answer costs the same again."
    )
    return [Section("Answers beside a script", rows, about)]


def agree(name: str, printed: str, expected: str) -> None:
    """The sums that were printed are those expected.

    Raises
    ------
    FailedError
        Where they are not.
    """
    found, wanted = json.loads(printed), json.loads(expected)
    days = "exposure_node_days"
    same = (found["failures"] or 0) == wanted["failures"]  # none seen cannot be judged: null
    if not same or not isclose(found[days], wanted[days], rel_tol=1e-9):
        shown = {key: found[key] for key in wanted}
        raise FailedError(f"{name} found {shown}, not {wanted}")


def ledger(made: Made) -> list[Section]:
    """Every GPU-hour of a store that has no ledger yet."""
    small, large = made.sizes
    (of_small,) = by_turns(partial(_ledger, made, small))
    of_large, floor = by_turns(partial(_ledger, made, large), partial(_typed_read, made, large))
    row = Row(
        "`faultline ledger` where none is built",
        (of_small.seconds, of_large.seconds),
        TYPED,
        floor.seconds,
        of_large.peak_gb,
    )
    return [Section("GPU-hour ledger", [row])]


def hourly(made: Made) -> list[Section]:
    """An hour's jobs into a store that has all others."""
    small, large = made.sizes
    (of_small,) = by_turns(partial(_publish, made, small))
    of_large, floor = by_turns(partial(_publish, made, large), partial(_insert, made, large))
    row = Row(
        f"`faultline ingest sacct` of {HOUR} further jobs",
        (of_small.seconds, of_large.seconds),
        "Python imports DuckDB, copies the snapshot and reads the typed rows into a table of it",
        floor.seconds,
        of_large.peak_gb,
    )
    return [Section("The hourly publish", [row])]


def attribution(made: Made) -> list[Section]:
    """Why all failures happened, and what belongs together."""
    costs = []
    for size in made.sizes:
        with made.copied(made.store(size)) as root:
            program = "tests.benchmarks.attribution"
            costs.append(python(program, root, size // JOBS_AN_EVENT, ROUNDS))
    small, large = (_last_line(each) for each in costs)
    join = "its own bare join of node ends and events by buckets of time"
    peak = costs[-1].peak_gb
    verdicts = Row(
        "verdicts of all failures",
        (small["verdicts"], large["verdicts"]),
        join,
        large["join"],
        peak,
        most_ratio=5.0,
        most_gb=3.0,
    )
    incidents = Row(
        "incidents of them", (small["incidents"], large["incidents"]), join, large["join"], peak
    )
    events = jobs(made.sizes[-1] // JOBS_AN_EVENT)
    about = f"With an event for each {JOBS_AN_EVENT} jobs, {events} of the larger store."
    return [Section("Attribution", [verdicts, incidents], about)]


def _typed_read(made: Made, size: int) -> Measured:
    with made.anew("bare") as folder:
        folder.mkdir()
        return python(FLOORS, "typed_read", made.sacct(size), folder / "bare.duckdb")


def _ingest(made: Made, size: int) -> Measured:
    path = made.sacct(size)
    with made.anew("new") as root:
        return faultline("ingest", "sacct", path, "--store", root)


def _of_sums(made: Made, size: int) -> dict[str, Callable[[], Measured]]:
    path, root = made.sacct(size), made.store(size)
    works: dict[str, Callable[[], Measured]] = {
        "first answer: `faultline ingest sacct`, then `faultline mttf`": partial(
            _first, made, path
        ),
        "next answer: `faultline mttf` of the store": partial(faultline, *MTTF, "--store", root),
    }
    return works | {name: partial(python, module, path) for name, module in SCRIPTS.items()}


def _first(made: Made, path: Path) -> Measured:
    with made.anew("new") as root:
        ingested = faultline("ingest", "sacct", path, "--store", root)
        return ingested.then(faultline(*MTTF, "--store", root))


def _ledger(made: Made, size: int) -> Measured:
    with made.copied(made.store(size)) as root:
        return faultline("ledger", "--store", root)


def _publish(made: Made, size: int) -> Measured:
    hour = made.sacct(HOUR, first=size)
    with made.copied(made.store(size)) as root:
        return faultline("ingest", "sacct", hour, "--store", root)


def _insert(made: Made, size: int) -> Measured:
    hour, copy = made.sacct(HOUR, first=size), made.folder / "copy.duckdb"
    try:
        return python(FLOORS, "copy_and_insert", hour, snapshot(made.store(size)), copy)
    finally:
        copy.unlink(missing_ok=True)


def _last_line(measured: Measured) -> dict[str, Any]:
    """What a program of ours printed, after DuckDB's progress."""
    found: dict[str, Any] = json.loads(measured.printed.splitlines()[-1])
    return found
