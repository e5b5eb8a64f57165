"""What of a query is judged: names of tables and functions, not words in texts and remarks; PIVOT."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from data.errors import QueryError
from data.sandbox import judge, reason, run_query, tokens
from tests.without_landlock import WITHOUT_LANDLOCK

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "/srv/the-place-of-the-store"
KNOWN = {
    "name": "a'b",
    "least": 1,
    "nothing": None,
    "from_at": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six jobs: states with quotes and without a value."""
    path = tmp_path_factory.mktemp("judged") / "warehouse-1.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(
            "CREATE TABLE jobs AS SELECT * FROM (VALUES (1, 0, 'a''b'), (2, 0, 'x\"y'), (3, 1, NULL),"
            " (4, 1, 'a''b'), (5, 2, 'a''b'), (6, NULL, 'query (slow)')) AS r(job, n_gpus, state)"
        )
    return path


@pytest.fixture
def con(snapshot: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection as the confined process has it, without the process."""
    with duckdb.connect(str(snapshot), read_only=True) as con:
        con.execute("SET TimeZone = 'UTC'")
        con.execute("SET pivot_limit = 20")
        con.execute("SET lock_configuration = true")
        yield con


def answered(con: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[str], list[Any]]:
    """Columns and rows of a query that is let through."""
    con.execute(*judge.only_statement(con, sql, FOLDER, KNOWN))
    return [name for name, *_ in con.description or ()], con.fetchall()


WORDS = {
    "SELECT 'duckdb_settings'": "duckdb_settings",
    "SELECT 'FROM query(''x'')'": "FROM query('x')",
    "SELECT E'\\'pg_settings\\x41'": "'pg_settingsA",
    "SELECT $$ duckdb_databases 'x' $$": " duckdb_databases 'x' ",
    "SELECT $a$ current_setting('x') $$ $a$": " current_setting('x') $$ ",
    "SELECT /* duckdb_logs /* query('x') */ -- */ 1": 1,
    "SELECT 1 -- read duckdb_settings, query (again)": 1,
    "-- current_setting('x')\nSELECT 1": 1,
    "SELECT count(*) FROM jobs WHERE state LIKE '%query (%'": 1,
    "SELECT 1 AS duckdb_settings": 1,
    'SELECT "duckdb_settings" FROM (SELECT 2 AS "duckdb_settings")': 2,
    'SELECT 1 AS "query (slow)"': 1,
    "WITH query (current_setting) AS (SELECT 3) FROM query": 3,
    "SELECT {'duckdb_logs': 4}.duckdb_logs": 4,
    "SELECT sum(n) FROM (UNPIVOT (SELECT 1 AS duckdb_logs) ON * INTO NAME x VALUE n)": 1,
    "SELECT current_setting ( /* in */ 'TIMEZONE' )": "UTC",
    "SELECT count(*) FROM histogram_values(jobs, n_gpus)": 3,
    "SELECT $name || 'duckdb_secrets'": "a'bduckdb_secrets",
}


@pytest.mark.parametrize("sql", WORDS)
def test_words_in_texts_remarks_and_columns_refuse_nothing(
    con: duckdb.DuckDBPyConnection, sql: str
) -> None:
    assert answered(con, sql)[1] == [(WORDS[sql],)]


@pytest.mark.parametrize(
    "verb", ["EXPLAIN /* why */", "-- EXPLAIN\nEXPLAIN ANALYZE --\n", "EXPLAIN"]
)
def test_remarks_in_an_explain_refuse_nothing(con: duckdb.DuckDBPyConnection, verb: str) -> None:
    assert answered(con, f"{verb} SELECT 'pg_settings'")[0] == ["explain_key", "explain_value"]


NAMES = [
    "FROM duckdb_settings()",
    "FROM 'duckdb_databases'",
    'FROM system.main."DuckDB_Databases"',
    "DESCRIBE 'pg_settings'",
    "SELECT (SELECT max(x.value) FROM /* */ duckdb_settings /* */ () AS x)",
    "FROM jobs, LATERAL (FROM duckdb_settings())",
    "SELECT 'secret_directory'.current_setting()",
    "SELECT current_setting('Time' || 'Zone')",
    "SELECT current_setting('TimeZone', 'x')",
    "SELECT max(current_setting('home_directory')) OVER ()",
    "FROM query('SELECT 1')",
    "FROM histogram('duckdb_databases', path)",
    "FROM histogram_values(duckdb_databases, path)",
    "FROM histogram(col_name := path, source := 'duckdb_' || 'databases')",
    "FROM histogram($name, path)",
    "FROM (PIVOT duckdb_settings() ON scope)",
    "PIVOT 'duckdb_databases' ON path",
    "PIVOT jobs ON state || current_setting('home_directory')",
    "WITH s AS (FROM pg_settings) PIVOT s ON name",
    "EXPLAIN ANALYZE PIVOT duckdb_databases ON path",
    "PIVOT (FROM duckdb_databases() WHERE path > $name) ON path",
]


@pytest.mark.parametrize("sql", NAMES)
def test_names_of_what_shows_the_server_are_refused_wherever_they_stand(
    con: duckdb.DuckDBPyConnection, sql: str
) -> None:
    with pytest.raises(QueryError, match=r"is not for ad hoc queries|takes the name of a table"):
        judge.only_statement(con, sql, FOLDER, KNOWN)


def test_every_function_that_reads_a_table_by_its_name_is_known() -> None:
    with duckdb.connect() as con:
        found = con.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() "
            "WHERE regexp_matches(macro_definition, ?)",
            [rf"(^|[^_.\w])({'|'.join((*judge.INDIRECT, *judge.BY_NAME))})\("],
        ).fetchall()
    assert {name for (name,) in found} == set(judge.BY_NAME)


STATES = ["a'b", "query (slow)", 'x"y']
PIVOTED = {
    "PIVOT jobs ON state USING count(*) GROUP BY n_gpus": (["n_gpus", *STATES], 4),
    "PIVOT jobs ON n_gpus": (["job", "state", "0", "1", "2"], 6),
    "pivot_wider jobs on n_gpus using sum(job) as s group by state;": (
        ["state", "0_s", "1_s", "2_s"],
        4,
    ),
    "PIVOT jobs ON n_gpus /* , x */, state -- ON y\n USING count(*) GROUP BY job": (None, 6),
    "PIVOT jobs ON n_gpus IN (0), state USING count(*) GROUP BY job": (
        ["job", "0_a'b", "0_query (slow)", '0_x"y'],
        6,
    ),
    "PIVOT (SELECT n_gpus, job FROM jobs) ON CASE WHEN n_gpus IN (0) THEN 'none' ELSE 'IN' END "
    "USING sum(job)": (["IN", "none"], 1),
    "SELECT * FROM (PIVOT jobs ON n_gpus USING count(*) GROUP BY state) WHERE state = 'a''b'": (
        ["state", "0", "1", "2"],
        1,
    ),
    "WITH p AS (PIVOT jobs ON n_gpus USING count(*) GROUP BY state), q AS (PIVOT jobs ON state) "
    "SELECT (SELECT count(*) FROM p) + (SELECT count(*) FROM q) AS n": (["n"], 1),
    "PIVOT (PIVOT jobs ON n_gpus USING count(*) GROUP BY state) ON state USING count(*) "
    "GROUP BY \"0\"": (["0", *STATES], 2),
    "PIVOT jobs AS a JOIN (SELECT job AS j FROM jobs) AS b ON a.job = b.j JOIN (SELECT job, state AS s FROM jobs) AS c USING (job) "
    "ON j > 3 USING count(*) GROUP BY n_gpus": (["n_gpus", "false", "true"], 4),
    "PIVOT jobs ON n_gpus USING count(*) GROUP BY state UNION ALL PIVOT jobs ON n_gpus USING "
    "count(*) GROUP BY state ORDER BY ALL LIMIT 3": (["state", "0", "1", "2"], 3),
    "PIVOT (FROM jobs WHERE state = $name AND n_gpus >= $least AND $nothing IS NULL) ON n_gpus "
    "USING count(*) GROUP BY state": (["state", "1", "2"], 1),
    "SELECT typeof($from_at) AS t FROM (PIVOT (FROM jobs WHERE now() > $from_at) ON n_gpus) LIMIT 1":
        (["t"], 1),
    "SUMMARIZE (PIVOT jobs ON n_gpus)": (None, 5),
    "EXPLAIN PIVOT jobs ON n_gpus": (["explain_key", "explain_value"], 1),
    "EXPLAIN ANALYZE PIVOT jobs ON n_gpus": (["explain_key", "explain_value"], 1),
    "SELECT * FROM jobs PIVOT (count(*) FOR n_gpus IN (0, 1)) LIMIT 1": (None, 1),
    "UNPIVOT (PIVOT jobs ON n_gpus USING count(*) GROUP BY state) ON '0', '1' LIMIT 2": (None, 2),
}  # fmt: skip


@pytest.mark.parametrize("sql", PIVOTED)
def test_a_pivot_finds_its_values(con: duckdb.DuckDBPyConnection, sql: str) -> None:
    columns, rows = answered(con, sql)
    expected, n_rows = PIVOTED[sql]
    assert columns == (expected or columns)
    assert len(rows) == n_rows


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("CREATE TEMP TABLE x AS PIVOT jobs ON n_gpus", "not CREATE"),
        ("COPY (PIVOT jobs ON n_gpus) TO '/tmp/x'", "not COPY"),
        (
            "EXPLAIN ANALYZE CREATE TEMP TABLE x AS PIVOT jobs ON n_gpus",
            "only a SELECT can be expl",
        ),
        ("EXPLAIN ANALYZE COPY (PIVOT jobs ON n_gpus) TO '/tmp/x'", "only a SELECT can be expl"),
        ("PIVOT jobs ON n_gpus; PIVOT jobs ON n_gpus", "not 2 statements"),
        (
            "PIVOT jobs ON n_gpus IN (SELECT 1)",
            "not several in one .a PIVOT names its values one by",
        ),
        ("PIVOT (FROM jobs WHERE job > $other) ON n_gpus", r"parameter \$other is unknown"),
    ],
)
def test_a_pivot_hides_nothing_else(con: duckdb.DuckDBPyConnection, sql: str, reason: str) -> None:
    with pytest.raises(QueryError, match=reason):
        judge.only_statement(con, sql, FOLDER, KNOWN)
    assert con.execute(
        "SELECT count(*) FROM duckdb_types() WHERE type_name LIKE '%pivot%'"
    ).fetchone() == (0,)


def test_a_mistake_in_a_pivot_is_told_as_it_is(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.ParserException, match="syntax error"):
        judge.only_statement(con, "PIVOT jobs ON n_gpus IN (", FOLDER, KNOWN)
    with pytest.raises(duckdb.ParserException, match="unterminated"):
        judge.only_statement(con, "SELECT 1 /* and so on", FOLDER, KNOWN)
    with pytest.raises(duckdb.BinderException, match="limit of 20"):
        answered(con, "PIVOT (SELECT i FROM range(30) AS r(i)) ON i")


def test_remarks_leave_every_other_byte_in_its_place() -> None:
    sql = "SELECT 'é -- no', /* ü */ 1 -- ende\n, $$ /* $$"
    plain = tokens.without_comments(sql)
    assert len(plain.encode()) == len(sql.encode())
    assert plain.split() == ["SELECT", "'é", "--", "no',", "1", ",", "$$", "/*", "$$"]


def test_an_error_inside_the_engine_shows_no_path_and_no_address(snapshot: Path) -> None:
    with pytest.raises(QueryError) as refusal:  # DuckDB 2.0.0 takes these types apart too late
        run_query(snapshot, 'SELECT "IS DISTINCT FROM"(NULL, 9223372036854775807)')
    told = str(refusal.value)
    assert told.startswith("the engine failed at this query (Expected vector of type INT32")
    for shown in (".so", "0x", "/", "stack"):
        assert shown not in told


ERRORS = {
    'FATAL Error: {"exception_type":"FATAL","exception_message":"at [0x7f3b08] /opt/x/y.cpp:3"}\nStack'
    " Trace:\n/opt/z": "the engine failed at this query (at ... y.cpp:3): write it in another way",
    "INTERNAL Error: odd\n\nStack Trace:\n/opt/lib/duckdb.so(+0x12)": (
        "the engine failed at this query (odd): write it in another way"
    ),
    'IO Error: {"exception_message":"no /srv/place/a.db and /usr/lib/b/c.so at 0xdeadbeef"}': (
        "IO Error: no a.db and c.so at ..."
    ),
    'Conversion Error: {"exception_message":"no number: \'/data/run/7 0xff\'"}': (
        "Conversion Error: no number: '/data/run/7 0xff'"
    ),
    'Out of Memory Error: {"exception_message":"full\\nSET temp_directory = \'/x/y\'"}': (
        "Out of Memory Error: full: narrow the query or aggregate first"
    ),
}


@pytest.mark.parametrize("message", ERRORS, ids=range(len(ERRORS)))
def test_an_error_is_one_line_without_the_server(message: str) -> None:
    assert reason.told(duckdb.Error(message), "SELECT 1", "/srv/place") == (ERRORS[message], None)


def test_what_the_query_holds_itself_stays_in_its_error() -> None:
    error = duckdb.CatalogException('Catalog Error: {"exception_message":"no table /etc/passwd"}')
    assert reason.told(error, "FROM '/etc/passwd'", "/srv") == (
        "Catalog Error: no table /etc/passwd",
        None,
    )


def test_an_error_of_python_shows_no_path() -> None:
    told, _ = reason.told(OSError(2, "No such file", "/opt/venv/lib/x.so"), "SELECT 1", "/srv")
    assert told == (
        "the engine failed at this query ([Errno 2] No such file: 'x.so'): write it in another way"
    )
    assert reason.told(MemoryError(), "SELECT 1", "/srv")[0].startswith("Out of Memory Error: ")


ASKED = f"""{WITHOUT_LANDLOCK}
from pathlib import Path
from data.sandbox import landlock_missing, run_query
print(landlock_missing())
print(run_query(Path(sys.argv[1]), "SELECT count(*) FROM jobs").rows)
"""


def test_a_system_without_landlock_says_so_and_still_answers(snapshot: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKED, str(snapshot)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("this system lets no process filter its calls")
    told, rows = done.stdout.splitlines()
    assert told.startswith("This system has no Landlock, the last of the guards around ad hoc SQL")
    assert rows == "[(6,)]"
