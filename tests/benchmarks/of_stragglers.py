"""Rows of the what-if of stragglers, beside the public artifact of the method."""

from __future__ import annotations

import json
import sys
from functools import partial, reduce
from typing import TYPE_CHECKING

from tests.benchmarks.measured import FailedError, Measured, by_turns, faultline, python, run
from tests.benchmarks.of_commands import TRACES
from tests.benchmarks.row import Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    from tests.benchmarks.made import Made

NAMES = ("AR", "SE", "ST")
ARTIFACT = TRACES / "artifact"
WHAT_IF = "tests.benchmarks.what_if"
SLOW = (30, 7)
"""The worker of the large trace whose forward passes take half as long again."""
MOST_OF_ARTIFACT = 1 / 8
MOST_GROWTH = 1.1
MOST_GB = 0.6


def stragglers(made: Made) -> list[Section]:
    """Public traces where they are, and 2,032 workers."""
    names = NAMES if TRACES.is_dir() else ()
    alone = json.loads(python(WHAT_IF, "alone", TRACES, *names).printed.splitlines()[-1])
    rows = [_large(made)]
    rows += [
        Row(
            f"the analysis of {name} alone", (alone[name][0],), "pyarrow reading it", alone[name][1]
        )
        for name in names
    ]
    rows.append(
        Row(
            "the analysis of 2,032 workers alone",
            (alone["generated"][0],),
            "that of 256 workers, times as many operations",
            alone["generated"][1],
            most_ratio=MOST_GROWTH,
        )
    )
    interpreter = _environment(made.folder / "artifact") if ARTIFACT.is_dir() else None
    if interpreter is not None:
        return [Section("Stragglers", [_beside_artifact(made, interpreter), *rows])]
    why = "no environment can be made for it" if ARTIFACT.is_dir() else "it is not here"
    return [Section("Stragglers", rows, unmeasured=f"Not measured: the public artifact, as {why}.")]


def _large(made: Made) -> Row:
    path = made.folder / "workers.parquet"
    names = made.folder / "modules.txt"
    names.write_text("")
    python("tests.benchmarks.traces", path, *SLOW)
    of_command, floor = by_turns(
        partial(faultline, "stragglers", path, "--format", "json"),
        partial(python, "tests.benchmarks.floors", "parquet", names, path),
    )
    exact = json.loads(of_command.printed)["S_w_exact"]
    slowest = max((value, place) for place, value in _placed(exact))
    if slowest[1] != SLOW:
        raise FailedError(f"the slowest worker is {SLOW}, not {slowest[1]}")
    what = "`faultline stragglers` of 2,032 workers, 1.9 million operations"
    reading = "Python reads the file with pyarrow"
    return Row(
        what, (of_command.seconds,), reading, floor.seconds, of_command.peak_gb, most_gb=MOST_GB
    )


def _placed(rows: list[list[float]]) -> list[tuple[tuple[int, int], float]]:
    return [((i, j), value) for i, row in enumerate(rows) for j, value in enumerate(row)]


def _beside_artifact(made: Made, interpreter: Path) -> Row:
    """All three traces in one process, and the nine runs that the artifact needs for them."""
    ours, theirs = by_turns(
        partial(python, WHAT_IF, "commands", TRACES, *NAMES),
        partial(_nine_runs, made, interpreter),
    )
    return Row(
        f"`faultline stragglers` of {', '.join(NAMES[:-1])} and {NAMES[-1]} in one process",
        (ours.seconds,),
        "the nine runs of the public artifact for the same",
        theirs.seconds,
        ours.peak_gb,
        most_ratio=MOST_OF_ARTIFACT,
    )


def _environment(folder: Path) -> Path | None:
    """A Python with the libraries that the artifact needs; None where they cannot be had."""
    interpreter, needed = folder / "bin" / "python", ARTIFACT / "requirements.txt"
    try:
        run([sys.executable, "-m", "venv", folder])
        run([interpreter, "-m", "pip", "install", "-qq", "-r", needed, "pandas<3"])
    except FailedError as error:
        print(error, file=sys.stderr)
        return None
    return interpreter


def _nine_runs(made: Made, interpreter: Path) -> Measured:
    environment = {
        "PYTHONPATH": str(ARTIFACT),
        "PYTHONPYCACHEPREFIX": str(made.folder / "artifact-compiled"),
    }
    with made.anew("results") as out:
        out.mkdir()
        places: list[str | Path] = ["--dump-dir", out, "--root", out]
        runs: list[tuple[str, list[str | Path]]] = []
        for name in NAMES:
            trace, meta = TRACES / f"trace-{name}.parquet", TRACES / f"meta-{name}.yaml"
            result: list[str | Path] = ["--trial", name, "--analysis-result", out / f"{name}.json"]
            runs += [
                ("wia", ["--metadata", meta, "--trace", trace]),
                ("compute_ms", result),
                ("compute_mw", result),
            ]
        measured = [
            run(
                [interpreter, ARTIFACT / "analyzer" / f"{program}.py", *arguments, *places],
                cwd=out,
                environment=environment,
            )
            for program, arguments in runs
        ]
    return reduce(Measured.then, measured)
