"""The what-if of traces in one process.

`python -m tests.benchmarks.what_if commands FOLDER NAME ...` runs `faultline stragglers` on each
public trace, `... alone FOLDER NAME ...` prints what the analysis alone costs, without the command.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analytics.training.stragglers.trace import TraceRows

ROUNDS = 15
SMALL, LARGE = (32, 8), (127, 16)
"""Workers that process the same data, and stages, of two generated traces."""


def commands(folder: Path, names: Sequence[str]) -> None:
    """`faultline stragglers` on each trace."""
    from app.cli import main

    for name in names:
        trace, meta = folder / f"trace-{name}.parquet", folder / f"meta-{name}.yaml"
        if code := main(["stragglers", str(trace), "--meta", str(meta), "--format", "json"]):
            sys.exit(code)


def alone(folder: Path, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Processor seconds from columns to results, and of the floor: of traces, and as one grows."""
    import pyarrow.parquet as pq

    from analytics.training.stragglers.slowdown import slowdowns
    from analytics.training.stragglers.step_model import StepModel
    from data.ingest.readers.training.straggler_rows import read_rows
    from tests.benchmarks.traces import generated

    def analyse(rows: TraceRows) -> object:
        return slowdowns(StepModel.of_rows(rows))

    found = {}
    for name in names:
        path = folder / f"trace-{name}.parquet"
        rows = read_rows(path, name)
        found[name] = (_median(partial(analyse, rows)), _median(partial(pq.read_table, path)))
    few, many = generated(*SMALL), generated(*LARGE)
    of_few, of_many = (_median(partial(analyse, rows), 5) for rows in (few, many))
    return found | {"generated": (of_many, of_few * len(many) / len(few))}


def _median(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    from tests.benchmarks.spent import spent

    return median(spent(work) for _ in range(rounds))


if __name__ == "__main__":
    _, what, place, *traces = sys.argv
    if what == "commands":
        commands(Path(place), traces)
    else:
        print("\n" + json.dumps(alone(Path(place), traces)))
