"""Steps of a file as NumPy columns: the short way of clean CSV says what the careful way says."""

from __future__ import annotations

import gzip
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import SourceError
from data.ingest import logged_steps as module
from data.ingest.formats.source import opened
from data.ingest.logged_steps import LoggedSteps, logged_steps
from data.ingest.reader import Options
from data.ingest.readers.training import training_metrics
from data.ingest.readers.training.step_records import NO_JOB

if TYPE_CHECKING:
    from collections.abc import Callable

AT = 1_767_225_600  # 2026-01-01T00:00:00Z


def steps_of(text: str | bytes, name: str = "steps.csv", **options: Any) -> LoggedSteps:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return logged_steps(path, Options(**options))


def carefully(text: str, **options: Any) -> LoggedSteps:
    """What the reader of stores makes of the same file."""
    with tempfile.TemporaryDirectory() as folder, duckdb.cursor() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        path = Path(folder) / "steps.csv"
        path.write_text(text, encoding="utf-8", newline="")
        with opened(str(path), Path(folder)) as source:
            stated = Options(**({"job_id": NO_JOB} | options))
            batch = training_metrics.read(source, stated, connection)
            return module._of_batch(batch, training_metrics.READER, source, connection)


def assert_same(one: LoggedSteps, other: LoggedSteps) -> None:
    for field in fields(LoggedSteps):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name in ("run", "runs"):
            continue
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b, err_msg=field.name)
        elif field.name == "notices":
            assert sorted(a) == sorted(b)
        elif field.name == "series":
            assert a.keys() == b.keys()
            for name in a:
                np.testing.assert_array_equal(a[name], b[name])
        else:
            assert a == b, field.name
    assert [one.runs[i] for i in one.run] == [other.runs[i] for i in other.run]


CSV = {
    "numbers": f"step,timestamp,loss,lr,depth\n1,{AT}.5,2.5,1e-3,4\n2,{AT + 1},nan,,\n3,{AT + 2},inf,1e-3,5\n",
    "no time": "step,loss\n3,2.5\n1,2.25\n3,2\n",
    "texts": "step,time,loss,note\n1,2026-01-01 00:00:00,2.5,a\n2,2026-01-01T01:00:00Z,2,7\n",
    "quoted": '"_step","_timestamp","train/loss"\n"1","1767225600.0","2.5"\n"2","1767225601.0",""\n',
    "runs": "step,loss,run,job_id\n1,2,a,\n1,3,b,7\n2,2,a,\n2,4,,7\n3,4,,\n",
    "events": f"step,time,loss,event\n5,{AT},2.5,\n5,{AT},,saved\n6,{AT},,eval_end\n,{AT},,loaded\n",
    "signs for nothing": "step,loss,grad_norm\n1,None,-\n2,n/a,1\n3,NULL,\n",
    "broken rows": "step,loss,rank\n1,2,0\n1.5,2,0\n,3,0\nx,4,1\n2,5,main\n3,two,0\n4,6,1\n",
    "torn rows": 'step,loss,note\n1,2,"a, b"\n2,3\n3,4,c\n4,5,"d, e",f\n5,6,g\n',
    "CRLF": "step,loss\r\n1,2\r\n2,3\r\n",
    "semicolons": "iteration;lm loss;elapsed time per iteration (ms)\n1;2.5;250\n2;2;500\n",
    "blank lines": "step,loss\n\n1,2\n\n2,3\n",
    "a late text": "step,loss\n" + "".join(f"{n},2\n" for n in range(1, 1_200)) + "1200,oops\n1201,2\n",
}  # fmt: skip


@pytest.mark.parametrize("name", CSV)
def test_the_short_way_says_what_the_careful_way_says(name: str) -> None:
    assert_same(steps_of(CSV[name]), carefully(CSV[name]))


VALUES = st.one_of(
    st.floats(width=32).map(repr),
    st.integers(-(10**6), 10**6).map(str),
    st.sampled_from(["", "nan", "inf", "-inf", "None", " 2.5", "1e400", '"3"', "x", "0x10", "1_0"]),
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9).map(str) | VALUES, VALUES, VALUES), min_size=1, max_size=6)
)
def test_whatever_stands_in_a_field_both_ways_agree(rows: list[tuple[str, str, str]]) -> None:
    lines = [",".join(row) for row in [("7", "2.5", "1"), *rows]]
    text = "step,loss,depth\n" + "\n".join(lines) + "\n"
    assert_same(steps_of(text), carefully(text))


def test_rows_keep_the_order_of_the_file_with_restarts_and_several_runs() -> None:
    found = steps_of("step,loss,run\n3,1,a\n1,2,b\n3,3,a\n2,4,b\n2,5,a\n")
    assert found.step.tolist() == [3, 1, 3, 2, 2]
    assert [found.runs[i] for i in found.run] == ["a", "b", "a", "b", "a"]


def test_what_no_row_states_is_nan_and_takes_no_memory() -> None:
    found = steps_of("step,loss\n1,2\n2,3\n")
    assert np.isnan(found.throughput).all()
    assert found.throughput.strides == (0,)
    assert (found.runs, found.checkpoint_event.tolist(), found.series) == ((None,), [0, 0], {})
    assert np.isnan(found.logged_at).all()


def test_saves_and_loads_have_codes_and_may_lack_their_step() -> None:
    found = steps_of(CSV["events"])
    assert found.checkpoint_event.tolist() == [0, 1, 2]
    assert np.isnan(found.step[2])
    assert (found.n_read, found.n_skipped) == (4, 1)


def test_a_run_or_job_that_is_stated_names_the_rows_that_name_none() -> None:
    assert steps_of("step,loss\n1,2\n", run_id="r").runs == ("r",)
    assert steps_of("step,loss\n1,2\n", job_id="7").runs == ("7",)
    assert steps_of("step,loss,run\n1,2,a\n2,2,\n", run_id="r").runs == ("a", "r")


def test_local_times_follow_the_zone_and_else_a_notice_says_utc() -> None:
    text = "step,loss,time\n1,2,2026-07-01 12:00:00\n"
    assert steps_of(text, timezone="Europe/Berlin").logged_at[0] == 1_782_900_000
    found = steps_of(text)
    assert found.logged_at[0] == 1_782_907_200
    assert "times without a zone, read as UTC (pass --timezone)" in found.notices


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_packed_files_are_read(pack: Callable[[bytes], bytes]) -> None:
    assert steps_of(pack(b"step,loss\n1,2\n2,3\n")).loss.tolist() == [2, 3]


def test_nan_from_the_first_step_and_constant_series_are_kept() -> None:
    found = steps_of("step,loss,grad_norm,lr\n1,nan,1,0\n2,nan,1,0\n")
    assert np.isinf(found.loss).all()
    assert (found.grad_norm.tolist(), found.learning_rate.tolist()) == ([1, 1], [0, 0])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("step,loss\n", "holds no logged step: there is nothing to judge"),
        ("step,loss\nx,2\n", r"1 of 1 records rejected: step is no whole number \(1\)"),
        ("hello\nworld\n", "holds no logged steps: give one of training-metrics, "),
        (b"\x00\x01\x02" * 999, "is binary, not text"),
        (gzip.compress(b"step,loss\n1,2\n" * 999)[:-20], "ends early or is broken"),
        ("step,loss\n" + "1" * 11_000_000 + "\n", "line longer than the limit of 10 MB"),
        (",".join(["step", "loss", *map(str, range(5_000))]) + "\n1,2\n", "limit of 4,096"),
    ],
)  # fmt: skip
def test_what_holds_no_steps_is_refused_with_a_line(content: str | bytes, said: str) -> None:
    with pytest.raises(SourceError, match=said) as error:
        steps_of(content)
    assert "\n" not in str(error.value)
