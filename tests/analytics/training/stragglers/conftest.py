"""Traces whose truth is known, and the three public ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analytics.training.stragglers.operations import optype_codes
from analytics.training.stragglers.trace import Trace, TraceRows
from data.ingest.readers.training.straggler_rows import read_rows
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns

if TYPE_CHECKING:
    from collections.abc import Callable

PUBLIC = Path(__file__).resolve().parents[5] / "shared" / "data" / "straggler"
DSP_SIZES = {"AR": 1, "SE": 2, "ST": 1}


@pytest.fixture(scope="session")
def rows_of() -> Callable[..., TraceRows]:
    """Rows of a generated trace: sizes as of TraceShape, costs as of TraceCosts."""

    def make(costs: TraceCosts | None = None, /, **sizes: Any) -> TraceRows:
        shape = TraceShape(**({"dp": 2, "pp": 2, "micro_batches": 4, "steps": (3, 5, 9)} | sizes))
        columns = trace_columns(shape, costs or TraceCosts(forward=0.1, backward=0.2))
        names, place = np.unique(columns.pop("optype").astype(str), return_inverse=True)
        return TraceRows(**columns, optype=optype_codes(names.tolist())[place])

    return make


@pytest.fixture(scope="session")
def trace_of(rows_of: Callable[..., TraceRows]) -> Callable[..., Trace]:
    """A generated trace, aligned."""

    def make(costs: TraceCosts | None = None, /, **sizes: Any) -> Trace:
        return Trace.of_columns(rows_of(costs, **sizes), dsp_size=sizes.get("dsp", 1))

    return make


@pytest.fixture(scope="session")
def public_rows() -> Callable[[str], TraceRows]:
    """Rows of a public trace; the test is skipped where they are absent."""

    def read(name: str) -> TraceRows:
        path = PUBLIC / f"trace-{name}.parquet"
        if not path.exists():
            pytest.skip(f"{path} is absent: the public traces lie outside the project")
        return read_rows(path, path.name)

    return read


@pytest.fixture(scope="session")
def public_trace(public_rows: Callable[[str], TraceRows]) -> Callable[[str], Trace]:
    """A public trace, aligned."""
    return lambda name: Trace.of_columns(public_rows(name), dsp_size=DSP_SIZES[name])


@pytest.fixture(scope="session")
def public_results() -> dict[str, Any]:
    """Numbers that the artifact of arXiv 2505.05713 gives for the public traces."""
    path = PUBLIC / "expected.json"
    if not path.exists():
        pytest.skip(f"{path} is absent: the public results lie outside the project")
    return json.loads(path.read_text(encoding="utf-8"))
