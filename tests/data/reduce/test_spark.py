"""Reductions by Spark are those by DuckDB, on a standalone master, a worker killed among them."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import pytest

from data.errors import DataError
from data.reduce.windows import JobWindow
from tests.data.reduce.samples import EPOCH, content, reduced, same, samples, written

KINDS = ("minutes", "hours", "changes", "windows", "kept")


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


class Running(NamedTuple):
    """A master with its workers."""

    url: str
    workers: list[subprocess.Popen[bytes]]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Running]:
    """A standalone master with two workers of a core each."""
    if find_spec("pyspark") is None:
        pytest.skip("no Spark: pip install -e .[spark]")
    if shutil.which("java") is None:
        pytest.skip("no Java, which Spark runs on")
    import pyspark

    home, port = Path(pyspark.__file__).parent, _free_port()
    environment = os.environ | {
        "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
    }  # fmt: skip
    begin = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy"]

    def start(what: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [begin[0], f"{begin[1]}.{what}", "--webui-port", "0", *arguments]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, env=environment, **quiet)  # type: ignore[call-overload, no-any-return]

    url = f"spark://127.0.0.1:{port}"
    started = [start("master.Master", "--host", "127.0.0.1", "--port", str(port))]
    try:
        until = time.monotonic() + 120
        while not _answers(port):
            assert time.monotonic() < until
            time.sleep(0.2)
        for _ in range(2):
            worker = ("worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g")
            started.append(start(*worker, url))
        yield Running(url, started[1:])
    finally:
        for process in started:
            process.kill()
            process.wait()


def equal(out: Path, wanted: Path) -> None:
    """Each file's rows: texts, counts and extremes exactly, sums and quantiles to 1e-12."""
    for kind in KINDS:
        same(content(out, kind), content(wanted, kind))


@pytest.mark.service
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_what_duckdb_gives_and_again_when_a_worker_is_killed(
    tmp_path: Path, master: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
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
    killed = Timer(5.0, master.workers[0].kill)

    def kill_soon(text: str) -> None:
        if re.match(r"2026-01-05: ", text):
            killed.start()

    reduced(tmp_path / "killed", *inputs, **stated, progress=kill_soon)
    killed.join()
    assert master.workers[0].wait() == -9
    equal(tmp_path / "killed", tmp_path / "duckdb")


@pytest.mark.service
def test_a_master_that_does_not_answer_is_told(tmp_path: Path) -> None:
    if find_spec("pyspark") is None:
        pytest.skip("no Spark: pip install -e .[spark]")
    path = written(samples(hours=0.1), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="no master answers there"):
        reduced(tmp_path / "out", path, engine="spark", master=f"spark://127.0.0.1:{_free_port()}")
