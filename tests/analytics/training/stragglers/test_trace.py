"""Rows of a trace: aligned where they can be, dropped by step or refused where not."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from analytics.errors import AnalysisError, OutOfRangeError, ShapeError
from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.slowdown import slowdowns
from analytics.training.stragglers.step_model import StepModel
from analytics.training.stragglers.trace import Trace, TraceRows


def without(rows: TraceRows, gone) -> TraceRows:
    return chosen(rows, ~gone)


def chosen(rows: TraceRows, at) -> TraceRows:
    return TraceRows(**{k: None if v is None else v[at] for k, v in vars(rows).items()})


def changed(rows: TraceRows, name: str, at, value) -> TraceRows:
    values = getattr(rows, name).copy()
    values[at] = value
    return replace(rows, **{name: values})


def first(rows: TraceRows, **wanted: int) -> int:
    found = np.ones(len(rows), dtype=bool)
    for name, value in wanted.items():
        found &= getattr(rows, name) == value
    return int(found.argmax())


def test_operations_stand_in_order_and_times_where_they_belong(rows_of):
    rows = rows_of(dp=3, pp=2, micro_batches=2, steps=(4, 7))
    trace = Trace.of_columns(rows)
    assert trace.steps.tolist() == [4, 7]
    assert (trace.n_dp, trace.n_stages, trace.n_chunks) == (3, 2, 1)
    ops = trace.operations
    for at in range(0, len(rows), 7):
        op = ops.of(int(rows.optype[at]), int(rows.stage[at])).start + int(rows.seq_id[at])
        place = (op, trace.steps.tolist().index(int(rows.step[at])), int(rows.dp_rank[at]))
        assert trace.duration[place] == rows.duration[at]
        assert ops.name(op).startswith(kind.OPTYPES[rows.optype[at]])
    assert trace.ranks.tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("reverse", [False, True], ids=["as_written", "reversed"])
def test_a_step_that_lacks_a_row_is_dropped_and_says_which(rows_of, reverse):
    rows = rows_of(dp=3, pp=2)
    at = first(rows, step=5, dp_rank=2, stage=1, optype=kind.FORWARD, seq_id=1)
    broken = without(rows, np.arange(len(rows)) == at)
    trace = Trace.of_columns(chosen(broken, np.s_[::-1]) if reverse else broken)
    assert trace.steps.tolist() == [3, 9]
    (dropped,) = trace.dropped_steps
    assert dropped.step == 5
    assert dropped.reason == "dp_rank 2 lacks forward-compute 1 of stage 1"
    whole = slowdowns(StepModel.of_rows(without(rows, rows.step == 5)))
    assert slowdowns(StepModel.of(trace)).slowdown == whole.slowdown


def test_a_worker_that_is_missing_in_one_step_drops_that_step(rows_of):
    rows = rows_of(dp=2, pp=2)
    gone = (rows.step == 3) & (rows.dp_rank == 0) & (rows.stage == 0)
    trace = Trace.of_columns(without(rows, gone))
    assert trace.steps.tolist() == [5, 9]
    assert "dp_rank 0 lacks backward-compute 0 of stage 0" in trace.dropped_steps[0].reason


@pytest.mark.parametrize("damage", ["none", "lacks a row", "has a row twice", "steps twice"])
def test_steps_in_one_order_of_rows_are_aligned_as_in_any_other(rows_of, damage):
    rows = rows_of(dp=3, pp=2)
    n_rows = len(rows) // 3
    at = np.arange(len(rows)).reshape(3, n_rows)
    if damage == "lacks a row":  # of one rank, in all steps
        at = at[:, np.arange(n_rows) != first(rows, dp_rank=1, optype=kind.FORWARD)]
    elif damage == "has a row twice":
        at = np.concatenate((at, at[:, 7:8]), axis=1)
    elif damage == "steps twice":
        at = np.concatenate((at, at))
    alike = chosen(rows, at.ravel())
    mixed = chosen(alike, np.random.default_rng(0).permutation(len(alike)))
    results = []
    for each in (alike, mixed):
        try:
            trace = Trace.of_columns(each)
            results.append((trace.start.tolist(), trace.duration.tolist(), trace.dropped_steps))
        except AnalysisError as error:
            results.append(re.sub(r"row \d+", "row", str(error)))
    assert results[0] == results[1]
    assert isinstance(results[0], str) == (damage != "none")


def test_a_step_with_an_operation_more_or_twice_is_dropped_with_its_row(rows_of):
    rows = rows_of(dp=2, pp=1, steps=(1, 2, 3, 4, 5))
    extra = first(rows, step=2, optype=kind.GC, dp_rank=1)
    twice = first(rows, step=4, optype=kind.CLIP, dp_rank=0)
    order = np.concatenate((np.arange(len(rows)), [extra, twice]))
    longer = chosen(rows, order)
    longer = changed(longer, "seq_id", len(rows), 1)
    trace = Trace.of_columns(longer)
    assert trace.steps.tolist() == [1, 3, 5]
    reasons = [dropped.reason for dropped in trace.dropped_steps]
    assert reasons == [
        f"dp_rank 1 holds gc 1 of stage 0 unlike most (row {len(rows)})",
        f"dp_rank 0 holds optimizer-clip-main-grad 0 of stage 0 more than once (row {len(rows) + 1})",
    ]


def test_a_step_whose_computes_run_in_another_order_is_dropped(rows_of):
    rows = rows_of(dp=2, pp=2, micro_batches=4, steps=(1, 2, 3))
    places = {"step": 1, "dp_rank": 1, "stage": 1}
    forward = first(rows, **places, optype=kind.FORWARD, seq_id=2)
    backward = first(rows, **places, optype=kind.BACKWARD, seq_id=1)
    start = rows.start_ts.copy()
    start[[forward, backward]] = start[[backward, forward]]
    trace = Trace.of_columns(replace(rows, start_ts=start))
    assert trace.steps.tolist() == [2, 3]
    assert "dp_rank 1 runs" in trace.dropped_steps[0].reason
    assert "before" in trace.dropped_steps[0].reason


def test_a_step_whose_chunks_come_in_another_order_is_dropped(rows_of):
    rows = rows_of(dp=2, pp=2, vpp=2, micro_batches=4)
    at = (rows.step == 9) & (rows.dp_rank == 1) & (rows.optype == kind.FORWARD) & (rows.seq_id == 1)
    trace = Trace.of_columns(changed(rows, "mc", at, 1 - rows.mc[at]))
    assert trace.steps.tolist() == [3, 5]
    assert "for another model chunk" in trace.dropped_steps[0].reason


def test_data_parallel_ranks_beyond_an_int8_are_analysed(rows_of):
    rows = rows_of(dp=130, pp=1, micro_batches=2, steps=(1,))
    trace = Trace.of_columns(replace(rows, dp_rank=rows.dp_rank.astype(np.uint8)))
    assert trace.n_dp == 130
    assert slowdowns(StepModel.of(trace)).by_dp.shape == (130,)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.uint64])
def test_any_width_of_whole_numbers_gives_the_same(rows_of, dtype):
    rows = rows_of(dp=2, pp=2)
    signed = np.int64 if dtype is np.uint64 else np.result_type(dtype, np.int8)
    narrow = {
        name: getattr(rows, name).astype(dtype) for name in ("dp_rank", "stage", "seq_id", "step")
    }
    narrow |= {name: getattr(rows, name).astype(signed) for name in ("mc", "gmc", "mb_id")}
    one, other = Trace.of_columns(rows), Trace.of_columns(replace(rows, **narrow))
    np.testing.assert_array_equal(one.start, other.start)
    assert one.steps.tolist() == other.steps.tolist()


def test_labels_chunks_of_the_model_and_micro_batches_may_be_unknown(rows_of):
    rows = rows_of(dp=2, pp=2)
    bare = replace(rows, rank=None, gmc=None, mb_id=None)
    trace = Trace.of_columns(bare)
    assert trace.ranks is None
    assert (trace.operations.micro_batch == -1).all()
    assert slowdowns(StepModel.of(trace)).slowdown == slowdowns(StepModel.of_rows(rows)).slowdown


def test_times_since_1970_and_from_any_origin_count_from_the_step(rows_of):
    rows = rows_of(dp=2, pp=2)
    trace = Trace.of_columns(rows)
    late = rows.start_ts.astype(np.float64) + 1.7e9 + 100.0 * rows.step
    epoch = Trace.of_columns(replace(rows, start_ts=late))
    np.testing.assert_allclose(epoch.start, trace.start, atol=1e-6)
    assert epoch.start.dtype == np.float64
    shifted = Trace.of_columns(replace(rows, start_ts=rows.start_ts + np.float32(2.0)))
    np.testing.assert_allclose(shifted.start, trace.start, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_seconds_since_1970_that_went_through_32_bits_are_refused(rows_of, dtype):
    rows = rows_of(dp=2, pp=2)
    late = (rows.start_ts + np.float64(1.7e9)).astype(np.float32).astype(dtype)
    with pytest.raises(AnalysisError, match="as a 32-bit number, which resolves 128 s"):
        Trace.of_columns(replace(rows, start_ts=late))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("dp_rank", -1, r"dp_rank of row 9 must be 0 or more, got -1"),
        ("stage", -1, r"stage of row 9 must be 0 or more, got -1"),
        ("seq_id", -4, r"seq_id of row 9 must be 0 or more, got -4"),
        ("optype", 14, r"optype of row 9 must be a code of OPTYPES, got 14"),
        ("duration", -0.5, r"duration of row 9 must be 0 seconds or more, got -0.5"),
        ("duration", np.nan, r"duration of row 9 must be finite seconds, got nan"),
        ("start_ts", np.inf, r"start_ts of row 9 must be finite seconds, got inf"),
    ],
)
def test_an_impossible_value_is_refused_by_its_row(rows_of, name, value, words):
    with pytest.raises(OutOfRangeError, match=words):
        Trace.of_columns(changed(rows_of(), name, 9, value))


def test_errors_name_the_rows_of_the_source(rows_of):
    rows = changed(rows_of(), "duration", 3, -1.0)
    with pytest.raises(OutOfRangeError, match="duration of row 1003 must"):
        Trace.of_columns(replace(rows, row=np.arange(1000, 1000 + len(rows))))


def test_a_compute_without_model_chunk_is_refused(rows_of):
    rows = rows_of()
    with pytest.raises(
        AnalysisError, match="must be the model chunk of its compute, from 0, got -1"
    ):
        Trace.of_columns(changed(rows, "mc", rows.optype == kind.FORWARD, -1))


def test_a_worker_missing_in_all_steps_is_refused(rows_of):
    rows = rows_of(dp=3, pp=2)
    gone = (rows.dp_rank == 1) & (rows.stage == 1)
    with pytest.raises(AnalysisError, match=r"no row of dp_rank 1, stage 1 in any step"):
        Trace.of_columns(without(rows, gone))


@pytest.mark.parametrize("name", ["dp_rank", "stage"])
def test_a_gap_in_the_numbers_of_ranks_or_stages_is_refused(rows_of, name):
    rows = rows_of(dp=3, pp=3)
    with pytest.raises(AnalysisError, match=f"{name} must be numbered from 0 to 2 .* no row of 1"):
        Trace.of_columns(without(rows, getattr(rows, name) == 1))
    far = changed(rows, name, getattr(rows, name) == 2, 30_000)
    with pytest.raises(
        AnalysisError, match=f"{name} must be numbered from 0 to 30000 .* no row of 2"
    ):
        Trace.of_columns(far)


def test_a_trace_in_which_no_step_is_whole_is_refused(rows_of):
    rows = rows_of(dp=2, pp=1)
    gone = (rows.optype == kind.FORWARD) & (rows.seq_id == rows.step % 3) & (rows.dp_rank == 0)
    assert gone.sum() == 3
    with pytest.raises(
        AnalysisError, match="no step of the trace is whole: in step 3 dp_rank 0 lacks"
    ):
        Trace.of_columns(without(rows, gone))


def test_an_empty_trace_and_columns_of_different_length_are_refused(rows_of):
    rows = rows_of()
    with pytest.raises(AnalysisError, match="holds no operation"):
        Trace.of_columns(chosen(rows, np.s_[:0]))
    with pytest.raises(ShapeError, match="differ in length"):
        Trace.of_columns(replace(rows, step=rows.step[:-1]))


def test_operations_numbered_through_all_steps_are_refused(rows_of):
    rows = rows_of(dp=2, pp=2, steps=tuple(range(300)))
    _, place = np.unique(rows.step, return_inverse=True)
    through = replace(rows, seq_id=rows.seq_id + 1000 * place)
    with pytest.raises(AnalysisError, match="number seq_id from 0 in every step"):
        Trace.of_columns(through)
    sparse = replace(rows, seq_id=rows.seq_id + 10_000_000 * place)
    with pytest.raises(AnalysisError, match="number seq_id from 0 in every step"):
        Trace.of_columns(sparse)


def test_an_unknown_operation_type_is_refused_with_the_known_ones():
    with pytest.raises(AnalysisError, match=r"optype must be one of .*, got 'warp'"):
        kind.optype_codes(["gc", "warp"])


@pytest.mark.parametrize("name", ["dp_rank", "stage", "seq_id", "mc", "gmc"])
def test_a_number_that_no_job_has_is_refused(rows_of, name):
    rows = rows_of()
    if rows.gmc is None:
        rows = replace(rows, gmc=rows.mc)
    columns = {name: getattr(rows, name).astype(np.int64)}
    with pytest.raises(AnalysisError, match=f"{name} of row 4 must be below"):
        Trace.of_columns(changed(replace(rows, **columns), name, 4, np.iinfo(np.int64).max))


@pytest.mark.parametrize(("name", "value"), [("start_ts", 1.7e12), ("duration", 1e30)])
def test_times_that_are_no_seconds_are_refused(rows_of, name, value):
    with pytest.raises(AnalysisError, match=f"{name} of row 4 must be seconds up to"):
        Trace.of_columns(changed(rows_of(), name, 4, value))


def test_chunks_are_numbered_without_gaps(rows_of):
    rows = rows_of()
    with pytest.raises(AnalysisError, match=r"mc of computes must be numbered from 0 to 1 .* of 0"):
        Trace.of_columns(changed(rows, "mc", np.isin(rows.optype, kind.COMPUTES), 1))


def test_the_chunk_of_what_has_none_does_not_matter(rows_of):
    rows = replace(rows_of(), mc=rows_of().mc.astype(np.int64))
    at = first(rows, step=3, optype=kind.BACKWARD_RECV)
    model = StepModel.of_rows(changed(rows, "mc", at, 1000))
    assert model.trace.n_chunks == 1
    assert slowdowns(model).slowdown == slowdowns(StepModel.of_rows(rows)).slowdown
