"""Traces and jobs spread over cores or Spark: the same answers; what cannot travel is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analytics.errors import OutOfRangeError
from app.cli.spread import Piece, Spread, outcomes
from data.errors import DataError
from data.reduce.spark_session import reason_of
from data.reduce.spark_tasks import Task, Unreached, called, packed, refusal
from tests.spark_master import skip_without_spark

if TYPE_CHECKING:
    from collections.abc import Callable

LOST = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 failed 4 times
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2935)
"""
TIMED = {"read_seconds", "seconds", "findings_seconds"}
RAISED = LOST + "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"


def half(number: int) -> float:
    """Half of a number, with each way to refuse one."""
    if number == 0:
        raise DataError("zero: has no half worth telling")
    if number == 1:
        raise OutOfRangeError("number", "above 1", number, "pass 2")
    if number == 2:
        raise FileNotFoundError(2, "No such file or directory")
    return number / 2


def test_each_piece_has_its_outcome_in_order_and_its_refusal_names_it() -> None:
    pieces = [Piece((number,), (), f"n{number}") for number in (8, 1, 0, 4, 2)]
    assert list(outcomes(half, pieces, Spread(workers=1), "numbers")) == [
        (4.0, None),
        (None, "n1: number must be above 1, got 1: pass 2"),
        (None, "n0: zero: has no half worth telling"),
        (2.0, None),
        (None, "n2: cannot be read (No such file or directory): check the path and access"),
    ]


def test_a_piece_without_a_name_is_refused_in_the_words_of_the_analysis() -> None:
    ((found, why),) = outcomes(half, [Piece((1,), ())], Spread(), "numbers")
    assert (found, why) == (None, "number must be above 1, got 1: pass 2")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["stragglers", "a", "--master", "spark://h"], "--master says nothing to this machine"),
        (["stragglers", "a", "--engine", "spark", "--workers", "2"], "--workers counts processes"),
        (["stragglers", "--engine", "spark"], "no TRACE means the store's traces"),
        (["stragglers", "-", "--engine", "spark"], "- is standard input, which is read here"),
        (["stragglers", "a", "--engine", "spark", "--timeline", "t"], "--timeline draws one trace"),
        (["machines", "--engine", "spark"], "no FILE means the store's metrics"),
        (["machines", "-", "--engine", "spark"], "- is standard input, which is read here"),
        (["machines", "a", "--engine", "spark", "--learn", "s"], "--learn makes one threshold"),
        (["machines", "a", "--each", "--learn", "s"], "leave --each out"),
        (["machines", "--each"], "--each judges FILEs: name them"),
        (["machines", "-", "a", "--each"], "standard input is one job"),
    ],
)
def test_what_cannot_be_spread_is_refused_in_a_line(
    refused: Callable[..., str], words: list[str], why: str
) -> None:
    assert why in refused(*words)


@pytest.mark.parametrize("command", [["stragglers"], ["machines"], ["machines", "--each"]])
def test_without_java_or_spark_one_line_says_what_to_install(
    refused: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    words = (*command, tmp_path / "a.parquet", "--engine", "spark")
    assert refused(*words).endswith("no Spark: pip install -e .[spark]")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no Java, which Spark runs on: install" in refused(*words)


def test_a_worker_reads_what_a_relative_path_means_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a.txt").write_text("1")
    monkeypatch.chdir(tmp_path)
    there = str(tmp_path / "here")
    assert called(os.path.getsize, there, Task("a.txt", ("a.txt",))) == 1
    assert called(os.path.getsize, there, Task(f"{there}/a.txt", (f"{there}/a.txt",))) == 1
    assert Path.cwd() == tmp_path
    gone = called(os.path.getsize, there, Task("b.txt", ("a.txt", "b.txt")))
    assert isinstance(gone, Unreached)
    assert gone.path == "b.txt"
    assert isinstance(called(len, there, Task("", ("a" * 300,))), Unreached)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("No module named 'numpy'", "cannot run Faultline .No module named 'numpy'.: install"),
        ('java.io.IOException: Cannot run program "/x/python": error=2', "/x/python.*PYSPARK_PYTH"),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot",
            "version: 3.12 than that in driver: 3.11.: install requirements.lock",
        ),
    ],
)
def test_a_worker_that_cannot_run_the_product_is_told(text: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        raise refusal(RuntimeError(f"{RAISED}{text}\n"))


def test_what_spark_fails_of_is_told_and_an_error_of_ours_stays_one() -> None:
    with pytest.raises(DataError, match=r"Spark failed \(org.apache.spark.SparkException: Job abo"):
        raise refusal(RuntimeError(LOST))
    ours = RuntimeError(f"{RAISED}ZeroDivisionError: division by zero\n")
    assert refusal(ours) is ours
    assert reason_of(OSError()) == "OSError"


def job(path: Path, *, faulty: int | None, seconds: int = 600, step: int = 1) -> Path:
    """Power of six machines, which wobble; one of them may fall by a third half way."""
    rows = [
        f"{t},n{k},{500 + 7 * ((t * 31 + k * 17) % 13) - 170 * (k == faulty and t >= seconds // 2)}"
        for t in range(0, seconds, step)
        for k in range(6)
    ]
    path.write_text("\n".join(["at,node,power", *rows]))
    return path


def untimed(record: dict[str, Any]) -> dict[str, Any]:
    """A record without the time that it took."""
    return {key: value for key, value in record.items() if key not in TIMED}


def test_each_file_is_judged_as_it_is_alone(faultline: Callable[..., Any], tmp_path: Path) -> None:
    fine, faulty = job(tmp_path / "a.csv", faulty=None, step=2), job(tmp_path / "b.csv", faulty=2)
    short, gone = job(tmp_path / "c.csv", faulty=None, seconds=60), tmp_path / "d.csv"
    alone = {path: faultline("machines", path, "--format", "json").json for path in (fine, faulty)}
    files = (fine, faulty, short, gone)
    said = faultline("machines", *files, "--each", "--workers", 1, "--format", "json")
    assert said.code == 2
    assert [untimed(one) for one in said.json] == [
        {"file": str(path)} | untimed(one) for path, one in alone.items()
    ]
    assert [one["verdict"] for one in said.json] == ["none", "faulty"]
    assert f"faultline machines: {short}: samples cover 60 s" in said.err
    assert f"faultline machines: {gone}: no such file" in said.err
    table = faultline("machines", fine, faulty, "--each", "--workers", 1, "--format", "table")
    assert (table.code, table.out.splitlines()[0]) == (0, "A machine is faulty in 1 of 2 jobs.")
    assert table.err.startswith(f"{fine}: Samples are 2 s apart")
    header, *rows = faultline(
        "machines", fine, faulty, "--each", "--workers", 1, "--format", "csv"
    ).out.splitlines()
    assert header == "file,verdict,machine,metric,since_at,seconds"
    assert [row.split(",")[1:4] for row in rows] == [["none", "", ""], ["faulty", "n2", "power"]]


@pytest.mark.slow
def test_the_archive_that_travels_holds_all_that_the_analyses_need(tmp_path: Path) -> None:
    path = job(tmp_path / "a.csv", faulty=2)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from app.cli import main, stragglers, spread\n"
        "from app.answers.nodes import machines_by_job\n"
        "from analytics.nodes.machines.detection import Settings\n"
        "told = machines_by_job.judged(sys.argv[2], Settings(), [])\n"
        "print(told.record['machine'], all('faultline.zip' in m.__file__ for m in (stragglers, spread)))\n"
    )
    run = [sys.executable, "-I", "-c", code, str(packed(tmp_path)), str(path)]
    said = subprocess.run(run, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert said.stdout == "n2 True\n"


@pytest.mark.service
@pytest.mark.parametrize("python", ["/nowhere/python", "without libraries"])
def test_workers_whose_python_does_not_fit_are_told_in_a_line(
    faultline: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    skip_without_spark()
    if python == "without libraries":
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True
        )
        python = str(tmp_path / "bare" / "bin" / "python")
    monkeypatch.setenv("PYSPARK_PYTHON", python)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    said = faultline("machines", job(tmp_path / "a.csv", faulty=2), "--engine", "spark")
    assert (said.code, said.out) == (2, "")
    assert "a worker of Spark cannot run Faultline" in said.err.splitlines()[-1]
