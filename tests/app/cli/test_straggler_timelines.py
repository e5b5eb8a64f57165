"""faultline stragglers beside the results: fixes, timelines, the traces of a store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

META = """trial_name: T
run_id: 3
dp_size: 4
dsp_size: 1
pp_size: 2
tp_size: 4
vpp_size: 1
world_size: 32
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4 x 2 workers in three steps; worker dp 1, stage 0 computes at half speed."""
    forward = np.full((3, 4, 2, 1, 4), 0.1)
    forward[:, 1, 0] = 0.2
    shape = TraceShape(dp=4, pp=2, micro_batches=4, steps=(1, 2, 51), tp=4)
    folder = tmp_path_factory.mktemp("trace")
    columns = trace_columns(shape, TraceCosts(forward=forward, backward=2 * forward))
    columns["optype"] = columns["optype"].astype(str).tolist()
    pq.write_table(pa.table(columns), folder / "trace.parquet")
    (folder / "meta.yaml").write_text(META)
    return folder / "trace.parquet"


def _steps(file: Path) -> set[int]:
    events = json.loads(file.read_text())["traceEvents"]
    return {event["args"]["step"] for event in events if event["ph"] == "X"}


def _length_us(file: Path) -> float:
    events = json.loads(file.read_text())["traceEvents"]
    return max(event["ts"] + event["dur"] for event in events)


def test_fixing_the_slow_worker_gives_most_back(faultline: Callable[..., Any], trace: Path) -> None:
    meta = trace.with_name("meta.yaml")
    said = faultline(
        "stragglers", trace, "--meta", meta, "--fix", "worker:1,0", "--fix", "worker:2,0"
    )
    assert (said.code, said.err) == (0, "")
    slow, other = said.json["fixes"]
    assert slow["part"] == "worker:1,0"
    assert slow["fixed_seconds"] < slow["original_seconds"] == other["original_seconds"]
    assert slow["saved_ratio"]["value"] > 0.2 > other["saved_ratio"]["value"]
    saved = slow["saved_gpu_hours_per_day"]["value"]
    assert saved == pytest.approx(32 * 24 * slow["saved_ratio"]["value"])


def test_hours_are_unknown_without_the_jobs_size(
    faultline: Callable[..., Any], trace: Path
) -> None:
    said = faultline("stragglers", trace, "--fix", "stage:0")
    assert said.json["fixes"][0]["saved_gpu_hours_per_day"] is None


@pytest.mark.parametrize("form", ["table", "csv"])
def test_fixes_are_printed_for_people(
    faultline: Callable[..., Any], trace: Path, form: str
) -> None:
    said = faultline("stragglers", trace, "--fix", "worker:1,0", "--format", form)
    assert said.code == 0
    assert ("gives back" in said.out) == (form == "table")


def test_a_timeline_is_written_of_each_kind(
    faultline: Callable[..., Any], trace: Path, tmp_path: Path
) -> None:
    lengths = {}
    for of in ("original", "ideal", "traced", "fixed"):
        file = tmp_path / f"{of}.json"
        fix = ("--fix", "worker:1,0") if of == "fixed" else ()
        said = faultline("stragglers", trace, "--timeline", file, "--of", of, *fix)
        assert (said.code, said.json["timeline"]) == (0, str(file))
        assert _steps(file) == {1, 2, 51}
        lengths[of] = _length_us(file)
    assert max(lengths["ideal"], lengths["fixed"]) < lengths["original"]
    assert lengths["traced"] >= lengths["original"] - 1.0  # microseconds, rounded


def test_one_fix_is_what_a_timeline_draws(
    faultline: Callable[..., Any], trace: Path, tmp_path: Path
) -> None:
    for file, options in (("a.json", ()), ("b.json", ("--of", "fixed"))):
        faultline("stragglers", trace, "--timeline", tmp_path / file, "--fix", "stage:0",
                  "--step", "2", *options)  # fmt: skip
    assert _steps(tmp_path / "a.json") == {2}
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--of", "ideal"), "add --timeline FILE"),
        (("--step", "2"), "add --timeline FILE"),
        (("--timeline", "t.json", "--of", "fixed"), "add one --fix"),
        (("--timeline", "t.json", "--step", "4"), "steps must be among the trace's 3"),
        (
            ("--timeline", "no/such/folder/t.json"),
            "cannot be written (No such file or directory): name another",
        ),
        (("--fix", "node:3"), "a part must be worker:DP,STAGE"),
        (("--fix", "worker:9,0"), "holds no operation"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    faultline: Callable[..., Any], trace: Path, options: tuple[str, ...], words: str
) -> None:
    said = faultline("stragglers", trace, *options)
    assert (said.code, said.out) == (2, "")
    assert words in said.err


def test_a_timeline_is_of_one_trace(faultline: Callable[..., Any], trace: Path) -> None:
    assert "draws one trace" in faultline("stragglers", trace, trace, "--timeline", "t.json").err
    assert "draws one trace" in faultline("stragglers", "--timeline", "t.json").err


def test_without_files_the_traces_of_the_store_are_listed(
    faultline: Callable[..., Any], demo_store: Path
) -> None:
    said = faultline("stragglers", "--store", demo_store)
    assert said.code == 0
    assert len(said.json) == 3
    for record in said.json:
        assert {"S", "S_w", "M_W", "causes", "trace_id", "job_id", "job_meta"} <= record.keys()
    table = faultline("stragglers", "--store", demo_store, "--format", "table")
    assert "synthetic slow worker" in table.out
    assert "name them" in faultline("stragglers", "--store", demo_store, "--fix", "stage:0").err


def test_a_store_without_traces_says_what_fills_it(
    faultline: Callable[..., Any], empty_store: Path
) -> None:
    said = faultline("stragglers", "--store", empty_store)
    assert said.code == 2
    assert "faultline ingest straggler-trace" in said.err
