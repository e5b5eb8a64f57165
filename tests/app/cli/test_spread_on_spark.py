"""20 traces and 20 jobs on a standalone master, a worker killed half way: the local answers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns
from tests.spark_master import Running, free_port, running, skip_without_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "straggler"
TIMED = {"read_seconds", "seconds", "findings_seconds"}
STARTED_S = 300.0

pytestmark = [pytest.mark.service, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    with running(tmp_path) as found:
        yield found


def traces(folder: Path) -> list[str]:
    """The published traces where they are, and generated ones of other sizes, to 20."""
    found = [str(path) for path in sorted(SHARED.glob("trace-*.parquet"))]
    rng = np.random.default_rng(7)
    for k in range(20 - len(found)):
        dp, pp, micro_batches = 2 + k % 3, 2 + k % 2, 4 + k % 5
        shape = TraceShape(dp=dp, pp=pp, micro_batches=micro_batches, steps=(1, 2, 51 + k), tp=4)
        forward = 0.1 + 0.03 * rng.random((3, dp, pp, 1, micro_batches))
        columns = trace_columns(shape, TraceCosts(forward=forward, backward=2 * forward))
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        if k % 4:
            pq.write_table(table, folder / f"{k}.parquet")
            found.append(str(folder / f"{k}.parquet"))
        else:
            pa.csv.write_csv(table, folder / f"{k}.csv")
            found.append(f"{k}.csv")  # where the command is called
    return found


def jobs(folder: Path) -> list[str]:
    """20 jobs of another number of machines each; in every third one of them loses power."""
    rng = np.random.default_rng(8)
    for k in range(20):
        n, seconds = 5 + k % 7, 600
        at = np.repeat(np.arange(seconds), n)
        node = np.tile(np.arange(n), seconds)
        power = 500 + 9 * rng.normal(size=at.size) - 150 * ((node == 2) & (at > 300)) * (k % 3 == 0)
        columns = {"at": at, "node": [f"n{each}" for each in node], "power": power}
        pq.write_table(pa.table(columns), folder / f"job-{k}.parquet")
    return [str(folder / f"job-{k}.parquet") for k in range(20)]


def untimed(text: str) -> Any:
    """JSON without the time that each answer took, keys in their order."""
    found = json.loads(text)
    records = found if isinstance(found, list) else [found]
    return json.dumps([{k: v for k, v in one.items() if k not in TIMED} for one in records])


def told(err: str) -> list[str]:
    """What a command says; what Java and Spark say of themselves is left out."""
    return [
        line for line in err.splitlines() if line.startswith(("faultline", "trace", "/", "job"))
    ]


def killing(found: Running) -> Thread:
    """Kills a worker once both have begun on a task, for which they fetch the product's code."""

    def kill() -> None:
        until = time.monotonic() + STARTED_S
        while len(list(found.work.glob("app-*/*/faultline.zip"))) < 2:
            if time.monotonic() > until:
                return
            time.sleep(0.02)
        found.workers[0].kill()

    thread = Thread(target=kill)
    thread.start()
    return thread


def test_twenty_traces_and_a_worker_that_is_killed(
    faultline: Callable[..., Any], tmp_path: Path, master: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    names = ["broken.parquet", "gone.parquet", *traces(tmp_path)]
    assert len(names) == 22
    words = ["stragglers", *names, "--fix", "stage:1"]
    here = faultline(*words, "--workers", "1")
    spark = ("--engine", "spark", "--master", master.url)
    thread = killing(master)
    there = faultline(*words, *spark)
    thread.join()
    assert master.workers[0].wait(30) == -9
    assert (here.code, there.code) == (2, 2)
    assert untimed(there.out) == untimed(here.out)
    assert told(there.err) == told(here.err) != []


def test_twenty_jobs_and_a_worker_that_is_killed(
    faultline: Callable[..., Any], tmp_path: Path, master: Running
) -> None:
    names = jobs(tmp_path)
    spark = ("--engine", "spark", "--master", master.url)
    words = ["machines", *names, "--each", "--format", "json"]
    here = faultline(*words, "--workers", "1")
    assert [one["verdict"] for one in here.json].count("faulty") >= 5
    thread = killing(master)
    there = faultline(*words, *spark)
    thread.join()
    assert master.workers[0].wait(30) == -9
    assert (here.code, there.code) == (0, 0)
    assert untimed(there.out) == untimed(here.out)
    assert told(there.err) == told(here.err)
    one = ["machines", *names[:1], "--format", "json"]
    assert untimed(faultline(*one, *spark).out) == untimed(faultline(*one).out)


@pytest.mark.parametrize("command", [["stragglers"], ["machines", "--each"]])
def test_a_master_that_does_not_answer_is_told(
    refused: Callable[..., str], tmp_path: Path, command: list[str]
) -> None:
    skip_without_spark()
    url = f"spark://127.0.0.1:{free_port()}"
    assert "no master answers there" in refused(
        *command, tmp_path / "a", "--engine", "spark", "--master", url
    )
