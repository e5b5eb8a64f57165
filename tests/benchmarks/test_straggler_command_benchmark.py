"""`faultline stragglers` as a process: a public trace, and 2,032 workers."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns
from tests.benchmarks.spent import spent

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [pytest.mark.benchmark, pytest.mark.slow]

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "straggler"
SMALL_SECONDS = 1.2
LARGE_SECONDS = 1.6
LARGE_MEGABYTES = 600
RUNS = 7
COMMAND = """
import sys
from app.cli import main
code = main(sys.argv[1:])
print(open("/proc/self/status").read(), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """127 x 16 workers, 32 micro-batches, 5 steps: 1.93 million operations."""
    path = tmp_path_factory.mktemp("traces") / "w2032.parquet"
    shape = TraceShape(dp=127, pp=16, micro_batches=32, steps=(1, 2, 3, 4, 5), tp=8)
    rng = np.random.default_rng(0)
    size = (5, 127, 16, 1, 32)
    forward = rng.normal(0.1, 0.002, size)
    forward[:, 30, 7] *= 1.5
    columns = trace_columns(shape, TraceCosts(forward, rng.normal(0.2, 0.004, size)))
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    at = table.column_names.index("optype")
    pq.write_table(table.set_column(at, "optype", table.column("optype").dictionary_encode()), path)
    return path


def measured(arguments: Sequence[str]) -> tuple[float, float, str]:
    """Processor seconds and peak memory (MB) of the whole process, and what it printed."""
    command = [sys.executable, "-c", COMMAND, "stragglers", *arguments, "--format", "json"]
    done: list[subprocess.CompletedProcess[str]] = []
    seconds = spent(
        lambda: done.append(subprocess.run(command, capture_output=True, text=True, check=True))
    )
    peak = next(line for line in done[0].stderr.splitlines() if line.startswith("VmHWM"))
    return seconds, int(peak.split()[1]) / 1024, done[0].stdout


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"real traces are not at {SHARED}")
def test_a_public_trace_takes_little_more_than_its_imports() -> None:
    arguments = [str(SHARED / "trace-AR.parquet"), "--meta", str(SHARED / "meta-AR.yaml")]
    seconds = statistics.median(measured(arguments)[0] for _ in range(RUNS))
    print(f"AR: {seconds:.3f} s")
    assert seconds <= SMALL_SECONDS


def test_two_thousand_workers_take_less_than_two_processor_seconds(large: Path) -> None:
    runs = [measured([str(large)]) for _ in range(RUNS)]
    seconds = statistics.median(run[0] for run in runs)
    megabytes = max(run[1] for run in runs)
    found = json.loads(runs[0][2])
    print(f"2,032 workers: {seconds:.3f} s, {megabytes:.0f} MB, of it {found['seconds']} s work")
    exact = np.array(found["S_w_exact"])
    assert np.unravel_index(exact.argmax(), exact.shape) == (30, 7)
    assert seconds <= LARGE_SECONDS
    assert megabytes <= LARGE_MEGABYTES
