"""A query under way: cancelled, started ahead, given parameters; its errors point at the word."""

from __future__ import annotations

import datetime
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from data.errors import QueryError
from data.sandbox import QueryLimits, QueryResult, RunningQuery, keep_spares, run_query
from data.sandbox.query import MAX_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
ENDLESS = "SELECT count(*) FROM range(100000000000000)"
DEAF = "SELECT lpad('x', 2000000000, 'y')"
"""DuckDB ignores interrupts inside it."""


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small snapshot."""
    path = tmp_path_factory.mktemp("store") / "warehouse-1.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE jobs AS SELECT i AS job, 'ünïcode' AS name FROM range(10) r(i)")
    return path


@pytest.fixture
def _spares() -> Iterator[None]:
    keep_spares(2)
    yield
    keep_spares(0)


@pytest.mark.parametrize("sql", [ENDLESS, DEAF], ids=["endless", "deaf"])
def test_a_cancelled_query_ends_at_once(snapshot: Path, sql: str) -> None:
    running = RunningQuery(snapshot, sql)
    assert not running.wait(0.5)
    assert running.elapsed_seconds >= 0.5
    running.cancel()
    with pytest.raises(QueryError, match=r"the query was cancelled after \d+\.\d s"):
        running.result()
    assert running.seconds < running.limits.wall_seconds
    assert running.seconds == running.elapsed_seconds


def test_a_query_that_has_ended_keeps_its_answer(snapshot: Path) -> None:
    running = RunningQuery(snapshot, "SELECT 1")
    assert running.wait(20)
    running.cancel()
    assert running.result().rows == [(1,)]


def test_more_queries_than_the_server_runs_at_once_are_refused(snapshot: Path) -> None:
    running = [RunningQuery(snapshot, ENDLESS) for _ in range(MAX_AT_ONCE)]
    try:
        with pytest.raises(QueryError, match=f"{MAX_AT_ONCE} queries run on this server already"):
            run_query(snapshot, "SELECT 1")
    finally:
        for each in running:
            each.cancel()
            each.wait()
    assert run_query(snapshot, "SELECT 1").rows == [(1,)]


def test_a_query_that_cannot_be_started_takes_no_place(snapshot: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # no pipe can be opened
    try:
        for _ in range(MAX_AT_ONCE + 1):
            with pytest.raises(QueryError, match=r"cannot be started \(.*\): try again later"):
                RunningQuery(snapshot, "SELECT 1")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert run_query(snapshot, "SELECT 1").rows == [(1,)]


def test_names_of_columns_are_made_distinct() -> None:
    columns = ("a", "b", "a", "a_2", "a")
    assert _result(columns).names == ("a", "b", "a_2", "a_2_2", "a_3")


def test_many_columns_of_one_name_are_told_apart_at_once() -> None:
    names = _result(("a",) * 20_000).names
    assert len(set(names)) == 20_000
    assert names[-1] == "a_20000"


def _result(columns: tuple[str, ...]) -> QueryResult:
    return QueryResult(columns, ("INTEGER",) * len(columns), [], truncated=False, seconds=0.0)


@pytest.mark.usefixtures("_spares")
def test_a_spare_process_serves_one_query_and_no_other(snapshot: Path) -> None:
    sql = "SELECT current_connection_id(), current_transaction_id() FROM jobs LIMIT 1"
    answers = [run_query(snapshot, sql).rows for _ in range(6)]
    assert len({str(each) for each in answers}) == 1  # each is the first of a new process


@pytest.mark.usefixtures("_spares")
def test_a_spare_that_died_is_replaced(snapshot: Path) -> None:
    from data.sandbox import process

    for spare in process._spares:
        spare.kill()
    time.sleep(0.1)
    assert run_query(snapshot, "SELECT 1").rows == [(1,)]


@pytest.mark.usefixtures("_spares")
def test_spares_end_when_they_are_too_many() -> None:
    from data.sandbox import process

    keep_spares(1)
    assert len(process._spares) == 1


def test_spares_end_with_their_parent() -> None:
    code = (
        "import time; from data.sandbox import keep_spares, process; keep_spares(2); "
        "print(*[s._process.pid for s in process._spares], flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    time.sleep(1.0)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline and any(_runs(pid) for pid in pids):
        time.sleep(0.05)
    assert not any(_runs(pid) for pid in pids)


def _runs(pid: int) -> bool:
    """Whether a process runs; one that has ended keeps its number, but not its program."""
    program = Path(f"/proc/{pid}/cmdline")
    return program.exists() and bool(program.read_bytes())


def test_a_query_stands_behind_the_dashboard(snapshot: Path) -> None:
    running = RunningQuery(snapshot, ENDLESS)
    try:
        pid = running._process._process.pid
        score = Path(f"/proc/{pid}/oom_score_adj")
        until = time.monotonic() + 30
        while score.read_text().strip() != "1000" and time.monotonic() < until:
            time.sleep(0.05)  # it takes its place once it has started
        assert os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getsid(pid) == os.getsid(0)  # a session of its own would be given its own share
        assert score.read_text().strip() == "1000"
    finally:
        running.cancel()
        running.wait()


def test_a_confined_process_reaches_no_path() -> None:
    code = (
        "import os, pathlib, signal, sys\n"
        "from data.sandbox.landlock import reach_nothing\n"
        "if not reach_nothing(): sys.exit(77)\n"
        "for act in (lambda: open('/etc/passwd'), lambda: os.listdir('/'), lambda: os.mkdir('/tmp/x-'),"
        " lambda: os.unlink(sys.argv[1]), lambda: os.rename(sys.argv[1], sys.argv[1] + '2'),"
        " lambda: os.execv('/bin/true', ['true'])):\n"
        "    try: act()\n"
        "    except PermissionError: continue\n"
        "    sys.exit(1)\n"
    )
    victim = Path(__file__)
    done = subprocess.run([sys.executable, "-c", code, str(victim)], cwd=ROOT, check=False)
    if done.returncode == 77:
        pytest.skip("this kernel has no Landlock")
    assert done.returncode == 0
    assert victim.exists()


def test_parameters_keep_their_types(snapshot: Path) -> None:
    at = datetime.datetime(2026, 2, 3, 4, 5, tzinfo=datetime.UTC)
    known = {"cluster": None, "from_at": at, "min_gpus": 8, "name": "ünïcode'; DROP TABLE jobs"}
    sql = "SELECT $cluster IS NULL, $from_at, typeof($from_at), $min_gpus + 1, $name"
    assert run_query(snapshot, sql, parameters=known).rows == [
        (True, at, "TIMESTAMP WITH TIME ZONE", 9, known["name"])
    ]
    assert run_query(snapshot, "SELECT count(*) FROM jobs", parameters=known).rows == [(10,)]


def test_parameters_of_another_name_are_told(snapshot: Path) -> None:
    with pytest.raises(QueryError, match=r"parameter \$user is unknown: there are \$cluster"):
        run_query(snapshot, "SELECT $user", parameters={"cluster": None})
    with pytest.raises(QueryError, match=r"parameter \? is unknown"):
        run_query(snapshot, "SELECT ?", parameters={"cluster": None})


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT * FORM jobs", (1, 15, 4)),
        ("SELECT job,\n  nope\nFROM jobs", (2, 3, 4)),
        ("-- ünïcode\nSELECT 'é', nope FROM jobs", (2, 13, 4)),
        ("SELECT fooo(1)", (1, 8, 7)),
        ("SELECT 1 FROM nowhere", (1, 15, 7)),
        ("EXPLAIN SELECT nope FROM jobs", (1, 16, 4)),
        ("SELECT 'a'::INTEGER", (1, 11, 9)),
    ],
)
def test_an_error_points_at_the_word(snapshot: Path, sql: str, place: tuple[int, int, int]) -> None:
    with pytest.raises(QueryError) as refusal:
        run_query(snapshot, sql)
    assert refusal.value.place == place
    assert f"(line {place[0]}, column {place[1]}, at: " in str(refusal.value)


def test_a_refusal_without_a_place_has_none(snapshot: Path) -> None:
    with pytest.raises(QueryError) as refusal:
        run_query(snapshot, "DROP TABLE jobs")
    assert refusal.value.place is None


def test_a_long_request_reaches_a_process_that_starts(snapshot: Path) -> None:
    filler = " || ".join(f"'{n:090d}'" for n in range(900))
    assert len(filler) > 2**16
    assert len(run_query(snapshot, f"SELECT {filler}").rows[0][0]) == 900 * 90


@pytest.mark.benchmark
def test_a_large_answer_lets_other_threads_work(snapshot: Path) -> None:
    pauses, stop = [], threading.Event()

    def work() -> None:
        last = time.monotonic()
        while not stop.is_set():
            time.sleep(0.001)
            pauses.append(time.monotonic() - last)
            last = time.monotonic()

    worker = threading.Thread(target=work)
    worker.start()
    result = run_query(snapshot, "SELECT repeat('x', 3000) FROM range(10000)", QueryLimits())
    stop.set()
    worker.join()
    assert len(result.rows) == 10_000
    assert sorted(pauses)[int(0.99 * len(pauses))] < 0.05
