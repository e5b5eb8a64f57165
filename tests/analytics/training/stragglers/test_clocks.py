"""A clock that is off is found by transfers that end together, set right and told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from analytics.errors import AnalysisError
from analytics.training.stragglers.analysis import (
    analyse_trace,
    analysis_of_record,
    analysis_record,
)
from analytics.training.stragglers.clocks import ClockOffset, synchronised
from analytics.training.stragglers.graph import graph_of
from analytics.training.stragglers.step_model import StepModel
from analytics.training.stragglers.trace import Trace
from data.synthetic.trace_schedule import TraceCosts

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.training.stragglers.trace import TraceRows

STEPS = tuple(range(6))
HEALTHY = TraceCosts(forward=0.02, backward=0.04)


def ahead(rows: TraceRows, dp: int, stage: int, seconds: object) -> TraceRows:
    """The rows with the clock of one worker ahead by so much (a number, or one a row)."""
    of_worker = (rows.dp_rank == dp) & (rows.stage == stage)
    shifted = rows.start_ts + np.where(of_worker, seconds, 0.0)
    return replace(rows, start_ts=shifted.astype(rows.start_ts.dtype))


def found(rows: TraceRows) -> dict[tuple[int, int], float]:
    """Offsets in ms by worker."""
    trace = Trace.of_columns(rows)
    _, offsets = synchronised(trace, graph_of(trace))
    return {(one.dp_rank, one.stage): one.offset_ms for one in offsets}


@pytest.mark.parametrize(
    ("dp", "pp"), [(4, 4), (4, 1), (3, 2), (1, 4)], ids=["4x4", "4x1", "3x2", "1x4"]
)
@pytest.mark.parametrize("offset_ms", [12.0, -7.0], ids=["ahead", "behind"])
def test_one_clock_that_is_off_is_found_wherever_it_stands(
    rows_of: Callable[..., TraceRows], dp: int, pp: int, offset_ms: float
) -> None:
    rows = rows_of(HEALTHY, dp=dp, pp=pp, micro_batches=6, steps=STEPS)
    worker = (dp - 1, 0)
    assert found(rows) == {}
    assert found(ahead(rows, *worker, offset_ms / 1e3)) == {worker: pytest.approx(offset_ms)}


def test_a_clock_set_right_gives_the_slowdown_and_causes_of_true_times(
    rows_of: Callable[..., TraceRows],
) -> None:
    rows = rows_of(HEALTHY, dp=4, pp=4, micro_batches=6, steps=STEPS)
    off = ahead(ahead(rows, 1, 1, 0.012), 2, 3, -0.005)
    true, mended = (analyse_trace(StepModel.of_rows(each)) for each in (rows, off))
    assert mended.slowdowns.slowdown == pytest.approx(true.slowdowns.slowdown, abs=1e-6)
    assert mended.slowdowns.launch_slowdown == pytest.approx(true.slowdowns.launch_slowdown)
    assert [cause.cause for cause in mended.causes] == ["none"]
    record = analysis_record(mended)
    assert record["clock_offsets_ms"] == [
        {"dp_rank": 1, "stage": 1, "rank": 5, "offset_ms": pytest.approx(12.0), "drift_ms": 0.0},
        {"dp_rank": 2, "stage": 3, "rank": 14, "offset_ms": pytest.approx(-5.0), "drift_ms": 0.0},
    ]
    assert analysis_of_record(record).clock_offsets == mended.clock_offsets


def test_a_node_of_two_stages_whose_clock_is_off_is_found_as_both(
    rows_of: Callable[..., TraceRows],
) -> None:
    rows = rows_of(HEALTHY, dp=3, pp=4, micro_batches=6, steps=STEPS)
    off = ahead(ahead(rows, 2, 0, 0.02), 2, 1, 0.02)
    assert found(off) == {(2, 0): pytest.approx(20.0), (2, 1): pytest.approx(20.0)}


def test_a_clock_that_drifts_is_set_right_at_every_step(rows_of: Callable[..., TraceRows]) -> None:
    rows = rows_of(HEALTHY, dp=4, pp=2, micro_batches=6, steps=(1, 2, 4, 7, 8, 11))
    true, drifting = (
        StepModel.of_rows(each) for each in (rows, ahead(rows, 1, 1, 0.004 + 0.002 * rows.step))
    )
    (offset,) = drifting.clock_offsets
    assert (offset.dp_rank, offset.stage, offset.drift_ms) == (1, 1, pytest.approx(20.0))
    assert analyse_trace(drifting).slowdowns.slowdown == pytest.approx(
        analyse_trace(true).slowdowns.slowdown, abs=1e-6
    )
    assert np.abs(drifting.trace.start - true.trace.start).max() < 1e-6


def test_times_of_a_trace_whose_clocks_agree_are_left_as_they_are(
    trace_of: Callable[..., Trace],
) -> None:
    trace = trace_of(HEALTHY, dp=3, pp=2)
    same, offsets = synchronised(trace, graph_of(trace))
    assert same is trace
    assert offsets == ()


@pytest.mark.parametrize("name", ["AR", "SE", "ST"])
def test_no_clock_of_a_public_trace_is_touched_and_one_put_off_is_found(
    public_rows: Callable[[str], TraceRows], name: str
) -> None:
    rows = public_rows(name)
    assert found(rows) == {}
    assert found(ahead(rows, 1, 1, 0.012)) == {(1, 1): pytest.approx(12.0, abs=0.3)}


@pytest.mark.parametrize("optype", ["grads-reduce-scatter", "forward-recv"])
def test_a_slow_link_is_no_clock(rows_of: Callable[..., TraceRows], optype: str) -> None:
    from analytics.training.stragglers.operations import optype_codes

    rows = rows_of(HEALTHY, dp=4, pp=2, micro_batches=6, steps=STEPS)
    (code,) = optype_codes([optype])
    slow = (rows.dp_rank == 1) & (rows.stage == 1) & (rows.optype == code)
    assert found(replace(rows, duration=rows.duration + np.where(slow, 0.012, 0.0))) == {}


def test_a_worker_whose_transfers_take_longer_both_ways_is_no_clock(
    rows_of: Callable[..., TraceRows],
) -> None:
    slow = np.full((len(STEPS), 1, 4), 0.004)
    slow[:, 0, 2] = 0.009
    costs = replace(HEALTHY, forward_p2p=slow, backward_p2p=slow)
    assert found(rows_of(costs, dp=1, pp=4, micro_batches=6, steps=STEPS)) == {}


def test_clocks_that_no_offset_mends_are_refused(rows_of: Callable[..., TraceRows]) -> None:
    rows = rows_of(HEALTHY, dp=1, pp=2, micro_batches=6, steps=STEPS)
    jumps = np.where(rows.step % 2 == 0, -0.5, 0.45)
    with pytest.raises(AnalysisError, match=r"cannot be set right: .* before its send begins"):
        StepModel.of_rows(ahead(rows, 0, 1, jumps))


def test_an_offset_names_its_worker() -> None:
    assert vars(ClockOffset(1, 2, None, 3.5)) == {
        "dp_rank": 1, "stage": 2, "rank": None, "offset_ms": 3.5, "drift_ms": 0.0,
    }  # fmt: skip
