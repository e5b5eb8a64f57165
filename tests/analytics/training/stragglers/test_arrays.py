"""Medians are NumPy's to the last digit, without what NumPy imports for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from analytics.training.stragglers.operations import low_median, median, optype_codes
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns

ANALYSED = """
import sys
import numpy as np
from analytics.training.stragglers.analysis import analyse_trace
from analytics.training.stragglers.trace import TraceRows
from analytics.training.stragglers.step_model import StepModel

analysis = analyse_trace(StepModel.of_rows(TraceRows(**np.load(sys.argv[1]))))
print(*sorted(cause.cause for cause in analysis.causes), "numpy.ma" in sys.modules)
"""
TIMES = st.sampled_from([np.float32, np.float64]).flatmap(
    lambda dtype: npst.arrays(
        dtype, npst.array_shapes(max_dims=3, max_side=7), elements={"allow_infinity": False}
    )
)


@given(TIMES)
def test_a_median_is_the_one_of_numpy_to_the_last_digit(values: NDArray[Any]) -> None:
    with np.errstate(over="ignore"):
        for axis in (None, *range(values.ndim)):
            found = median(values, axis)
            np.testing.assert_array_equal(found, np.median(values, axis=axis))
            assert found.dtype == values.dtype


def test_of_two_the_lower_median_is_the_lower() -> None:
    assert low_median(np.array([[3.0, 1.0], [5.0, 2.0]]), 1).tolist() == [1.0, 2.0]
    assert low_median(np.array([[3.0, 1.0], [5.0, 2.0]]), (0, 1)) == 2.0


def test_a_what_if_with_its_causes_imports_no_masked_arrays(tmp_path: Path) -> None:
    shape = TraceShape(dp=4, pp=2, micro_batches=8, steps=(1, 2, 3, 4, 5, 6))
    forward = np.random.default_rng(0).normal(0.1, 0.001, (6, 4, 2, 1, 8))
    forward[:, 1, 1] *= 2
    forward[::2, 0, 0, 0, 0] += 1
    columns = trace_columns(shape, TraceCosts(forward, np.full_like(forward, 0.2)))
    codes = optype_codes([str(name) for name in columns.pop("optype")])
    np.savez(tmp_path / "rows.npz", optype=codes, **columns)
    done = subprocess.run(
        [sys.executable, "-c", ANALYSED, str(tmp_path / "rows.npz")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "pause worker False\n"
