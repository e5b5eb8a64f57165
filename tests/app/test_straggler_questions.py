"""Nodes of traced workers: found where the records say them, unknown elsewhere, with the reason."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.actions import Options, ingest_files
from app.answers.training import fix, fleet, trace
from app.ask import of_store
from data.errors import DataError
from data.filters import Selection
from data.store import Store
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.answers.training.trace import StragglerTrace

SACCT = "JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList|Restarts\n"
ROW = "{job}|c|COMPLETED|2026-01-05T00:00:00|{start}|{end}|{n}|gres/gpu={gpus}|{nodes}|{again}\n"
META = """dp_size: 2
dsp_size: 1
pp_size: 2
tp_size: 4
vpp_size: 1
world_size: 16
"""


def _row(**facts: object) -> str:
    known = {"job": 7, "start": "2026-01-05T00:00:00", "end": "2026-01-05T12:00:00", "n": 2,
             "gpus": 16, "nodes": "n[9-10]", "again": 0}  # fmt: skip
    return ROW.format(**(known | facts))


def _traced(
    folder: Path,
    sacct: str,
    *,
    job: str | None = "7",
    ranks: bool = True,
    at: float | None = None,
    slow: float = 1.0,
) -> StragglerTrace:
    """A trace of 2 x 2 workers, ranks (stage * 2 + dp) * 4, and what the store says of it.

    Worker dp 1, stage 1 computes `slow` times as long.
    """
    shape = TraceShape(dp=2, pp=2, micro_batches=4, steps=(1, 41), tp=4)
    forward = np.full((2, 2, 2, 1, 4), 0.1)
    forward[:, 1, 1] *= slow
    columns = trace_columns(shape, TraceCosts(forward=forward, backward=2 * forward))
    columns["optype"] = columns["optype"].astype(str).tolist()
    if at is not None:
        columns["start_ts"] = columns["start_ts"].astype(float) + at
    if not ranks:
        columns.pop("rank")
    pq.write_table(pa.table(columns), folder / "trace.parquet")
    (folder / "meta.yaml").write_text(META)
    store = folder / "store"
    if sacct:
        (folder / "sacct.txt").write_text(SACCT + sacct)
        ingest_files(store, "sacct", [str(folder / "sacct.txt")], Options())
    options = Options(meta=str(folder / "meta.yaml"), job_id=job)
    ingest_files(store, "straggler-trace", [str(folder / "trace.parquet")], options)
    with contextlib.closing(Store.open(store)) as opened:
        trace_id = fleet.traces(opened, Selection())["trace_id"][0]
        return trace.measured(opened, trace_id)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, StragglerTrace]]:
    """A trace of a job of two nodes with a slow worker, and its store; only to be read."""
    folder = tmp_path_factory.mktemp("slow")
    found = _traced(folder, _row(), slow=1.5)
    with contextlib.closing(Store.open(folder / "store")) as store:
        yield store, found


def test_a_workers_node_follows_the_order_of_the_node_list(tmp_path: Path) -> None:
    found = _traced(tmp_path, _row())
    assert found.nodes.node_of == {(0, 0): "n9", (1, 0): "n9", (0, 1): "n10", (1, 1): "n10"}
    assert "in the order of the node list of job 7" in found.nodes.basis
    assert found.wasted_gpu_hours_per_day is not None
    assert found.wasted_gpu_hours_per_day.value == pytest.approx(
        (found.wasted.value or 0.0) * 16 * 24
    )


def test_the_node_of_a_slow_worker_has_most_of_what_workers_cost_alone(
    slow: tuple[Store, StragglerTrace],
) -> None:
    _, found = slow
    assert found.node_concentration is not None
    name, spread = found.node_concentration
    alone = np.maximum(found.analysis.slowdowns.by_worker_exact - 1, 0).sum(
        axis=0
    )  # a node a stage
    assert name == "n10"
    assert spread.top_share_ratio == pytest.approx(alone[1] / alone.sum())
    assert spread.top_share_ratio > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sacct", "options", "words"),
    [
        ("", {"job": None}, "names no job that the store knows"),
        (_row(job=8), {}, "names no job that the store knows"),
        (_row(gpus=32), {}, "the trace is of 16 GPUs, the job had 32"),
        (_row(n=3, nodes="n[1-3]"), {}, "no GPUs that divide evenly"),
        (_row(nodes="None assigned"), {}, "no nodes"),
        (_row(), {"ranks": False}, "does not number its workers"),
        (_row() + _row(nodes="n[1-2]", again=1, start="2026-01-06T00:00:00",
                       end="2026-01-06T12:00:00"), {}, "which attempt was traced is unknown"),
    ],
)  # fmt: skip
def test_what_is_not_known_stays_unknown_with_its_reason(
    tmp_path: Path, sacct: str, options: dict[str, object], words: str
) -> None:
    found = _traced(tmp_path, sacct, **options)  # type: ignore[arg-type]
    assert not found.nodes.node_of
    assert words in found.nodes.basis


def test_the_time_of_the_trace_tells_the_attempt(tmp_path: Path) -> None:
    second = _row(nodes="n[1-2]", again=1, start="2026-01-06T00:00:00", end="2026-01-06T12:00:00")
    found = _traced(tmp_path, _row() + second, at=1767690000.0)  # 6 Jan 2026 09:00 UTC
    assert set(found.nodes.node_of.values()) == {"n1", "n2"}


def test_gpu_hours_are_those_of_the_run(slow: tuple[Store, StragglerTrace]) -> None:
    store, _ = slow
    traces = fleet.traces(store, Selection())
    assert traces["gpu_hours"].tolist() == [16 * 12]
    assert fleet.measured(store, Selection()).n_without_gpu_hours == 0
    assert fleet.traces(store, Selection(partition="x")).empty
    assert fleet.traces(store, Selection(min_gpus=17)).empty
    assert len(fleet.traces(store, Selection(cluster="c", min_gpus=16))) == 1


def test_the_answer_has_intervals_and_opens_workers_with_their_nodes(
    slow: tuple[Store, StragglerTrace],
) -> None:
    store, found = slow
    slowdown, wasted, hours, *_ = trace.answer(found).numbers
    assert (slowdown.exact, wasted.exact) == (found.slowdown, found.wasted)
    assert (slowdown.n, hours.unit) == ("2", "GPU-hours per day")
    assert " to " in slowdown.interval
    workers = trace.answer(found).numbers[3].opens
    assert workers is not None
    rows = workers.opened(of_store(store), limit=1).values
    assert rows[0][:3] == (1, 1, "n10")
    assert rows[0][-1] == "c"


def test_what_a_fix_gives_back_is_said_with_its_interval(
    slow: tuple[Store, StragglerTrace],
) -> None:
    store, found = slow
    said = fix.answer(of_store(store), found, "worker:1,1")
    ratio, hours = said.numbers
    assert said.sentence.startswith("Fixing worker dp 1, stage 1 (n10) gives back ")
    assert said.sentence.endswith(" GPU-hours a day of training.")
    assert ratio.n == "2"
    assert hours.exact.value == pytest.approx(16 * 24 * ratio.exact.value)


def test_traces_of_the_fleet_name_what_a_click_opens(
    slow: tuple[Store, StragglerTrace],
) -> None:
    store, found = slow
    said = fleet.answer(of_store(store), Selection())
    table = said.table("straggler_traces")
    links = {column.key: column.link for column in table.columns if column.link}
    assert links == {"trace": "trace", "job_id": "job"}
    assert table.values[0][0].endswith(found.facts["trace_id"][:8])
    assert said.sentence.startswith("1 of 1 trace straggles; ")


def test_a_trace_that_is_not_stored_is_refused(empty_store: Path) -> None:
    with contextlib.closing(Store.open(empty_store)) as store:
        assert fleet.n_traces(store) == 0
        with pytest.raises(DataError, match="holds no trace 'x'"):
            trace.measured(store, "x")


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    found = _traced(tmp_path, "", job=None)
    (tmp_path / "store" / "metrics" / found.facts["path"]).unlink()
    with (
        contextlib.closing(Store.open(tmp_path / "store")) as store,
        pytest.raises(DataError, match="is missing: ingest the trace trace again"),
    ):
        fix.measured(store, found.facts["trace_id"], "stage:0")
