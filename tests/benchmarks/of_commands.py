"""Rows of commands that answer, beside the imports that each needs and the bytes that it reads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.benchmarks.made import snapshot
from tests.benchmarks.measured import ROOT, Measured, by_turns, faultline, python
from tests.benchmarks.row import Row, Section

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.benchmarks.made import Made

TRACES = ROOT.parent / "shared" / "data" / "straggler"
"""Public traces, which lie outside the project."""
ROUNDS = 7
MOST = 1.5
SNAPSHOT = "the imports it needs, and one count from the snapshot"
LOG = "RuntimeError: CUDA error: device-side assert triggered\nNCCL WARN Net: timeout\n"
FAILURES = "SELECT count(*) FROM failures"
ON_STORE = {
    "mttf": ("mttf",),
    "failures": ("failures",),
    "sql": ("sql", FAILURES),
}
ON_LARGE_STORE = ON_STORE | {"ledger": ("ledger",), "ettr": ("ettr",), "info": ("info",)}


def small(made: Made) -> list[Section]:
    """Commands on little, where what they import is most of it."""
    root, log = made.demo(), made.folder / "job.log"
    log.write_text(LOG, encoding="utf-8")
    rows = [
        _row(made, f"`faultline {name}` of the demo", (*command, "--store", root), "snapshot")
        for name, command in ON_STORE.items()
    ]
    rows.append(_row(made, "`faultline classify` of two lines", ("classify", log), "text", log))
    unmeasured = ""
    if TRACES.is_dir():
        trace = TRACES / "trace-AR.parquet"
        command = ("stragglers", trace, "--meta", TRACES / "meta-AR.yaml")
        what = "`faultline stragglers` of the public trace AR"
        rows.append(_row(made, what, command, "parquet", trace))
    else:
        unmeasured = "Not measured: `faultline stragglers`, as the public traces are not here."
    about = f"Whole processes, the median of {ROUNDS} runs."
    return [Section("Commands on small input", rows, about, unmeasured)]


def large(made: Made) -> list[Section]:
    """Further answers of a store with its ledger."""
    rows = []
    for name, command in ON_LARGE_STORE.items():
        of_small, of_large = (
            _beside_floor(made, (*command, "--store", root), "snapshot", snapshot(root), rounds=3)
            for root in map(made.with_ledger, made.sizes)
        )
        seconds = (of_small[0].seconds, of_large[0].seconds)
        floor = of_large[1].seconds
        rows.append(Row(f"`faultline {name}`", seconds, SNAPSHOT, floor, of_large[0].peak_gb))
    return [Section("Further answers of a store", rows)]


def report(made: Made) -> list[Section]:
    """A report of everything that the large store holds."""
    rows = []
    for forms in ("html", "html,pdf,xlsx,md,json"):
        costs = []
        for size in made.sizes:
            root = made.with_ledger(size)
            with made.anew("report") as folder:
                command = ("report", "--store", root, "--as", forms, "--out", folder)
                costs.append(_beside_floor(made, command, "imports", rounds=3))
        seconds = [work.seconds for work, _ in costs]
        floor = costs[-1][1].seconds
        what = f"`faultline report --as {forms}`"
        rows.append(Row(what, seconds, "the imports it needs", floor, costs[-1][0].peak_gb))
    return [Section("Report of all time", rows)]


FLOORS = {
    "snapshot": SNAPSHOT,
    "text": "the imports it needs, and the log's bytes",
    "parquet": "the imports it needs, and the file read by pyarrow",
}


def _row(
    made: Made, what: str, command: Sequence[str | Path], floor: str, reads: Path | None = None
) -> Row:
    of_command, of_floor = _beside_floor(made, command, floor, reads or snapshot(made.demo()))
    return Row(
        what,
        (of_command.seconds,),
        FLOORS[floor],
        of_floor.seconds,
        of_command.peak_gb,
        most_ratio=MOST,
    )


def _beside_floor(
    made: Made, command: Sequence[str | Path], floor: str, *reads: Path, rounds: int = ROUNDS
) -> tuple[Measured, Measured]:
    """A command, and a Python that imports the same modules of libraries and reads the same."""
    names = made.folder / "modules.txt"
    python("tests.benchmarks.loaded", names, *command)
    of_command, of_floor = by_turns(
        partial(faultline, *command),
        partial(python, "tests.benchmarks.floors", floor, names, *reads),
        rounds=rounds,
    )
    return of_command, of_floor
