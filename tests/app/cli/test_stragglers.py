"""faultline stragglers: published numbers from files of every kind; broken traces are refused."""

from __future__ import annotations

import gzip
import json
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns

if TYPE_CHECKING:
    from collections.abc import Callable

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "straggler"
TOLERANCE = 2e-6
ABSENT = pytest.mark.skipif(not SHARED.is_dir(), reason=f"real traces are not at {SHARED}")
META = """trial_name: T
run_id: 3
dp_size: 2
dsp_size: 1
pp_size: 2
tp_size: 4
vpp_size: 1
world_size: 16
"""


@cache
def published() -> dict[str, Any]:
    """Numbers of the reference for the three published traces."""
    return json.loads((SHARED / "expected.json").read_text(encoding="utf-8"))


@cache
def sample(name: str) -> pa.Table:
    return pq.ParquetFile(SHARED / f"trace-{name}.parquet").read()


def assert_published(found: dict[str, Any], name: str) -> None:
    """Every number that the reference gives, and nothing it gives is missing."""
    assert_near({key: found[key] for key in published()[name]}, published()[name], name)


def assert_near(found: Any, wanted: Any, where: str) -> None:
    if isinstance(wanted, dict):
        assert found.keys() >= wanted.keys(), where
        for key, value in wanted.items():
            assert_near(found[key], value, f"{where}.{key}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), where
        for place, value in enumerate(wanted):
            assert_near(found[place], value, f"{where}[{place}]")
    elif isinstance(wanted, str):
        assert found == wanted, where
    else:
        assert found == pytest.approx(wanted, rel=TOLERANCE, abs=TOLERANCE), where


@ABSENT
@pytest.mark.parametrize("name", ["AR", "SE", "ST"])
def test_a_published_trace_gives_the_published_numbers(
    faultline: Callable[..., Any], name: str
) -> None:
    said = faultline(
        "stragglers", SHARED / f"trace-{name}.parquet", "--meta", SHARED / f"meta-{name}.yaml"
    )
    assert (said.code, said.err) == (0, "")
    assert_published(said.json, name)
    wanted = published()[name]
    for key in ("S_t", "S_dp", "S_pp", "per_step_S"):  # strongest first
        assert list(said.json[key].values()) == sorted(said.json[key].values(), reverse=True)
    assert said.json["gpu_hours_wasted_ratio"] == pytest.approx(1 - 1 / wanted["S"], rel=TOLERANCE)
    assert np.shape(said.json["S_w_exact"]) == np.shape(wanted["S_w"])
    assert said.json["dropped_steps"] == []
    assert said.json["patterns"]["workers"]["top"] == list(
        np.unravel_index(np.argmax(said.json["S_w_exact"]), np.shape(wanted["S_w"]))
    )
    assert said.json["seconds"] > 0


def plain(table: pa.Table) -> pa.Table:
    """Other types throughout: plain text, 64-bit numbers, seconds since 1970."""
    columns = {name: table.column(name) for name in table.column_names}
    for name in ("dp_rank", "stage", "rank", "step", "seq_id", "mc", "mb_id", "gmc"):
        columns[name] = columns[name].cast(pa.int64())
    columns["optype"] = columns["optype"].cast(pa.string())
    step = columns["step"].to_numpy()
    start = columns["start_ts"].to_numpy().astype(np.float64)
    columns["start_ts"] = pa.array(start + 1_700_000_000 + 60.0 * step)
    columns["duration"] = columns["duration"].cast(pa.float64())
    return pa.table(columns)


def shuffled(table: pa.Table) -> pa.Table:
    return table.take(np.random.default_rng(0).permutation(len(table)))


def relabelled(table: pa.Table) -> pa.Table:
    """Labels of workers in another order than that of their data-parallel ranks."""
    at = table.column_names.index("rank")
    rank = table.column("rank").to_numpy().astype(np.int64)
    return table.set_column(at, "rank", pa.array((rank * 7919) % 10_007))


@ABSENT
@pytest.mark.parametrize("change", [plain, shuffled, relabelled])
@pytest.mark.parametrize("name", ["AR", "SE", "ST"])
def test_neither_types_nor_order_nor_labels_matter(
    faultline: Callable[..., Any], tmp_path: Path, name: str, change: Callable[..., pa.Table]
) -> None:
    path = tmp_path / "trace.parquet"
    pq.write_table(change(sample(name)), path, row_group_size=5_000)
    said = faultline("stragglers", path, "--meta", SHARED / f"meta-{name}.yaml")
    assert (said.code, said.err) == (0, "")
    assert_published(said.json, name)


@ABSENT
def test_csv_gives_the_same_numbers(faultline: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    table = sample("ST")
    at = table.column_names.index("optype")
    table = table.set_column(at, "optype", table.column("optype").cast(pa.string()))
    pyarrow.csv.write_csv(table, path)
    said = faultline("stragglers", path, "--meta", SHARED / "meta-ST.yaml")
    assert_published(said.json, "ST")


def write(path: Path, *, without: Callable[[dict[str, Any]], Any] | None = None) -> Path:
    """A small trace with a slow worker; `without` says which rows are left out."""
    shape = TraceShape(dp=2, pp=2, micro_batches=4, steps=(1, 2, 51), tp=4)
    forward = np.full((3, 2, 2, 1, 4), 0.1)
    forward[:, 1, 0] = 0.2
    columns = trace_columns(shape, TraceCosts(forward=forward, backward=2 * forward))
    if without is not None:
        keep = ~without(columns)
        columns = {name: values[keep] for name, values in columns.items()}
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write(tmp_path / "slow.parquet")


@pytest.fixture
def meta(tmp_path: Path) -> Path:
    path = tmp_path / "meta.yaml"
    path.write_text(META, encoding="utf-8")
    return path


def test_without_a_meta_file_the_sizes_are_those_the_trace_shows(
    faultline: Callable[..., Any], trace: Path, meta: Path
) -> None:
    bare, told = (faultline("stragglers", trace, *more).json for more in ([], ["--meta", meta]))
    assert bare["job_meta"] == {
        "trial_name": "slow", "run_id": None, "dp_size": 2, "pp_size": 2, "tp_size": None,
        "dsp_size": None, "vpp_size": 1, "world_size": None,
    }  # fmt: skip
    assert told["job_meta"] == {
        "trial_name": "T", "run_id": 3, "dp_size": 2, "pp_size": 2, "tp_size": 4, "dsp_size": 1,
        "vpp_size": 1, "world_size": 16,
    }  # fmt: skip
    assert bare["S"] == told["S"] > 1.1
    assert next(iter(bare["S_dp"])) == "1"


def test_a_table_is_for_people_and_csv_for_sheets(
    faultline: Callable[..., Any], trace: Path
) -> None:
    said = faultline("stragglers", trace, "--format", "table")
    assert "GPU-time wasted" in said.out
    assert "forward-compute" in said.out
    header, row = faultline("stragglers", trace, "--format", "csv").out.splitlines()
    assert header.startswith("trace,S,gpu_hours_wasted_ratio,")
    assert row.startswith(str(trace))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_broken_trace_does_not_stop_the_others(
    faultline: Callable[..., Any], tmp_path: Path, trace: Path, workers: int
) -> None:
    again = write(tmp_path / "again.parquet")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 and no more")
    said = faultline("stragglers", trace, broken, again, "--workers", workers)
    assert said.code == 2
    assert [one["trace"] for one in said.json] == [str(trace), str(again)]
    assert said.json[0]["S"] == said.json[1]["S"]
    (line,) = said.err.splitlines()
    assert line.startswith(f"faultline stragglers: {broken}: is broken Parquet")


def test_where_no_trace_can_be_read_nothing_is_printed(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    message = refused("stragglers", tmp_path / "a", tmp_path / "b", "--workers", 1)
    assert f"{tmp_path / 'a'}: no such file" in message
    assert f"{tmp_path / 'b'}: no such file" in message


def test_an_incomplete_step_is_left_out_and_told(
    faultline: Callable[..., Any], tmp_path: Path
) -> None:
    def one_row(columns: dict[str, Any]) -> Any:
        of_step = (columns["step"] == 2) & (columns["dp_rank"] == 1) & (columns["stage"] == 1)
        return of_step & (columns["optype"] == "forward-compute") & (columns["seq_id"] == 3)

    said = faultline("stragglers", write(tmp_path / "trace.parquet", without=one_row))
    assert said.code == 0
    (dropped,) = said.json["dropped_steps"]
    assert dropped["step"] == 2
    assert "forward-compute" in dropped["reason"]
    assert "step 2 left out" in said.err
    assert list(said.json["step_t_base"]) == ["1", "51"]


def test_a_trace_without_a_worker_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    path = write(
        tmp_path / "trace.parquet",
        without=lambda columns: (columns["dp_rank"] == 0) & (columns["stage"] == 1),
    )
    assert str(path) in refused("stragglers", path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dp_size: 2", "dp_size: 4", "so dp_size is 2, but the meta file states 4"),
        ("pp_size: 2", "pp_size: 1", "so pp_size is 2, but the meta file states 1"),
        ("vpp_size: 1", "vpp_size: 2", "so vpp_size is 1, but the meta file states 2"),
    ],
)
def test_the_meta_file_of_another_job_is_refused(
    refused: Callable[..., str], trace: Path, tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = META.replace(old, new).replace("world_size: 16\n", "")
    path = tmp_path / "meta.yaml"
    path.write_text(text, encoding="utf-8")
    assert message in refused("stragglers", trace, "--meta", path)


def test_meta_files_are_as_many_as_traces(
    refused: Callable[..., str], faultline: Callable[..., Any], trace: Path, meta: Path
) -> None:
    message = refused("stragglers", trace, trace, trace, "--meta", meta, "--meta", meta)
    assert "--meta is given 2 times for 3 traces" in message
    both = faultline("stragglers", trace, trace, "--meta", meta, "--workers", 1).json
    assert [one["job_meta"]["trial_name"] for one in both] == ["T", "T"]


def test_fixes_are_a_table_of_their_own_in_csv(faultline: Callable[..., Any], trace: Path) -> None:
    said = faultline(
        "stragglers", trace, "--fix", "stage:1", "--fix", "worker:0,0", "--format", "csv"
    )
    header, *lines = said.out.splitlines()
    assert header.split(",")[:4] == ["trace", "fixed", "original_seconds", "fixed_seconds"]
    assert [line.count("stage:1") + 2 * line.count("worker:0,0") for line in lines] == [1, 2]


def test_a_timeline_never_takes_the_place_of_its_trace(
    refused: Callable[..., str], trace: Path
) -> None:
    before = trace.read_bytes()
    assert "is the trace itself" in refused("stragglers", trace, "--timeline", trace)
    assert trace.read_bytes() == before


def test_a_file_that_ends_early_is_told(faultline: Callable[..., Any], tmp_path: Path) -> None:
    table = pq.ParquetFile(write(tmp_path / "t.parquet")).read()
    pa.csv.write_csv(table, tmp_path / "t.csv")
    packed = gzip.compress((tmp_path / "t.csv").read_bytes())
    (tmp_path / "t.csv.gz").write_bytes(packed[:-4])
    said = faultline("stragglers", tmp_path / "t.csv.gz")
    assert (said.code, said.out) == (2, "")
    assert "read what came before with --partial" in said.err
    said = faultline("stragglers", tmp_path / "t.csv.gz", "--partial")
    assert said.code == 0
    assert "ends early or is broken" in said.err


@pytest.mark.parametrize(
    ("name", "why"),
    [("a" * 300 + ".parquet", "File name too long"), ("tr\udcff.parquet", "is not UTF-8")],
    ids=["too long", "not UTF-8"],
)
@pytest.mark.parametrize("command", [["stragglers"], ["ingest", "straggler-trace"]], ids=" ".join)
def test_a_name_that_cannot_be_is_one_line(
    refused: Callable[..., str], tmp_path: Path, command: list[str], name: str, why: str
) -> None:
    store = ["--store", tmp_path / "store"] if "ingest" in command else []
    assert why in refused(*command, name, *store)


def test_a_trace_that_cannot_be_opened_does_not_stop_the_others(
    faultline: Callable[..., Any], trace: Path
) -> None:
    said = faultline("stragglers", trace, "a" * 300, "--workers", "1", "--format", "csv")
    assert said.code == 2
    assert len(said.out.splitlines()) == 2
    assert "cannot be read" in said.err


def test_a_process_that_dies_costs_no_trace(
    faultline: Callable[..., Any], trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dying:
        """Gives one result, as a pool does whose process is killed then."""

        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def map(self, function: Callable[..., Any], *columns: Any) -> Any:
            yield function(*next(zip(*columns, strict=False)))
            raise BrokenProcessPool

        def shutdown(self, **_: Any) -> None:
            pass

    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", Dying)
    said = faultline("stragglers", trace, trace, trace, "--workers", "2")
    assert said.code == 0
    assert "a process ended before its time" in said.err
    assert len(said.json) == 3
    assert len({found["S"] for found in said.json}) == 1
