"""The what-if alone, from columns to results: processor time on public traces and 2,032 workers."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analytics.training.stragglers.operations import optype_codes
from analytics.training.stragglers.slowdown import slowdowns
from analytics.training.stragglers.step_model import StepModel
from analytics.training.stragglers.trace import TraceRows
from data.ingest.readers.training.straggler_rows import read_rows
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns
from tests.benchmarks.spent import spent

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.benchmark, pytest.mark.slow]

PUBLIC = Path(__file__).resolve().parents[3] / "shared" / "data" / "straggler"
ROUNDS = 15
LARGE_SECONDS = 0.4


def median_seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Processor seconds of the middle round."""
    return statistics.median(spent(work) for _ in range(rounds))


@pytest.mark.parametrize(("name", "most_ms"), [("AR", 25), ("SE", 12), ("ST", 6)])
def test_a_public_trace_is_analysed_in_time(name: str, most_ms: float) -> None:
    path = PUBLIC / f"trace-{name}.parquet"
    if not path.exists():
        pytest.skip(f"{path} is absent: the public traces lie outside the project")
    rows = read_rows(path, name)
    milliseconds = 1000 * median_seconds(lambda: slowdowns(StepModel.of_rows(rows)))
    print(f"\n{name}: {milliseconds:.1f} ms")
    assert milliseconds <= most_ms


def test_time_grows_no_faster_than_rows_up_to_two_thousand_workers() -> None:
    small, large = generated(32, 8), generated(127, 16)
    seconds = [median_seconds(lambda rows=rows: slowdowns(StepModel.of_rows(rows)), 5) for rows in (small, large)]  # fmt: skip
    print(f"\n{len(small):,} rows: {seconds[0]:.3f} s; {len(large):,} rows: {seconds[1]:.3f} s")
    assert seconds[1] <= LARGE_SECONDS
    assert seconds[1] / seconds[0] <= 1.1 * len(large) / len(small)


def generated(dp: int, pp: int) -> TraceRows:
    rng = np.random.default_rng(0)
    shape = TraceShape(dp=dp, pp=pp, micro_batches=31, steps=tuple(range(5)))
    computes = (len(shape.steps), dp, pp, 1, shape.micro_batches)
    costs = TraceCosts(
        forward=0.1 * rng.normal(1, 0.03, computes), backward=0.2 * rng.normal(1, 0.03, computes)
    )
    columns = trace_columns(shape, costs)
    names, place = np.unique(columns.pop("optype").astype(str), return_inverse=True)
    return TraceRows(**columns, optype=optype_codes(names.tolist())[place])
