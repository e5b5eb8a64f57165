"""Reductions by Spark are those by DuckDB, on a standalone master, a worker killed among them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from data.errors import DataError
from data.reduce.spark_scan import united
from data.reduce.windows import JobWindow
from tests.data.reduce.events import events
from tests.data.reduce.local_times import LOCAL, ZONE, tables
from tests.data.reduce.samples import EPOCH, content, reduced, same, samples, written
from tests.data.reduce.test_reduced_events import WRONG
from tests.spark_master import Running, free_port, running, skip_without_spark, worker_killed

KINDS = ("minutes", "hours", "changes", "windows", "kept")


@pytest.fixture(autouse=True)
def on_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark listens here alone."""
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")


def test_spark_without_java_is_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(samples(hours=0.1), tmp_path / "a.parquet")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(DataError, match="no Java, which Spark runs on: install"):
        reduced(tmp_path / "out", path, engine="spark")


class Ends:
    """A job on a node that ended in the first hour."""

    def marks(self) -> dict[str, str]:
        """The day has a job."""
        return {"2026-01-05": "one"}

    def windows(self, day: str) -> list[JobWindow]:
        """Its last half hour."""
        end_us = round(EPOCH.timestamp() * 1e6) + 2_400_000_000
        job = JobWindow("a", ["n1"], end_us - 1_800_000_000, end_us)
        return [job] if day == "2026-01-05" else []


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Running]:
    """A standalone master with two workers of a core each."""
    with running(tmp_path) as found:
        yield found


def equal(out: Path, wanted: Path) -> None:
    """Each file's rows: texts, counts and extremes exactly, sums and quantiles to 1e-12."""
    for kind in KINDS:
        same(content(out, kind), content(wanted, kind))


@pytest.mark.service
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_what_duckdb_gives_and_again_when_a_worker_is_killed(
    tmp_path: Path, master: Running
) -> None:
    frame = samples(hours=3.0, step_s=30)
    frame["observed_at"] = frame["observed_at"].astype("datetime64[us, UTC]")
    inputs = [
        written(frame.iloc[k::5], tmp_path / f"{k}{form}")
        for k, form in enumerate((" a.parquet", ".parquet", ".csv", " b.csv", ".jsonl"))
    ]
    by_duckdb = reduced(tmp_path / "duckdb", *inputs, jobs=Ends())
    stated: dict[str, Any] = {"engine": "spark", "master": master.url, "jobs": Ends()}
    by_spark = reduced(tmp_path / "spark", *inputs, **stated)
    assert by_spark.manifest.inputs == by_duckdb.manifest.inputs
    kept = [by.manifest.partitions["2026-01-05"].windows for by in (by_duckdb, by_spark)]
    assert kept[0] == kept[1]
    assert kept[0]["jobs"] == 1
    equal(tmp_path / "spark", tmp_path / "duckdb")
    with worker_killed(master) as begun:
        reduced(tmp_path / "killed", *inputs, **stated, progress=begun)
    equal(tmp_path / "killed", tmp_path / "duckdb")


@pytest.mark.service
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_bursts_that_duckdb_gives_and_again_when_a_worker_is_killed(
    tmp_path: Path, master: Running
) -> None:
    frame = events(1, busy=0.3)
    frame["observed_at"] = frame["observed_at"].astype("datetime64[us, UTC]")
    frame["xid"] = frame["xid"].astype("string")
    inputs = [
        written(frame.iloc[k::3], tmp_path / f"{k}.{form}")
        for k, form in enumerate(("parquet", "csv", "jsonl"))
    ]
    inputs += [written(frame.iloc[::7], tmp_path / "again.parquet"), tmp_path / "wrong.csv"]
    inputs[-1].write_text(WRONG)
    by_duckdb = reduced(tmp_path / "duckdb", *inputs, kind="events")
    stated: dict[str, Any] = {"engine": "spark", "master": master.url, "kind": "events"}
    by_spark = reduced(tmp_path / "spark", *inputs, **stated)
    assert by_spark.manifest.inputs == by_duckdb.manifest.inputs
    assert content(tmp_path / "spark", "bursts") == content(tmp_path / "duckdb", "bursts")
    with worker_killed(master) as begun:
        reduced(tmp_path / "killed", *inputs, **stated, progress=begun)
    assert content(tmp_path / "killed", "bursts") == content(tmp_path / "duckdb", "bursts")


ODD = """node,at,metric,value,xid,check,message
\u00a0n1\u3000,2026-10-25T02:30:00,x,1,79,,"fell
off, ""now"" or so"
n1,2026-10-25T02:31:00,x,2
\tn1,2026-10-25 02:32:00,x,3,,nhc,whole
"""


@pytest.mark.service
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["metrics", "events"])
def test_spark_reads_local_times_and_odd_texts_as_duckdb_reads_them(
    tmp_path: Path, kind: str
) -> None:
    skip_without_spark()
    inputs = [*tables(tmp_path / "given"), tmp_path / "odd.csv", tmp_path / "crlf.csv"]
    for path, end in zip(inputs[-2:], ("\n", "\r\n"), strict=True):
        path.write_bytes(ODD.replace("\n", end).encode())
    for path in inputs[:]:
        inputs.append(path.with_name(f"again+%20\u00e4 {path.name}"))
        inputs[-1].write_bytes(path.read_bytes())
    if kind == "events":
        for number in range(2):
            said = [f"{at} n{number} kernel: Xid (PCI:0000:3b:00): 79, off" for at in LOCAL]
            inputs.append(tmp_path / f"kern-{number}.log")
            inputs[-1].write_text("\n".join([*said, ""]))
    stated: dict[str, Any] = {"kind": kind, "timezone": ZONE}
    by_duckdb = reduced(tmp_path / "duckdb", *inputs, **stated)
    assert not by_duckdb.manifest.refused
    by_spark = reduced(tmp_path / "spark", *inputs, **stated, engine="spark")
    assert by_spark.manifest.inputs == by_duckdb.manifest.inputs
    assert by_spark.counts == by_duckdb.counts
    assert by_spark.notices == by_duckdb.notices
    for what in ("minutes", "hours") if kind == "metrics" else ("bursts",):
        same(content(tmp_path / "spark", what), content(tmp_path / "duckdb", what))


class Frame(NamedTuple):
    """What is asked of a frame when it is united with others."""

    rows: list[int]
    depth: int = 0

    def unionAll(self, other: Frame) -> Frame:  # noqa: N802 - Spark's name
        return Frame(self.rows + other.rows, max(self.depth, other.depth) + 1)


def test_frames_of_thousands_of_files_are_united_in_few_steps() -> None:
    found = united([Frame([k]) for k in range(3_000)])
    assert found == Frame([*range(3_000)], 12)
    with pytest.raises(IndexError):
        united([])  # not what was united before


@pytest.mark.service
def test_a_master_that_does_not_answer_is_told(tmp_path: Path) -> None:
    if find_spec("pyspark") is None:
        pytest.skip("no Spark: pip install -e .[spark]")
    path = written(samples(hours=0.1), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="no master answers there"):
        reduced(tmp_path / "out", path, engine="spark", master=f"spark://127.0.0.1:{free_port()}")
