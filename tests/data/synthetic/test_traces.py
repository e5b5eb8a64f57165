"""Traces of pipeline schedules, and those planted in the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from analytics.training.stragglers.slowdown import slowdowns
from analytics.training.stragglers.step_model import StepModel
from data.ingest.readers.training.straggler_rows import rows_of
from data.synthetic.trace_schedule import TraceCosts, TraceShape, TraceShapeError, trace_columns

if TYPE_CHECKING:
    from analytics.training.stragglers.slowdown import Slowdowns
    from data.synthetic import DemoCluster

SHAPES = [
    TraceShape(dp=2, pp=2, micro_batches=4, steps=(7, 9)),
    TraceShape(dp=1, pp=1, micro_batches=3, steps=(0,)),
    TraceShape(dp=1, pp=4, micro_batches=2, steps=(1,)),
    TraceShape(dp=3, pp=4, micro_batches=8, steps=(1, 2), vpp=3),
    TraceShape(dp=2, pp=2, micro_batches=4, steps=(1, 2), vpp=2, overlapped=True),
    TraceShape(dp=1, pp=2, micro_batches=4, steps=(1,), dsp=4),
]


def analysed(shape: TraceShape, costs: TraceCosts) -> Slowdowns:
    return slowdowns(StepModel.of_rows(rows_of(trace_columns(shape, costs)), dsp_size=shape.dsp))


@pytest.mark.parametrize("shape", SHAPES, ids=range(len(SHAPES)))
def test_a_schedule_is_simulated_as_it_was_played(shape: TraceShape) -> None:
    """Own costs differ everywhere: any edge too few or too many would show."""
    rng = np.random.default_rng(0)
    size = (len(shape.steps), shape.dp, shape.pp, shape.vpp, shape.micro_batches)
    forward, backward = rng.uniform(0.5, 1.5, size), rng.uniform(1, 3, size)
    found = analysed(
        shape,
        TraceCosts(forward, backward, *(rng.uniform(0.01, 0.2, size[:3]) for _ in range(8))),
    )
    assert found.dropped_steps == ()
    assert found.original_seconds == pytest.approx(found.traced_seconds, rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES, ids=range(len(SHAPES)))
def test_equal_costs_make_no_straggler(shape: TraceShape) -> None:
    found = analysed(shape, TraceCosts(forward=1.0, backward=2.0))
    assert found.slowdown == pytest.approx(1, abs=2e-3)


def test_a_step_of_one_worker_takes_the_sum_of_its_costs() -> None:
    shape = TraceShape(dp=1, pp=1, micro_batches=3, steps=(4,))
    costs = TraceCosts(forward=1.0, backward=2.0, launch=0.5)
    columns = trace_columns(shape, costs)
    end = columns["start_ts"] + columns["duration"]
    assert end.max() == pytest.approx(3 * 3 + 0.001 + 0.002 + 0.001 + 0.01)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"dp": 0}, "dp must be at least 1, got 0"),
        ({"vpp": 2, "micro_batches": 3}, "vpp 2 needs pp above 1 and micro_batches a multiple"),
        ({"vpp": 2, "pp": 1}, "vpp 2 needs pp above 1"),
    ],
)
def test_a_shape_that_no_schedule_has_is_refused(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(TraceShapeError, match=message):
        TraceShape(**({"dp": 2, "pp": 2, "micro_batches": 4, "steps": (1,)} | sizes))


def test_the_demo_plants_three_causes_that_the_what_if_finds(demo: DemoCluster) -> None:
    worker, stage, lengths = (
        slowdowns(StepModel.of_rows(rows_of(trace.columns))) for trace in demo.traces
    )
    assert [trace.cause for trace in demo.traces] == ["worker", "stage", "sequence_length"]
    target = demo.traces[0].target
    assert target is not None
    slowest = np.unravel_index(worker.by_worker_exact.argmax(), worker.by_worker_exact.shape)
    assert slowest == (target["dp_rank"], target["stage"])
    assert worker.slowest.contribution.fixed_ratio > 0.9
    assert stage.by_stage.argmax() == len(stage.stages) - 1
    assert stage.stages[-1].fixed_ratio > 0.9
    assert lengths.slowest.contribution.fixed_ratio < 0.5
    for trace, found in zip(demo.traces, (worker, stage, lengths), strict=True):
        assert found.slowdown == pytest.approx(trace.slowdown, rel=1e-3)
        assert found.slowdown > 1.1


def test_the_planted_worker_runs_on_a_node_of_its_job(demo: DemoCluster) -> None:
    trace = demo.traces[0]
    jobs, held = (demo.tables[name].to_pandas() for name in ("jobs", "job_nodes"))
    keys = jobs.loc[jobs["job_id"] == trace.job_id, "attempt_key"]
    nodes = held[held["attempt_key"].isin(keys)].groupby("attempt_key", observed=True)["node"]
    assert trace.target is not None
    place = int(trace.target["rank"]) // 8
    assert trace.target["node"] in {sorted(of_attempt)[place] for _, of_attempt in nodes}
    assert trace.shape.dp * trace.shape.pp in set(nodes.size())


def test_the_same_seed_gives_the_same_traces(demo: DemoCluster) -> None:
    assert demo.truth.traces == [trace.truth() for trace in demo.traces]
    assert [trace.name.split()[0] for trace in demo.traces] == ["synthetic"] * 3
