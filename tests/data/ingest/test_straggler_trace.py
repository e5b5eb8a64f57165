"""Straggler traces in the store: their row, their file, their results, their job."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from analytics.training.stragglers import analysis
from app.actions import ingest_files
from app.actions.ledger import build_ledger
from app.answers.training import analysed, fleet
from app.answers.training import trace as shown
from app.ask import of_store
from app.cli import main
from data import stages
from data.errors import DataError
from data.filters import Selection
from data.ingest import Options
from data.ingest.readers.training import straggler_trace
from data.store import Store
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.training.stragglers.slowdown import Slowdowns
    from analytics.training.stragglers.step_model import StepModel

SHAPE = TraceShape(dp=2, pp=2, micro_batches=4, steps=(1, 2, 5), tp=4)
META = """trial_name: slow one
run_id: 0
dp_size: 2
dsp_size: 1
pp_size: 2
tp_size: 4
vpp_size: 1
world_size: 16
"""
JOBS = """JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList
77|c|COMPLETED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-06T00:00:00|2|gres/gpu=16|n[1-2]
"""
TRACED_S = datetime(2026, 1, 5, 6, tzinfo=UTC).timestamp()


def operations(*, slow: float = 2.0, since_s: float = 0.0) -> pa.Table:
    forward = np.full((3, 2, 2, 1, 4), 0.1)
    forward[:, 1, 0] *= slow
    columns = trace_columns(SHAPE, TraceCosts(forward=forward, backward=2 * forward))
    if since_s:
        columns["start_ts"] = columns["start_ts"].astype(np.float64) + since_s
    return pa.table({name: pa.array(values) for name, values in columns.items()})


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "slow.parquet"
    pq.write_table(operations(), path)
    return path


@pytest.fixture
def meta(tmp_path: Path) -> str:
    path = tmp_path / "meta.yaml"
    path.write_text(META, encoding="utf-8")
    return str(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def ingest(root: Path, *paths: Path, source: str = "straggler-trace", **options: Any) -> list[Any]:
    return ingest_files(root, source, [str(path) for path in paths], Options(**options))[0]


def rows(root: Path, sql: str) -> list[tuple[Any, ...]]:
    store = Store.open(root)
    try:
        return store.rows(sql)
    finally:
        store.close()


def files(root: Path) -> list[str]:
    return sorted(
        str(path.relative_to(root / "metrics"))
        for path in root.glob("metrics/**/*")
        if path.is_file()
    )


def test_a_trace_is_stored_with_its_results(root: Path, trace: Path, meta: str) -> None:
    (result,) = ingest(root, trace, meta=meta)
    n_rows = len(operations())
    assert (result.rows_read, result.rows_kept, result.tables) == (
        n_rows, n_rows, {"straggler_traces": 1},
    )  # fmt: skip
    ((name, path, traced_at, sizes, slowdown, wasted, results),) = rows(
        root,
        """SELECT name, path, traced_at, [n_rows, n_steps, n_dropped_steps, n_workers, n_gpus, dp,
           pp, vpp, tp], slowdown, wasted_ratio, results FROM straggler_traces""",
    )
    assert (name, traced_at) == ("slow one", None)
    assert sizes == [n_rows, 3, 0, 4, 16, 2, 2, 1, 4]
    assert files(root) == [path]
    assert slowdown > 1.1
    assert wasted == pytest.approx(1 - 1 / slowdown)
    assert json.loads(results)["S"] == pytest.approx(slowdown)


def test_the_stored_operations_are_those_of_the_file(root: Path, trace: Path) -> None:
    ingest(root, trace)
    stored = pq.ParquetFile(root / "metrics" / files(root)[0]).read()
    order = [(name, "ascending") for name in ("step", "dp_rank", "stage", "optype", "seq_id")]
    wanted = operations().sort_by(order)
    for name in wanted.column_names:
        found = stored.column(name)
        assert found.cast(wanted.column(name).type).to_pylist() == wanted.column(name).to_pylist()


def test_the_same_trace_twice_changes_nothing(root: Path, trace: Path, tmp_path: Path) -> None:
    ingest(root, trace)
    before = rows(root, "FROM straggler_traces")
    wide = tmp_path / "other types" / "slow.csv"
    wide.parent.mkdir()
    shuffled = operations().take(np.random.default_rng(0).permutation(len(operations())))
    pyarrow.csv.write_csv(shuffled, wide)
    for path in (trace, wide):
        (result,) = ingest(root, path)
        assert set(result.tables.values()) == {0}
    assert rows(root, "FROM straggler_traces") == before
    assert len(files(root)) == 1


def test_what_was_said_later_of_a_trace_completes_it(root: Path, trace: Path, meta: str) -> None:
    ingest(root, trace)
    ingest(root, trace, meta=meta)
    ingest(root, trace)
    assert rows(root, "SELECT name, n_gpus, slowdown > 1 FROM straggler_traces") == [
        ("slow one", 16, True)
    ]


@pytest.mark.slow
def test_what_was_said_of_a_trace_can_be_corrected(root: Path, trace: Path) -> None:
    for job in ("7", "8", "7", "9"):
        ingest(root, trace, job_id=job, cluster=f"c{job}")
        assert rows(root, "SELECT job_id, cluster FROM straggler_traces") == [(job, f"c{job}")]
    ingest(root, trace)
    assert rows(root, "SELECT job_id, cluster FROM straggler_traces") == [("9", "c9")]


def test_a_trace_is_linked_to_its_job_in_any_order(root: Path, tmp_path: Path) -> None:
    trace, jobs = tmp_path / "slow.parquet", tmp_path / "sacct.txt"
    pq.write_table(operations(since_s=TRACED_S), trace)
    jobs.write_text(JOBS, encoding="utf-8")
    (result,) = ingest(root, trace, job_id="77")
    assert result.first_at == datetime(2026, 1, 5, 6, tzinfo=UTC)
    linked = "SELECT cluster, job_id, traced_at FROM straggler_traces"
    at = datetime(2026, 1, 5, 6, tzinfo=UTC)
    covered = "SELECT * EXCLUDE (day), day::VARCHAR FROM coverage WHERE source = 'straggler_traces'"
    assert rows(root, linked) == [(None, "77", at)]
    assert rows(root, covered) == []
    ingest(root, jobs, source="sacct")
    assert rows(root, linked) == [("c", "77", at)]
    assert rows(root, covered) == [("c", "straggler_traces", 1, "2026-01-05")]
    same = """SELECT count(*) FROM straggler_traces JOIN jobs USING (cluster, job_id)
              WHERE straggler_traces.run_id IS NOT DISTINCT FROM jobs.run_id"""
    assert rows(root, same) == [(1,)]
    (again,) = ingest(root, trace, job_id="77")
    assert set(again.tables.values()) == {0}


def test_a_broken_trace_leaves_the_store_as_it_was(root: Path, trace: Path, tmp_path: Path) -> None:
    ingest(root, trace)
    before = rows(root, "FROM straggler_traces"), files(root)
    table = operations(slow=3)
    keep = np.array(table.column("dp_rank")) + np.array(table.column("stage")) != 2
    broken = tmp_path / "broken.parquet"
    pq.write_table(table.filter(pa.array(keep)), broken)
    with pytest.raises(DataError, match="broken"):
        ingest(root, broken)
    assert (rows(root, "FROM straggler_traces"), files(root)) == before
    with pytest.raises(DataError, match="broken"):
        ingest(root.with_name("new"), broken)
    assert not root.with_name("new").exists()


def test_a_trace_without_a_whole_step_leaves_others_alone(
    root: Path, trace: Path, tmp_path: Path
) -> None:
    table = operations(slow=3)
    rank, kind = (np.array(table.column(name)) for name in ("dp_rank", "optype"))
    broken = tmp_path / "broken.parquet"
    pq.write_table(table.filter(pa.array((rank != 1) | (kind != "optimizer"))), broken)
    results, errors = ingest_files(root, "straggler-trace", [str(broken), str(trace)], Options())
    assert [result.path for result in results] == [str(trace)]
    assert [error.partition(": ")[0] for error in errors] == [str(broken)]
    assert rows(root, "SELECT name, slowdown > 1 FROM straggler_traces") == [("slow", True)]
    assert len(files(root)) == 1


def test_a_negative_duration_is_named_by_file_row_and_column(root: Path, tmp_path: Path) -> None:
    table = operations()
    values = table.column("duration").to_pylist()
    values[4] = -0.5
    at = table.column_names.index("duration")
    path = tmp_path / "slow.parquet"
    pq.write_table(table.set_column(at, "duration", pa.array(values, pa.float32())), path)
    with pytest.raises(DataError, match=r"slow\.parquet: duration of row 5 must be .* got -0\.5"):
        ingest(root, path)


def test_a_meta_file_of_another_job_is_refused(root: Path, trace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(META.replace("pp_size: 2\ntp", "pp_size: 4\ntp").replace("16", "32"))
    with pytest.raises(DataError, match="pp_size is 2, but the meta file states 4"):
        ingest(root, trace, meta=str(other))


def test_csv_is_recognised_by_its_columns(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "slow.csv"
    pyarrow.csv.write_csv(operations(), path)
    assert ingest(root, path, source="auto")[0].source == "straggler-trace"
    assert not straggler_trace.sniff("step,loss,stage\n1,2,3\n")


@pytest.mark.slow
def test_a_better_analysis_reaches_traces_that_were_read_before(
    root: Path, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = tmp_path / "sacct.txt"
    jobs.write_text(JOBS, encoding="utf-8")
    dated = tmp_path / "dated.parquet"
    pq.write_table(operations(slow=3, since_s=TRACED_S), dated)
    ingest(root, dated, job_id="77")
    ((before,),) = rows(root, "SELECT slowdown FROM straggler_traces")
    twice = analysis.slowdowns

    def other(model: StepModel) -> Slowdowns:
        slow = twice(model)
        return replace(slow, slowdown=2.0 * slow.slowdown)

    monkeypatch.setattr(analysis, "slowdowns", other)
    hashed = stages.code_hash
    monkeypatch.setattr(stages, "code_hash", lambda name: f"{hashed(name)} of another version")
    ingest(root, jobs, source="sacct")
    (row,) = rows(root, "SELECT slowdown, wasted_ratio, trace_id FROM straggler_traces")
    assert row[0] == pytest.approx(2 * before)
    with closing(Store.open(root)) as store:
        assert shown.measured(store, row[2]).analysis.slowdowns.slowdown == row[0]  # the page
        (listed,) = analysed.stored(store)  # the command
        assert listed.record["S"] == row[0]
    build_ledger(root)
    ((lost,),) = rows(root, "SELECT sum(gpu_seconds) FILTER (bucket = 'straggler') FROM gpu_time")
    assert lost == pytest.approx(row[1] * 16 * 86_400, rel=0.1)  # of a day on 16 GPUs


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"PAR1 no more")])
def test_a_trace_whose_file_is_gone_or_damaged_keeps_what_was_found_and_stops_no_ingest(
    root: Path,
    trace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    harm: Callable[[Path], object],
) -> None:
    ingest(root, trace)
    before = rows(root, "SELECT slowdown, results FROM straggler_traces")
    harm(root / "metrics" / files(root)[0])
    hashed = stages.code_hash
    monkeypatch.setattr(stages, "code_hash", lambda name: f"{hashed(name)} of another version")
    jobs = tmp_path / "sacct.txt"
    jobs.write_text(JOBS, encoding="utf-8")
    ingest(root, jobs, source="sacct")
    assert rows(root, "SELECT slowdown, results FROM straggler_traces") == before


def test_a_trace_that_cannot_be_analysed_is_kept_told_and_counts_nowhere(
    root: Path, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = operations(slow=3)
    kinds = np.array(table.column("optype"))
    one_sided = tmp_path / "one-sided.parquet"
    pq.write_table(table.filter(pa.array(kinds != "forward-recv")), one_sided)
    (result,) = ingest(root, one_sided)
    assert any(
        text.startswith("one-sided is stored, but cannot be analysed: ") for text in result.notices
    )
    assert main(["stragglers", "--store", str(root), "--format", "json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == []
    assert "one-sided cannot be analysed: " in said.err
    ingest(root, trace)
    assert main(["stragglers", "--store", str(root), "--format", "json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed["trace"] == "slow"
    with closing(Store.open(root)) as store:
        ask = of_store(store)
        counted = fleet.answer(ask, Selection())
        assert "1 trace could not be analysed: S is not known." in counted.notes
        (bad,) = store.rows("SELECT trace_id FROM straggler_traces WHERE slowdown IS NULL")
        with pytest.raises(DataError, match="the trace one-sided cannot be analysed: "):
            shown.measured(store, bad[0])
