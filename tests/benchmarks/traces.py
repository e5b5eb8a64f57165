"""Traces that were never recorded.

`python -m tests.benchmarks.traces FILE DP STAGE` writes one of 2,032 workers, of which that is slow.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.training.stragglers.operations import optype_codes
from analytics.training.stragglers.trace import TraceRows
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns

DP, PP, MICRO_BATCHES, STEPS = 127, 16, 32, (1, 2, 3, 4, 5)


def write_trace(path: Path, slow: tuple[int, int]) -> None:
    """127 x 16 workers, 32 micro-batches, 5 steps: 1.93 million operations."""
    rng = np.random.default_rng(0)
    size = (len(STEPS), DP, PP, 1, MICRO_BATCHES)
    forward = rng.normal(0.1, 0.002, size)
    forward[:, slow[0], slow[1]] *= 1.5
    shape = TraceShape(dp=DP, pp=PP, micro_batches=MICRO_BATCHES, steps=STEPS, tp=8)
    columns = trace_columns(shape, TraceCosts(forward, rng.normal(0.2, 0.004, size)))
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    at = table.column_names.index("optype")
    pq.write_table(table.set_column(at, "optype", table.column("optype").dictionary_encode()), path)


def generated(dp: int, pp: int) -> TraceRows:
    """A trace of so many workers, as its reader hands it on."""
    rng = np.random.default_rng(0)
    shape = TraceShape(dp=dp, pp=pp, micro_batches=31, steps=tuple(range(5)))
    computes = (len(shape.steps), dp, pp, 1, shape.micro_batches)
    costs = TraceCosts(
        forward=0.1 * rng.normal(1, 0.03, computes), backward=0.2 * rng.normal(1, 0.03, computes)
    )
    columns: dict[str, Any] = trace_columns(shape, costs)
    names, place = np.unique(columns.pop("optype").astype(str), return_inverse=True)
    return TraceRows(**columns, optype=optype_codes(names.tolist())[place])


if __name__ == "__main__":
    _, name, *worker = sys.argv
    dp, stage = map(int, worker)
    write_trace(Path(name), (dp, stage))
