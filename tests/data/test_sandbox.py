"""Ad hoc SQL answers honest queries, refuses everything else, and ends what runs away."""

import contextlib
import datetime
import math
import os
import shutil
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from data.errors import QueryError
from data.sandbox import QueryLimits, QueryResult, judge, run_query
from tests.data.judged_here import ask

ROOT = Path(__file__).resolve().parents[2]
QUICK = QueryLimits(wall_seconds=60.0, cpu_seconds=5)  # a busy machine gives little of it


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small snapshot: 1,000 jobs of 5 users."""
    path = tmp_path_factory.mktemp("store") / "warehouse-1.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(
            "CREATE TABLE jobs AS SELECT i AS job, 'u' || i % 5 AS \"user\", i % 7 AS n_gpus, "
            "TIMESTAMPTZ '2026-01-01 00:00:00+00' + INTERVAL (i) HOUR AS start_at "
            "FROM range(1000) AS r(i)"
        )
    return path


@pytest.mark.parametrize("at", [5_000, 12_300])
def test_a_damaged_snapshot_is_told_with_the_way_back(
    snapshot: Path, tmp_path: Path, at: int
) -> None:
    damaged = bytearray(snapshot.read_bytes())
    damaged[at] ^= 1
    (tmp_path / "warehouse-1.duckdb").write_bytes(damaged)
    told = r"^warehouse-1\.duckdb: is damaged \(Corrupt.*\): restore it from a backup$"
    with pytest.raises(QueryError, match=told):
        run_query(tmp_path / "warehouse-1.duckdb", "SELECT max(job), max(start_at) FROM jobs")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that no query may read."""
    path = tmp_path / "secret.csv"
    path.write_text("a,b\n1,hunter2\n")
    return path


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT count(*) FROM jobs", [(1000,)]),
        ("select 1;", [(1,)]),
        ("/* a comment */ SELECT 1 -- ; SELECT 2", [(1,)]),
        ("FROM jobs SELECT count(*)", [(1000,)]),
        ("VALUES (1, 'a'), (2, 'b')", [(1, "a"), (2, "b")]),
        ("SELECT list_transform([1, 2], lambda x: x + 1)", [([2, 3],)]),
        ("SELECT [x * 2 FOR x IN [1, 2, 3] IF x > 1]", [([4, 6],)]),
        (
            "WITH RECURSIVE t AS (SELECT 1 n UNION ALL SELECT n + 1 FROM t WHERE n < 5) FROM t",
            [(1,), (2,), (3,), (4,), (5,)],
        ),
        (
            'SELECT max(job) OVER (PARTITION BY "user") AS last FROM jobs QUALIFY job = last',
            [(995,), (996,), (997,), (998,), (999,)],
        ),
        (
            "SELECT sum(job) OVER (ORDER BY job ROWS 1 PRECEDING) AS s FROM jobs LIMIT 3",
            [(0,), (1,), (3,)],
        ),
        ("SELECT count(*) FROM jobs AS a JOIN jobs AS b USING (job)", [(1000,)]),
        ("SELECT count(*) FROM jobs TABLESAMPLE 100 PERCENT", [(1000,)]),
        ("SELECT current_setting('TimeZone')", [("UTC",)]),
        ("SELECT count(*) FROM (SUMMARIZE jobs)", [(4,)]),
        ("SELECT count(*) FROM (PIVOT jobs ON n_gpus IN (0, 1) USING count(*))", [(1000,)]),
    ],
)
def test_an_honest_query_is_answered(snapshot: Path, sql: str, expected: list[object]) -> None:
    assert sorted(ask(snapshot, sql).rows) == expected


@pytest.mark.parametrize(
    ("sql", "columns", "n_rows"),
    [
        ("SUMMARIZE jobs", "column_name", 4),
        ("DESCRIBE jobs", "column_name", 4),
        ("DESCRIBE SELECT 1 AS a, 2 AS b", "column_name", 2),
        ("SHOW TABLES", "name", 1),
        ("TABLE jobs", "job", 1000),
        ("EXPLAIN SELECT * FROM jobs", "explain_key", 1),
        ("EXPLAIN ANALYZE SELECT count(*) FROM jobs", "explain_key", 1),
        ("UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b", "name", 2),
    ],
)
def test_an_honest_statement_of_another_form_is_answered(
    snapshot: Path, sql: str, columns: str, n_rows: int
) -> None:
    result = ask(snapshot, sql)
    assert (result.columns[0], len(result.rows)) == (columns, n_rows)


# Every row of the recipe's table of constructs that a read-only connection alone lets through,
# and those it stops itself. <secret> is a file outside the store, <other> another database.
REFUSED = [
    "SELECT * FROM read_csv('<secret>')",
    "SELECT * FROM '<secret>'",
    "SELECT * FROM read_text('<secret>')",
    "SELECT * FROM read_parquet('<secret>')",
    "SELECT * FROM sniff_csv('<secret>')",
    "SELECT * FROM read_text('/proc/self/environ')",
    "SELECT * FROM glob('<folder>/*')",
    "SELECT * FROM parquet_metadata('<folder>/*.parquet')",
    "SELECT * FROM read_csv('http://127.0.0.1:9/a.csv')",
    "SELECT * FROM 's3://bucket/a.parquet'",
    "SELECT * FROM read_duckdb('<other>', table_name = 'jobs')",
    "SELECT * FROM '<other>'",
    "SELECT * FROM query('DROP TABLE jobs')",
    "SELECT * FROM request",  # a Python variable of the confined process
    "SELECT getenv('HOME')",
    "EXPLAIN ANALYZE COPY jobs TO '<folder>/out.csv'",
    "EXPLAIN ANALYZE DELETE FROM jobs",
    "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1",
    # Without external access DuckDB still opens the snapshot's own paths: this emptied the file.
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '<own>' (FORMAT csv, USE_TMP_FILE false)",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '<own>.wal' (FORMAT csv)",
    "SELECT * FROM read_blob('<own>')",
    "COPY jobs TO '<folder>/out.csv'",
    "COPY (SELECT 1) TO '/dev/stdout'",
    "COPY jobs FROM '<secret>'",
    "ATTACH '<other>' AS other (READ_ONLY)",
    "INSTALL httpfs",
    "SET lock_configuration = false",
    "PRAGMA profiling_output = '<folder>/out.json'",
    "CALL enable_logging(storage = 'file', storage_path = '<folder>')",
    "CREATE TEMP TABLE x AS SELECT 1",
    "DROP TABLE jobs",
    "WITH d AS (DELETE FROM jobs RETURNING *) SELECT * FROM d",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE jobs",
    "COPY (PIVOT jobs ON n_gpus USING count(*)) TO '<folder>/out.csv'",
    "SELECT ?",
    "",
    " ; ",
    "-- only a comment",
    "SELECT '\x00",
    "\ud800",
    "\\COPY jobs TO x",
    ".shell ls",
]

# Others of the same kinds: what judges them is asked itself.
OF_ANOTHER_KIND = [
    "EXPORT DATABASE '<folder>/out'",
    "IMPORT DATABASE '<folder>/out'",
    "ATTACH ':memory:' AS m",
    "USE temp",
    "CONNECT '<other>'",
    "LOAD '<folder>/x.duckdb_extension'",
    "SET memory_limit = '100GB'",
    "SET GLOBAL enable_external_access = true",
    "SET VARIABLE x = 1",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "CREATE TABLE x (a INTEGER)",
    "CREATE SECRET (TYPE http)",
    "INSERT INTO jobs SELECT * FROM jobs",
    "UPDATE jobs SET job = 1",
    "DELETE FROM jobs",
    "ALTER TABLE jobs RENAME TO other",
    "MERGE INTO jobs USING jobs AS o ON false WHEN MATCHED THEN DELETE",
    "CHECKPOINT",
    "VACUUM",
    "BEGIN TRANSACTION",
    "PREPARE p AS SELECT 1",
]


@pytest.mark.parametrize("sql", OF_ANOTHER_KIND)
def test_a_statement_of_another_kind_is_refused_before_it_runs(sql: str) -> None:
    with duckdb.connect() as con:
        con.execute("CREATE TABLE jobs AS SELECT 1 AS job, 2 AS n_gpus")
        with pytest.raises(QueryError, match=r"^only one SELECT or EXPLAIN can be run here[ ,]"):
            judge.only_statement(con, sql, "/nowhere", {})
        assert con.execute("FROM jobs").fetchall() == [(1, 2)]


@pytest.mark.parametrize(
    "sql",
    [*REFUSED, *OF_ANOTHER_KIND],
)
def test_anything_but_one_query_over_the_snapshot_is_refused(
    snapshot: Path, secret: Path, sql: str
) -> None:
    other = secret.parent / "other.duckdb"
    duckdb.connect(str(other)).close()
    paths = {"secret": secret, "folder": secret.parent, "other": other, "own": snapshot}
    for name, path in paths.items():
        sql = sql.replace(f"<{name}>", str(path))
    folders = (snapshot.parent, secret.parent)
    before = (snapshot.read_bytes(), [sorted(folder.iterdir()) for folder in folders])
    with pytest.raises(QueryError) as refusal:
        ask(snapshot, sql, QUICK)
    reason = str(refusal.value)
    assert reason
    assert "\n" not in reason
    assert "hunter2" not in reason
    assert (snapshot.read_bytes(), [sorted(folder.iterdir()) for folder in folders]) == before


def test_values_come_back_with_their_types(snapshot: Path) -> None:
    result = ask(
        snapshot,
        """
        SELECT 1::TINYINT AS small, 170141183460469231731687303715884105727 AS huge, 1.5::DOUBLE,
               'nan'::DOUBLE AS nan, '-inf'::FLOAT AS minus, 12.340::DECIMAL(9, 3) AS price, true,
               DATE '2026-02-03' AS day, TIME '04:05:06.7' AS clock, TIMESTAMP '2026-02-03 04:05',
               TIMESTAMPTZ '2026-02-03 04:05:06+02' AS at, INTERVAL '1 day 2 seconds' AS lasting,
               [1, NULL] AS list, [1, 2]::INTEGER[2] AS pair, {'a': 1, 'date': [DATE '2026-01-01']},
               MAP {1: 'x', 2: NULL} AS map, '\\xFF\\x00'::BLOB AS blob, NULL AS nothing,
               'é\n"' AS text,
               '00000000-0000-0000-0000-000000000001'::UUID AS id, 'b'::ENUM('a', 'b') AS enum
        """,
    )
    utc = datetime.UTC
    (row,) = result.rows
    assert math.isnan(row[3])
    assert row[:3] + row[4:] == (
        1,
        2**127 - 1,
        1.5,
        -math.inf,
        Decimal("12.340"),
        True,
        datetime.date(2026, 2, 3),
        datetime.time(4, 5, 6, 700_000),
        datetime.datetime(2026, 2, 3, 4, 5),  # noqa: DTZ001
        datetime.datetime(2026, 2, 3, 2, 5, 6, tzinfo=utc),
        datetime.timedelta(days=1, seconds=2),
        [1, None],
        (1, 2),
        {"a": 1, "date": [datetime.date(2026, 1, 1)]},
        {1: "x", 2: None},
        b"\xff\x00",
        None,
        'é\n"',
        uuid.UUID(int=1),
        "b",
    )
    assert str(row[5]) == "12.340"  # the scale stays
    assert result.types[:6] == ("TINYINT", "HUGEINT", "DOUBLE", "DOUBLE", "FLOAT", "DECIMAL(9,3)")
    assert result.types[10] == "TIMESTAMP WITH TIME ZONE"


def test_every_type_of_the_engine_survives_the_way(snapshot: Path) -> None:
    result = ask(snapshot, "SELECT * FROM test_all_types()")
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        expected = con.execute("SELECT * FROM test_all_types()").fetchall()
    assert len(result.types) == len(result.columns) == len(expected[0])
    assert repr(result.rows).replace("datetime.timezone.utc", "<UTC>") == repr(expected)


def test_columns_of_one_name_stay_apart(snapshot: Path) -> None:
    result = ask(snapshot, "SELECT 1 AS a, 2 AS a")
    assert (result.columns, result.rows) == (("a", "a"), [(1, 2)])


def test_rows_beyond_the_cap_are_left_out_and_said_so(snapshot: Path) -> None:
    result = ask(snapshot, "FROM jobs ORDER BY job", replace(QUICK, max_rows=250))
    assert (len(result.rows), result.truncated) == (250, True)
    whole = ask(snapshot, "FROM jobs", replace(QUICK, max_rows=1000))
    assert (len(whole.rows), whole.truncated) == (1000, False)


def test_bytes_beyond_the_cap_are_left_out_and_said_so(snapshot: Path) -> None:
    result = ask(snapshot, "SELECT repeat('x', 1000) FROM jobs", replace(QUICK, max_bytes=10_100))
    assert (len(result.rows), result.truncated) == (10, True)
    with pytest.raises(QueryError, match="the first row is larger than 1,000 bytes"):
        ask(snapshot, "SELECT repeat('x', 2000)", replace(QUICK, max_bytes=1000))


def test_an_endless_result_is_cut_without_waiting_for_its_end(snapshot: Path) -> None:
    result = ask(snapshot, "SELECT * FROM range(100000000000000)", QUICK)
    assert (len(result.rows), result.truncated) == (10_000, True)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT * FORM jobs", r"Parser Error: .*\"jobs\" \(line 1, column 15, at: jobs\)"),
        (
            "SELECT job,\n  n_gpu FROM jobs",
            r"\"n_gpu\".*\"n_gpus\".* \(line 2, column 3, at: n_gpu",
        ),
        (
            "SELECT * FROM job",
            r"Table with name job .*\"jobs\".* \(line 1, column 15, at: job\)",
        ),
        ("SELECT " + "1 + " * 99 + "FROM jobs", r"\(line 1, column 404, at: FROM jobs\)"),
        ("SELECT 'a'::INTEGER", "Conversion Error: Could not convert string 'a' to INT32"),
        ("DROP TABLE jobs", "only one SELECT or EXPLAIN can be run here, not DROP"),
        ("SELECT 1; SELECT 2", "only one SELECT or EXPLAIN can be run here, not 2 statements"),
        (
            "FROM (PIVOT jobs ON job, n_gpus USING count(*))",
            r"column limit of 1000 exceeded: aggregate, filter, or name the values: ON column IN",
        ),
        ("CREATE TEMP TABLE x AS PIVOT jobs ON n_gpus", "can be run here, not CREATE"),
        ("", "the query is empty"),
        ("SELECT '" + "x" * 100_000 + "'", "longer than 100,000 bytes"),
    ],
)
def test_a_refusal_says_where_and_why_on_one_line(snapshot: Path, sql: str, reason: str) -> None:
    with pytest.raises(QueryError, match=reason) as refusal:
        ask(snapshot, sql)
    assert "\n" not in str(refusal.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT range(3000000000)",
        "SELECT DISTINCT h.a FROM (SELECT hash(range) AS a FROM range(1000000000)) AS h",
        "SELECT len(generate_series(1, 2000000000))",
        "SELECT list_transform(range(200000000), lambda x: x + 1)",
        "SELECT list(a) FROM range(1000000000) AS r(a)",
        "SELECT string_agg(repeat('x', 1000), '') FROM range(10000000)",
    ],
)
def test_a_query_that_asks_for_too_much_memory_ends(snapshot: Path, sql: str) -> None:
    with pytest.raises(QueryError, match=r"^Out of Memory Error: .*: narrow the query"):
        run_query(snapshot, sql, replace(QUICK, memory_mb=256, address_space_mb=1024))


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT lpad('x', 2000000000, 'y')",  # DuckDB ignores interrupts inside it
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
        "SELECT count(*) FROM range(100000000000000)",
        "SELECT count(*) FROM jobs a, jobs b, jobs c, jobs d WHERE a.job + b.job > c.job + d.job",
    ],
)
def test_a_runaway_is_killed_at_the_wall_limit(snapshot: Path, sql: str) -> None:
    started = time.monotonic()
    with pytest.raises(QueryError, match=r"the query ran longer than 0.5 s: narrow it"):
        run_query(snapshot, sql, replace(QUICK, wall_seconds=0.5))
    assert time.monotonic() - started < 5.0


def test_processor_time_has_its_own_limit(snapshot: Path) -> None:
    limits = replace(QUICK, cpu_seconds=1)
    with pytest.raises(QueryError, match=r"more than 1 s of processor time"):
        run_query(snapshot, "SELECT count(*) FROM range(100000000000000)", limits)


def children(of: int) -> list[int]:
    """Processes that a process has started and that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended since the listing
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == of and state != "Z":
                found.append(int(path.parent.name))
    return found


def test_no_process_is_left_behind(snapshot: Path) -> None:
    before = children(os.getpid())
    run_query(snapshot, "SELECT 1")
    with pytest.raises(QueryError):
        run_query(snapshot, "SELECT lpad('x', 2000000000, 'y')", replace(QUICK, wall_seconds=0.5))
    assert children(os.getpid()) == before


def test_an_orphan_ends_by_itself(snapshot: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from data.sandbox import QueryLimits, run_query; "
        "run_query(Path(sys.argv[1]), \"SELECT lpad('x', 2000000000, 'y')\","
        " QueryLimits(wall_seconds=1))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(snapshot)], cwd=ROOT)
    deadline = time.monotonic() + 15
    while not (orphans := children(parent.pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)  # past the start of the process, into the query
    parent.kill()
    parent.wait()
    # An ended process keeps its number until whoever inherited it looks, but not its program.
    program = Path(f"/proc/{orphans[0]}/cmdline")
    while program.exists() and program.read_bytes() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not program.exists() or not program.read_bytes()


def test_threads_may_ask_at_the_same_time(snapshot: Path) -> None:
    def ask(n: int) -> QueryResult:
        return run_query(snapshot, f"SELECT count(*) + {n} FROM jobs")

    with ThreadPoolExecutor(4) as pool:
        assert [r.rows[0][0] for r in pool.map(ask, range(4))] == [1000, 1001, 1002, 1003]


def test_the_environment_of_the_caller_stays_out(
    snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "duckdb.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    monkeypatch.chdir(tmp_path)
    result = run_query(snapshot, "SELECT TIMESTAMPTZ '2026-07-01 00:00:00+00'::VARCHAR")
    assert result.rows == [("2026-07-01 00:00:00+00",)]


def test_a_relative_path_and_a_snapshot_in_use_are_fine(
    snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = shutil.copy(snapshot, tmp_path)
    monkeypatch.chdir(tmp_path)
    with duckdb.connect(str(own), read_only=True):
        assert run_query(Path(snapshot.name), "SELECT 1").rows == [(1,)]


def test_a_snapshot_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match=r"Cannot open .*none\.duckdb"):
        run_query(tmp_path / "none.duckdb", "SELECT 1")
