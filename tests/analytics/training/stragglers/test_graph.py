"""What waits for what in a step, and traces that make no step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analytics.errors import AnalysisError
from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.graph import graph_of
from analytics.training.stragglers.slowdown import slowdowns
from analytics.training.stragglers.step_model import StepModel
from analytics.training.stragglers.trace import Trace, TraceRows


def without(rows: TraceRows, gone) -> TraceRows:
    kept = {k: None if v is None else v[~gone] for k, v in vars(rows).items()}
    return TraceRows(**kept)


def op(trace: Trace, optype: int, stage: int, seq: int = 0) -> int:
    return trace.operations.of(optype, stage).start + seq


def test_a_receive_is_posted_when_the_compute_before_has_ended(trace_of):
    trace = trace_of(dp=2, pp=2, micro_batches=4)
    preds = graph_of(trace).preds
    receive = op(trace, kind.FORWARD_RECV, 1, 2)
    assert op(trace, kind.FORWARD, 1, 1) in preds[receive]
    assert receive in preds[op(trace, kind.FORWARD, 1, 2)]
    assert preds[op(trace, kind.FORWARD_SEND, 0, 2)] == (
        op(trace, kind.FORWARD_SEND, 0, 1),
        op(trace, kind.FORWARD, 0, 2),
    )


def test_sends_start_with_the_receive_of_the_next_stage(trace_of):
    trace = trace_of(dp=2, pp=3, micro_batches=4)
    graph = graph_of(trace)
    pair = graph.nodes[graph.node_of[op(trace, kind.FORWARD_SEND, 1, 3)]]
    assert set(pair.members) == {
        op(trace, kind.FORWARD_SEND, 1, 3),
        op(trace, kind.FORWARD_RECV, 2, 3),
    }
    assert not pair.shared
    back = graph.nodes[graph.node_of[op(trace, kind.BACKWARD_SEND, 1, 0)]]
    assert op(trace, kind.BACKWARD_RECV, 0, 0) in back.members


def test_all_ranks_share_gradients_and_all_stages_the_clipping(trace_of):
    trace = trace_of(dp=2, pp=3)
    graph = graph_of(trace)
    scatter = graph.nodes[graph.node_of[op(trace, kind.REDUCE_SCATTER, 1)]]
    assert scatter == ((op(trace, kind.REDUCE_SCATTER, 1),), True)
    clip = graph.nodes[graph.node_of[op(trace, kind.CLIP, 0)]]
    assert set(clip.members) == {op(trace, kind.CLIP, stage) for stage in range(3)}
    assert clip.shared
    embedding = graph.nodes[graph.node_of[op(trace, kind.EMBEDDING, 0)]]
    assert set(embedding.members) == {op(trace, kind.EMBEDDING, stage) for stage in (0, 2)}
    assert not embedding.shared


def test_gradients_are_reduced_after_the_embedding_or_while_backward_runs(trace_of):
    plain = trace_of(dp=2, pp=2)
    assert op(plain, kind.EMBEDDING, 0) in graph_of(plain).preds[op(plain, kind.REDUCE_SCATTER, 0)]
    trace = trace_of(dp=2, pp=2, overlapped=True)
    preds = graph_of(trace).preds
    last = op(
        trace,
        kind.BACKWARD,
        0,
        len(trace.operations.of(kind.BACKWARD, 0)) - 1,
    )
    assert last in preds[op(trace, kind.REDUCE_SCATTER, 0)]
    assert op(trace, kind.REDUCE_SCATTER, 0) in preds[op(trace, kind.LAYERNORM, 0)]
    assert preds[op(trace, kind.CLIP, 0)] == (op(trace, kind.SEPARATE, 0),)


def test_parameters_come_before_the_first_forward_of_their_chunk(trace_of):
    trace = trace_of(dp=2, pp=2, vpp=2, micro_batches=4)
    preds, ops = graph_of(trace).preds, trace.operations
    for gather in ops.of(kind.ALL_GATHER, 1):
        after = [
            at
            for at, before in enumerate(preds)
            if gather in before and ops.optype[at] == kind.FORWARD
        ]
        assert [int(ops.chunk[at]) for at in after] == [int(ops.chunk[gather])]


def test_a_single_rank_neither_gathers_nor_reduces(trace_of):
    trace = trace_of(dp=1, pp=2)
    assert not trace.shares_gradients
    preds = graph_of(trace).preds
    assert preds[op(trace, kind.CLIP, 0)] == (op(trace, kind.EMBEDDING, 0),)


def test_transfers_at_the_ends_of_the_model_have_no_peer(trace_of):
    trace = trace_of(dp=1, pp=2, vpp=2, micro_batches=4)
    graph = graph_of(trace)
    alone = [
        at
        for at, optype in enumerate(trace.operations.optype)
        if optype in kind.P2P and len(graph.nodes[graph.node_of[at]].members) == 1
    ]
    for at in alone:
        stage, chunk = int(trace.operations.stage[at]), int(trace.operations.optype[at])
        edge = stage == 0 if chunk in (kind.FORWARD_RECV, kind.BACKWARD_SEND) else stage == 1
        assert edge


@pytest.mark.parametrize("pp", [1, 4])
def test_six_hundred_micro_batches_are_analysed(trace_of, pp):
    trace = trace_of(dp=2, pp=pp, micro_batches=600, steps=(1,))
    assert slowdowns(StepModel.of(trace)).slowdown == pytest.approx(1.0, abs=1e-4)


def test_nodes_come_before_those_that_wait_for_them(trace_of):
    trace = trace_of(dp=2, pp=4, vpp=2, micro_batches=8, overlapped=True)
    graph = graph_of(trace)
    for at, preds in enumerate(graph.preds):
        assert all(graph.node_of[pred] < graph.node_of[at] for pred in preds)
    assert sorted(member for node in graph.nodes for member in node.members) == list(
        range(len(graph.preds))
    )


@pytest.mark.parametrize("optype", [kind.GC, kind.LAYERNORM, kind.CLIP, kind.OPTIMIZER])
def test_a_trace_without_an_operation_that_every_stage_has_is_refused(rows_of, optype):
    rows = rows_of(dp=2, pp=2)
    with pytest.raises(
        AnalysisError, match=f"must hold {kind.OPTYPES[optype]} of stage 0, got none"
    ):
        slowdowns(StepModel.of_rows(without(rows, rows.optype == optype)))


def test_embeddings_that_are_not_shared_are_left_out(rows_of):
    rows = rows_of(dp=2, pp=2)
    none = Trace.of_columns(without(rows, rows.optype == kind.EMBEDDING))
    assert slowdowns(StepModel.of(none)).slowdown == pytest.approx(1.0, abs=1e-3)
    one = Trace.of_columns(without(rows, (rows.optype == kind.EMBEDDING) & (rows.stage == 0)))
    with pytest.raises(AnalysisError, match="first and the last stage alike, got 0 and 1"):
        slowdowns(StepModel.of(one))


def test_a_stage_without_a_send_of_a_compute_is_refused(rows_of):
    rows = rows_of(dp=2, pp=3, micro_batches=4)
    gone = (rows.optype == kind.FORWARD_SEND) & (rows.stage == 1) & (rows.seq_id == 3)
    with pytest.raises(AnalysisError, match="stage 1 has 4 forward-compute but 3 forward-send"):
        slowdowns(StepModel.of_rows(without(rows, gone)))


def test_sends_and_receives_of_different_number_are_refused(rows_of):
    rows = rows_of(dp=2, pp=2, micro_batches=4)
    gone = (rows.optype == kind.FORWARD_SEND) & (rows.stage == 0) & (rows.seq_id == 3)
    with pytest.raises(
        AnalysisError, match=r"stage 0 has 3 forward-send .* stage 1 has 4 forward-recv"
    ):
        slowdowns(StepModel.of_rows(without(rows, gone)))


def test_a_gap_in_the_numbers_of_operations_is_refused(rows_of):
    rows = rows_of(dp=2, pp=1, micro_batches=4)
    gone = (rows.optype == kind.FORWARD) & (rows.seq_id == 2)
    with pytest.raises(AnalysisError, match="got forward-compute 3 of stage 0 and no 2"):
        slowdowns(StepModel.of_rows(without(rows, gone)))


def test_operations_that_wait_in_a_circle_are_refused(rows_of):
    rows = rows_of(dp=1, pp=2, micro_batches=4)
    start = rows.start_ts.copy()
    # On stage 0 a backward runs before the forward whose gradients it needs.
    of_stage = (rows.stage == 0) & (rows.seq_id == 1)
    forward, backward = (of_stage & (rows.optype == code) for code in (kind.FORWARD, kind.BACKWARD))
    start[forward], start[backward] = rows.start_ts[backward], rows.start_ts[forward]
    with pytest.raises(AnalysisError, match="wait for each other in a circle"):
        slowdowns(StepModel.of_rows(replace(rows, start_ts=start)))


def test_a_step_that_takes_no_time_is_refused(rows_of):
    rows = rows_of(dp=1, pp=1)
    still = replace(
        rows, duration=np.zeros_like(rows.duration), start_ts=np.zeros_like(rows.start_ts)
    )
    with pytest.raises(AnalysisError, match="the ideal step takes no time"):
        slowdowns(StepModel.of_rows(still))
