"""What people might try: none of it reads a file, writes, changes a setting or outlives a limit."""

from __future__ import annotations

import contextlib
import hashlib
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from data.errors import QueryError
from data.sandbox import QueryLimits, keep_spares, run_query
from tests.data.judged_here import ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from data.sandbox import QueryResult

QUICK = QueryLimits(wall_seconds=10.0, cpu_seconds=10)
TIGHT = QueryLimits(
    wall_seconds=1.0, cpu_seconds=4, memory_mb=256, address_space_mb=1024, max_bytes=2**20
)
GRACE_S = 3.0
"""Beyond the wall limit: what a busy machine may take to end a process."""
MARK = "hunter2"


@pytest.fixture(scope="module", autouse=True)
def _spares() -> Iterator[None]:
    keep_spares(2)
    yield
    keep_spares(0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a snapshot, and beside it what no query may reach."""
    root = tmp_path_factory.mktemp("hidden-place")
    with duckdb.connect(str(root / "warehouse-1.duckdb")) as con:
        con.execute(
            "CREATE TABLE jobs AS SELECT i AS job, 'u' || i % 5 AS \"user\", i % 7 AS n_gpus, "
            "TIMESTAMPTZ '2026-01-01 00:00:00+00' + INTERVAL (i) HOUR AS start_at, "
            '\'[{"check": "xid", "n": \' || i || \'}]\' AS evidence FROM range(1000) AS r(i)'
        )
        con.execute("COMMENT ON TABLE jobs IS 'attempts'")
    with duckdb.connect(str(root / "other.duckdb")) as con:
        con.execute(f"CREATE TABLE t AS SELECT '{MARK}' AS a")
    (root / "secret.csv").write_text(f"a,b\n1,{MARK}\n")
    (root / "secret.json").write_text(f'{{"a": "{MARK}"}}\n')
    (root / "state.sqlite").write_text(MARK)
    return root


def digest(root: Path) -> dict[str, str]:
    """Everything in a folder."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


REFUSED = {
    # files
    "read_csv_auto": "FROM read_csv_auto('<place>/secret.csv')",
    "read_json": "FROM read_json('<place>/secret.json')",
    "read_json_objects": "FROM read_json_objects('<place>/secret.json')",
    "read_ndjson": "FROM read_ndjson_auto('<place>/secret.json')",
    "one csv": "FROM read_single_csv_file('<place>/secret.csv')",
    "one json": "FROM read_single_json_file('<place>/secret.json')",
    "state of the store": "FROM read_text('<place>/state.sqlite')",
    "blob": "SELECT content FROM read_blob('<place>/other.duckdb')",
    "several files": "FROM read_csv(['<place>/secret.csv', '<place>/secret.csv'])",
    "relative file": "FROM read_text('secret.csv')",
    "climbing file": "FROM read_text('<place>/sub/../secret.csv')",
    "file scheme": "FROM read_text('file://<place>/secret.csv')",
    "home": "FROM read_text('~/.bashrc')",
    "passwd": "FROM '/etc/passwd'",
    "maps": "FROM read_text('/proc/self/maps')",
    "command line": "FROM read_text('/proc/1/cmdline')",
    "open file": "FROM read_blob('/proc/self/fd/3')",
    "standard input": "FROM read_csv('/dev/stdin')",
    "zero": "SELECT length(content) FROM read_blob('/dev/zero')",
    "glob of root": "FROM glob('/*')",
    "glob of processes": "FROM glob('/proc/*/environ')",
    "sniff": "FROM sniff_csv('<place>/secret.csv')",
    "parquet schema": "FROM parquet_schema('<place>/*.parquet')",
    "parquet keys": "FROM parquet_kv_metadata('<place>/x.parquet')",
    "parquet bloom": "FROM parquet_bloom_probe('<place>/x.parquet', 'a', 1)",
    "file in a subquery": "SELECT (SELECT count(*) FROM read_text('<place>/secret.csv'))",
    "file in a CTE": "WITH s AS (FROM read_csv('<place>/secret.csv')) SELECT * FROM s",
    "file in a lateral": "FROM jobs, LATERAL (FROM read_text('<place>/secret.csv'))",
    "file in an EXISTS": "SELECT 1 WHERE EXISTS (FROM '<place>/secret.csv')",
    "file explained": "EXPLAIN FROM read_csv('<place>/secret.csv')",
    "file run and explained": "EXPLAIN ANALYZE FROM read_text('<place>/secret.csv')",
    "file summarised": "SUMMARIZE FROM read_csv('<place>/secret.csv')",
    "file described": "DESCRIBE FROM read_csv('<place>/secret.csv')",
    "http": "FROM 'https://127.0.0.1:9/x.parquet'",
    "google storage": "FROM read_csv('gs://bucket/x.csv')",
    "other database": "FROM read_duckdb('<place>/other.duckdb', table_name = 't')",
    "Python scan": "FROM python_arrow_scan(1, 2, 3)",
    "pointer scan": "FROM arrow_scan(1::POINTER, 2::POINTER, 3::POINTER)",
    "variable of Python": "FROM con",
    # writing
    "EXPLAIN ANALYZE COPY": "EXPLAIN ANALYZE COPY (SELECT 1) TO '<place>/new.csv'",
    "EXPLAIN ANALYZE COPY own": "EXPLAIN ANALYZE COPY (SELECT 1) TO '<place>/warehouse-1.duckdb'"
    " (FORMAT csv, USE_TMP_FILE false)",
    "EXPLAIN (ANALYZE) COPY": "EXPLAIN (ANALYZE, FORMAT json) COPY jobs TO '/dev/stdout'",
    "EXPLAIN ANALYZE CREATE TEMP": "EXPLAIN ANALYZE CREATE TEMP TABLE x AS SELECT 1",
    "EXPLAIN ANALYZE CREATE VIEW": "EXPLAIN ANALYZE CREATE TEMP VIEW x AS SELECT 1",
    "EXPLAIN ANALYZE CREATE MACRO": "EXPLAIN ANALYZE CREATE TEMP MACRO f() AS 1",
    "EXPLAIN ANALYZE INSERT": "EXPLAIN ANALYZE INSERT INTO jobs FROM jobs",
    "EXPLAIN ANALYZE UPDATE": "EXPLAIN ANALYZE UPDATE jobs SET job = 1",
    "EXPLAIN ANALYZE DROP": "EXPLAIN ANALYZE DROP TABLE jobs",
    "EXPLAIN ANALYZE ATTACH": "EXPLAIN ANALYZE ATTACH '<place>/other.duckdb'",
    "EXPLAIN ANALYZE SET": "EXPLAIN ANALYZE SET memory_limit = '9GB'",
    "EXPLAIN ANALYZE PREPARE": "EXPLAIN ANALYZE PREPARE p AS SELECT 1",
    "EXPLAIN ANALYZE LOAD": "EXPLAIN ANALYZE LOAD json",
    "EXPLAIN ANALYZE CHECKPOINT": "EXPLAIN ANALYZE CHECKPOINT",
    "EXPLAIN ANALYZE CALL": "EXPLAIN ANALYZE CALL enable_logging()",
    "EXPLAIN ANALYZE SECRET": "EXPLAIN ANALYZE CREATE SECRET (TYPE http)",
    "EXPLAIN ANALYZE BEGIN": "EXPLAIN ANALYZE BEGIN",
    "EXPLAIN ANALYZE EXPORT": "EXPLAIN ANALYZE EXPORT DATABASE '<place>/new'",
    "EXPLAIN of EXPLAIN": "EXPLAIN EXPLAIN ANALYZE CREATE TEMP TABLE x AS SELECT 1",
    "hidden in a comment": "EXPLAIN ANALYZE /* /* */ SELECT 1 -- */ CREATE TEMP TABLE x AS SELECT 1",
    "a comment before": "/* /* */ EXPLAIN SELECT 1 -- */ EXPLAIN ANALYZE CREATE TEMP TABLE x AS SELECT 1",
    "CTE that inserts": "WITH i AS (INSERT INTO jobs FROM jobs RETURNING *) FROM i",
    "CTE that updates": "WITH u AS (UPDATE jobs SET job = 0 RETURNING *) FROM u",
    "SELECT INTO": "SELECT * INTO copied FROM jobs",
    "COPY FROM DATABASE": "COPY FROM DATABASE warehouse TO other",
    "CREATE OR REPLACE": "CREATE OR REPLACE TABLE jobs AS SELECT 1",
    "CREATE TYPE": "CREATE TYPE mood AS ENUM ('a')",
    "CREATE SEQUENCE": "CREATE SEQUENCE s",
    "TRUNCATE": "TRUNCATE jobs",
    "COMMENT ON": "COMMENT ON TABLE jobs IS 'x'",
    "ANALYZE": "ANALYZE jobs",
    "DETACH": "DETACH warehouse",
    "ATTACH without rights": "ATTACH IF NOT EXISTS '<place>/other.duckdb' AS o (READ_ONLY)",
    # settings, extensions, logging
    "RESET": "RESET memory_limit",
    "PRAGMA as a setting": "PRAGMA memory_limit = '9GB'",
    "PRAGMA table_info": "PRAGMA table_info('jobs')",
    "logging": "FROM enable_logging(storage = 'file', storage_path = '<place>')",
    "profiling": "FROM enable_profiling(save_location = '<place>/p.json')",
    "external resource": "FROM create_external_resource('x')",
    "forced checkpoint": "FROM force_checkpoint()",
    "sequence": "SELECT nextval('s')",
    "extension": "FORCE INSTALL httpfs FROM community",
    "update extensions": "UPDATE EXTENSIONS",
    "sorted load": "LOAD httpfs",
    # what shows the server
    "settings": "FROM duckdb_settings()",
    "settings quoted": "FROM \"DuckDB_Settings\"()",
    "settings by schema": "FROM system.main.duckdb_settings()",
    "settings of Postgres": "FROM pg_catalog.pg_settings",
    "databases": "FROM duckdb_databases",
    "databases as text": "FROM 'duckdb_databases'",
    "databases summarised": "SUMMARIZE duckdb_databases",
    "database list": "TABLE pragma_database_list",
    "one setting": "SELECT current_setting('allowed_paths')",
    "one setting put together": "SELECT current_setting('allowed' || '_paths')",
    "one setting chained": "SELECT 'secret_directory'.current_setting()",
    "two settings": "SELECT current_setting('TimeZone'), current_setting('temp_directory')",
    "one setting explained": "EXPLAIN SELECT current_setting('allowed_paths')",
    "secrets": "FROM duckdb_secrets()",
    "logs": "FROM duckdb_logs",
    "extensions": "FROM duckdb_extensions()",
    "temporary files": "FROM duckdb_temporary_files()",
    "query": "FROM query('FROM duckdb_' || 'settings()')",
    "query with a comment": "FROM query/* x */('SELECT 1')",
    "query quoted": "FROM \"query\" ('SELECT 1')",
    "query by schema": "FROM system.main.QUERY('SELECT 1')",
    "query after a wide space": "FROM query\u2003('SELECT 1')",
    "query_table": "FROM query_table('duckdb_' || 'databases')",
    "histogram put together": "FROM histogram('duckdb_' || 'databases', path)",
    "histogram of settings": "FROM histogram_values(source := duckdb_settings, col_name := value)",
    "serialised": "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "planned": "SELECT json_serialize_plan('SELECT current_' || 'setting(''allowed_paths'')')",
    # forms
    "two with a comment": "SELECT 1 /* ; */; /* */ SELECT 2",
    "EXECUTE": "EXECUTE p",
    "DEALLOCATE": "DEALLOCATE p",
    "positional parameter": "SELECT $1",
    "unknown parameter": "SELECT $secret",
    "PIVOT that writes": "COPY (PIVOT jobs ON n_gpus USING count(*)) TO '<place>/new.csv'",
    "EXPLAIN ANALYZE PIVOT that creates": "EXPLAIN ANALYZE CREATE TEMP TABLE x AS PIVOT jobs ON n_gpus",
    "CALL": "CALL pragma_version()",
    "SHOW a setting": "SHOW allowed_paths",
    "SHOW a setting quoted": "FROM (SHOW \"ALLOWED_PATHS\")",
    "SHOW a setting as text": "SHOW /* x */ 'allowed_paths'",
    "only a wide space": "\u00a0\u2003",
    "zero byte": "SELECT 1\x00; DROP TABLE jobs",
    "right to left": "SELECT \u202e1; DROP TABLE jobs",
    "unicode semicolon": "SELECT 1\u037e SELECT 2",
    "nested too deep": "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
    "subqueries too deep": "SELECT * FROM " + "(SELECT * FROM " * 3_000 + "jobs" + ")" * 3_000,
    "unions without end": " UNION ALL ".join(["SELECT 1"] * 8_000),
    "NOT without end": "SELECT " + "NOT " * 20_000 + "true",
    "CASE too deep": "SELECT " + "CASE WHEN true THEN " * 3_000 + "1" + " END" * 3_000,
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_one_query_of_the_snapshot_is_refused(place: Path, name: str) -> None:
    before = digest(place)
    with pytest.raises(QueryError) as refusal:
        ask(place / "warehouse-1.duckdb", REFUSED[name].replace("<place>", str(place)), QUICK)
    reason = str(refusal.value)
    assert reason
    assert "\n" not in reason
    assert MARK not in reason
    assert digest(place) == before


CONTAINED = {
    "nested ranges": "SELECT sum(a) FROM range(1000000) x(a), range(1000000) y(b)",
    "cross join": "SELECT count(*) FROM jobs a, jobs b, jobs c, jobs d, jobs e WHERE a.job <> e.job",
    "sort in memory": "SELECT * FROM range(300000000) r(i) ORDER BY hash(i) LIMIT 1 OFFSET 200000000",
    "hash in memory": "SELECT count(*) FROM (SELECT DISTINCT hash(i) FROM range(500000000) r(i))",
    "window in memory": "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY hash(i)) r FROM range(300000000) t(i))",
    "join in memory": "SELECT count(*) FROM range(300000000) a(i) JOIN range(300000000) b(i) USING (i)",
    "list of everything": "SELECT list(i) FROM range(2000000000) r(i)",
    "list of lists": "SELECT [range(100000) FOR x IN range(100000)]",
    "lambda in a lambda": "SELECT list_transform(range(20000), lambda x: list_transform(range(20000), lambda y: x * y))",
    "reduce": "SELECT list_reduce(range(100000), lambda a, b: a || b::VARCHAR, '')",
    "growing text": "WITH RECURSIVE t AS (SELECT 'x' AS s UNION ALL SELECT s || s FROM t) SELECT max(length(s)) FROM t",
    "endless recursion": "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
    "wide recursion": "WITH RECURSIVE t AS (SELECT i FROM range(1000) r(i) UNION ALL SELECT a.i FROM t a, t b) SELECT count(*) FROM t",
    "repeat": "SELECT repeat('x', 2000000000)",
    "repeat squared": "SELECT length(repeat(repeat('x', 100000), 100000))",
    "lpad": "SELECT length(lpad('x', 2000000000, 'yz'))",
    "format": "SELECT length(format('{:>2000000000}', 'x'))",
    "replace": "SELECT length(replace(repeat('a', 10000000), 'a', repeat('b', 1000)))",
    "regex": "SELECT regexp_matches(repeat('a', 5000000), '(a|aa)*(a|aa)*(a|aa)*(a|aa)*$b')",
    "regex split": "SELECT sum(len(regexp_split_to_array(repeat('a', 50000000), ''))) FROM range(1000)",
    "levenshtein": "SELECT levenshtein(repeat('a', 200000), repeat('b', 200000))",
    "sleep": "SELECT sleep_ms(1000000000)",
    "sleep of Postgres": "SELECT pg_sleep(1000000)",
    "flood": "SELECT repeat('x', 1000000) FROM range(100000000)",
    "wide flood": "SELECT " + ", ".join(["repeat('x', 1000)"] * 900) + " FROM range(100000000)",
    "string_agg": "SELECT length(string_agg(repeat('x', 100000), '')) FROM range(1000000)",
    "json": "SELECT json_group_array(range(1000)) FROM range(10000000)",
    "histogram": "SELECT histogram(hash(i)) FROM range(200000000) r(i)",
    "median": "SELECT median(hash(i)) FROM range(300000000) r(i)",
    "bits": "SELECT bit_count(repeat('1', 2000000000)::BIT)",
    "factorial": "SELECT sum(factorial(33) + sqrt(i)) FROM range(100000000000) r(i)",
    "generate_series of times": "SELECT count(*) FROM generate_series(TIMESTAMP '0001-01-01', TIMESTAMP '9999-01-01', INTERVAL 1 MICROSECOND)",
    "grouping sets": "SELECT count(*) FROM range(100000000) r(i) GROUP BY CUBE (i % 7, i % 11, i % 13, i, i + 1, i + 2)",
    "unnest of unnest": "SELECT count(*) FROM (SELECT unnest(range(1000000)) AS a FROM range(1000000))",
    "sample": "SELECT count(*) FROM range(1000000000000) USING SAMPLE 50%",
    "hash of text": "SELECT count(DISTINCT md5(i::VARCHAR)) FROM range(10000000000) r(i)",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTAINED)
def test_what_would_take_everything_ends_within_its_limits(place: Path, name: str) -> None:
    started = time.monotonic()
    with contextlib.suppress(QueryError):  # what was cheap after all, or cut, is no error
        result = run_query(place / "warehouse-1.duckdb", CONTAINED[name], TIGHT)
        assert sum(len(str(value)) for row in result.rows for value in row) < 2 * TIGHT.max_bytes
    assert time.monotonic() - started < TIGHT.wall_seconds + GRACE_S


CHEAP_NOTHING = {
    "variables": "SELECT getvariable('x')",
    "variables table": "FROM duckdb_variables()",
    "prepared statements": "FROM duckdb_prepared_statements()",
    "who": "SELECT current_user, session_user, inet_server_addr(), inet_client_addr()",
    "this query only": "SELECT current_query()",
    "written log": "SELECT write_log('x')",
    "seed": "SELECT setseed(0.5)",
    "checkpoint": "FROM checkpoint()",
    "version": "FROM pragma_version()",
    "own limit": "SHOW memory_limit",
    "size": "SELECT database_size FROM pragma_database_size()",
    "schemas": "SELECT schema_name, sql FROM duckdb_schemas()",
    "tables": "SELECT * FROM duckdb_tables()",
    "views": "SELECT * FROM duckdb_views() WHERE NOT internal",
    "memory": "FROM duckdb_memory()",
    "functions": "SELECT * FROM duckdb_functions() LIMIT 10",
    "databases of Postgres": "FROM pg_catalog.pg_database",
    "table spaces": "FROM pg_catalog.pg_tablespace",
    "SHOW DATABASES": "SHOW DATABASES",
    "SHOW ALL TABLES": "SHOW ALL TABLES",
    "resources": "FROM duckdb_external_resources()",
    "secret types": "FROM duckdb_secret_types()",
    "EXPLAIN": "EXPLAIN ANALYZE SELECT * FROM jobs",
    "storage": "FROM pragma_storage_info('jobs')",
    "paths as text": "SELECT parse_path('/etc/passwd')",
    "semicolon in text": "SELECT 'a; DROP TABLE jobs'",
    "semicolon in a name": 'SELECT 1 AS "; DROP TABLE jobs"',
    "a comment at the end": "SELECT 1 -- ; DROP TABLE jobs",
}


@pytest.mark.parametrize("name", CHEAP_NOTHING)
def test_what_is_harmless_shows_nothing_of_the_server(
    place: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULTLINE_PROBE", MARK)
    before = digest(place)
    result = ask(place / "warehouse-1.duckdb", CHEAP_NOTHING[name], QUICK)
    shown = repr(result.rows)
    assert "hidden-place" not in shown
    assert MARK not in shown
    assert digest(place) == before


def test_one_query_leaves_nothing_to_the_next(place: Path) -> None:
    database = place / "warehouse-1.duckdb"
    run_query(database, "SELECT setseed(0.5), 'of ada' AS x FROM jobs", QUICK)
    for sql in ("FROM duckdb_variables()", "FROM duckdb_prepared_statements()"):
        assert run_query(database, sql, QUICK).rows == []
    assert "of ada" not in repr(run_query(database, "FROM test_all_types()", QUICK).rows)
    first, second = (run_query(database, "SELECT random()", QUICK).rows for _ in range(2))
    assert first != second


def test_spilling_has_no_place(place: Path) -> None:
    before = digest(place)
    with pytest.raises(QueryError, match="Out of Memory"):
        run_query(
            place / "warehouse-1.duckdb",
            "SELECT count(DISTINCT i) FROM range(100000000) r(i)",
            replace(QUICK, memory_mb=100),
        )
    assert digest(place) == before


HONEST = {
    "count": ("SELECT count(*) FROM jobs", [(1000,)]),
    "from first": ("FROM jobs SELECT max(job)", [(999,)]),
    "group by all": ("SELECT n_gpus > 3 AS large, count(*) FROM jobs GROUP BY ALL ORDER BY 1", [(False, 572), (True, 428)]),
    "having": ('SELECT "user" FROM jobs GROUP BY 1 HAVING sum(job) > 100000 ORDER BY 1 LIMIT 1', [("u3",)]),
    "filter": ("SELECT count(*) FILTER (n_gpus = 0) FROM jobs", [(143,)]),
    "grouping sets": ("SELECT count(*) FROM (SELECT n_gpus, \"user\" FROM jobs GROUP BY CUBE (n_gpus, \"user\"))", [(48,)]),
    "rollup": ("SELECT n_gpus, count(*) FROM jobs GROUP BY ROLLUP (n_gpus) HAVING n_gpus IS NULL", [(None, 1000)]),
    "window": ("SELECT job, lag(job) OVER (ORDER BY job) FROM jobs ORDER BY job LIMIT 2", [(0, None), (1, 0)]),
    "named window": ("SELECT sum(job) OVER w FROM jobs WINDOW w AS (ORDER BY job ROWS 1 PRECEDING) ORDER BY 1 DESC LIMIT 1", [(1997,)]),
    "range window": ("SELECT max(c) FROM (SELECT count(*) OVER (ORDER BY start_at RANGE INTERVAL 1 DAY PRECEDING) AS c FROM jobs)", [(25,)]),
    "qualify": ('SELECT "user", job FROM jobs QUALIFY row_number() OVER (PARTITION BY "user" ORDER BY job DESC) = 1 ORDER BY 1 LIMIT 1', [("u0", 995)]),
    "recursion": ("WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n * 2 FROM t WHERE n < 100) SELECT max(n) FROM t", [(128,)]),
    "several CTEs": ("WITH a AS (FROM jobs WHERE n_gpus = 1), b AS (SELECT count(*) AS n FROM a) FROM b", [(143,)]),
    "materialised CTE": ("WITH a AS MATERIALIZED (FROM jobs) SELECT count(*) FROM a", [(1000,)]),
    "asof join": ("SELECT count(*) FROM jobs a ASOF JOIN jobs b ON a.start_at > b.start_at", [(999,)]),
    "semi join": ("SELECT count(*) FROM jobs SEMI JOIN (SELECT 1 AS job) USING (job)", [(1,)]),
    "anti join": ("SELECT count(*) FROM jobs ANTI JOIN (SELECT 1 AS job) USING (job)", [(999,)]),
    "lateral": ("SELECT sum(y) FROM jobs, LATERAL (SELECT job * 2 AS y) LIMIT 1", [(999000,)]),
    "exists": ("SELECT count(*) FROM jobs a WHERE EXISTS (FROM jobs b WHERE b.job = a.job + 1)", [(999,)]),
    "union by name": ("SELECT 1 AS a UNION ALL BY NAME SELECT 2 AS b", [(1, None), (None, 2)]),
    "except": ("SELECT job FROM jobs EXCEPT SELECT job FROM jobs WHERE job > 0", [(0,)]),
    "values": ("VALUES (1), (2)", [(1,), (2,)]),
    "star exclude": ("SELECT * EXCLUDE (evidence, start_at) FROM jobs WHERE job = 3", [(3, "u3", 3)]),
    "star replace": ("SELECT * REPLACE (job + 1 AS job) FROM (SELECT 1 AS job)", [(2,)]),
    "columns": ("SELECT max(COLUMNS('^(job|n_gpus)$')) FROM jobs", [(999, 6)]),
    "list functions": ("SELECT list_sort([3, 1, 2]), list_contains([1], 1), len(range(5)), [1, 2, 3][2:]", [([1, 2, 3], True, 5, [2, 3])]),
    "lambda": ("SELECT list_filter([1, 2, 3], lambda x: x > 1), list_reduce([1, 2, 3], lambda a, b: a + b)", [([2, 3], 6)]),
    "struct": ("SELECT s.a, struct_pack(x := 1), {'k': 2}.k FROM (SELECT {'a': 1} AS s)", [(1, {"x": 1}, 2)]),
    "map": ("SELECT MAP {'a': 1}['a'], map_keys(MAP {'a': 1})", [(1, ["a"])]),
    "unnest": ("SELECT unnest([1, 2]) AS a ORDER BY a", [(1,), (2,)]),
    "json": ("SELECT evidence->0->>'check', (evidence->'$[0].n')::INT FROM jobs WHERE job = 7", [("xid", 7)]),
    "json table": ("SELECT sum((e->>'n')::INT) FROM jobs, unnest(from_json(evidence, '[\"JSON\"]')) AS u(e)", [(499500,)]),
    "json_each": ("SELECT key, value->>'n' FROM json_each('{\"a\": {\"n\": 1}}')", [("a", "1")]),
    "date_trunc": ("SELECT date_trunc('month', max(start_at))::VARCHAR FROM jobs", [("2026-02-01 00:00:00+00",)]),
    "time_bucket": ("SELECT count(DISTINCT time_bucket(INTERVAL 7 DAY, start_at)) FROM jobs", [(7,)]),
    "zones": ("SELECT (start_at AT TIME ZONE 'Europe/Berlin')::VARCHAR FROM jobs WHERE job = 0", [("2026-01-01 01:00:00",)]),
    "intervals": ("SELECT epoch(max(start_at) - min(start_at)) / 3600 FROM jobs", [(999.0,)]),
    "strftime": ("SELECT strftime(min(start_at), '%Y week %V') FROM jobs", [("2026 week 01",)]),
    "quantiles": ("SELECT median(job), quantile_cont(job, [0.1, 0.9]) FROM jobs", [(499.5, [99.9, 899.1])]),
    "arg_max and mode": ('SELECT arg_max("user", job), mode(n_gpus) FROM jobs', [("u4", 0)]),
    "regression": ("SELECT round(corr(job, job * 2), 6), round(regr_slope(job * 2, job), 6) FROM jobs", [(1.0, 2.0)]),
    "text": ("SELECT regexp_extract('node=gpu12', 'gpu(\\d+)', 1), string_split('a,b', ','), 'Abc' ILIKE 'a%'", [("12", ["a", "b"], True)]),
    "case and coalesce": ("SELECT CASE WHEN n_gpus IS NULL THEN 'x' ELSE coalesce(NULL, 'y') END FROM jobs LIMIT 1", [("y",)]),
    "casts": ("SELECT TRY_CAST('x' AS INTEGER), '7'::SMALLINT, 5 // 2, 5 / 2", [(None, 7, 2, 2.5)]),
    "pivot with its values": ("SELECT * FROM (PIVOT (SELECT \"user\", n_gpus FROM jobs WHERE n_gpus < 2) ON n_gpus IN (0, 1) USING count(*)) ORDER BY 1 LIMIT 1", [("u0", 29, 29)]),
    "unpivot": ("UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b", [("a", 1), ("b", 2)]),
    "sample": ("SELECT count(*) FROM (FROM jobs USING SAMPLE 10 ROWS)", [(10,)]),
    "positional join": ("SELECT count(*) FROM jobs POSITIONAL JOIN (FROM range(1000))", [(1000,)]),
    "prefix alias": ("SELECT total: sum(job) FROM jobs", [(499500,)]),
    "dots": ("SELECT 'AbC'.lower().reverse()", [("cba",)]),
    "a word like query": ("SELECT 1 AS query, 2 AS my_query", [(1, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_query_is_answered(place: Path, name: str) -> None:
    sql, expected = HONEST[name]
    rows = ask(place / "warehouse-1.duckdb", sql, replace(QUICK, wall_seconds=20.0)).rows
    assert rows == expected


DESCRIPTIONS = {
    "summarize": ("SUMMARIZE jobs", 5),
    "describe": ("DESCRIBE jobs", 5),
    "describe a query": ("DESCRIBE SELECT 1 AS a", 1),
    "show": ("SHOW TABLES", 1),
    "explain": ("EXPLAIN SELECT * FROM jobs", 1),
    "explain as JSON": ("EXPLAIN (FORMAT json) SELECT * FROM jobs", 1),
    "explain in brackets": ("EXPLAIN (SELECT 1)", 1),
    "explain and run": ("-- how long?\nEXPLAIN ANALYZE SELECT count(*) FROM jobs", 1),
    "catalog": ("SELECT * FROM information_schema.columns WHERE table_name = 'jobs'", 5),
    "comments": ("SELECT comment FROM duckdb_tables() WHERE comment = 'attempts'", 1),
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_a_question_about_the_data_itself_is_answered(place: Path, name: str) -> None:
    sql, n_rows = DESCRIPTIONS[name]
    assert len(ask(place / "warehouse-1.duckdb", sql, QUICK).rows) == n_rows


AS_PROCESSES = {
    "honest": HONEST["dots"][0],
    "description": DESCRIPTIONS["summarize"][0],
    "harmless": CHEAP_NOTHING["variables"],
    **{
        name: REFUSED[name]
        for name in (
            "two with a comment",
            "EXECUTE",
            "PIVOT that writes",
            "SHOW a setting",
            "zero byte",
            "nested too deep",
            "unknown parameter",
        )
    },
}
"""Ten of all kinds: a process says the same as its judge here."""


@pytest.mark.parametrize("name", AS_PROCESSES)
def test_a_process_answers_as_its_judge_does(place: Path, name: str) -> None:
    def said(way: Callable[..., QueryResult]) -> object:
        sql = AS_PROCESSES[name].replace("<place>", str(place))
        try:
            return way(place / "warehouse-1.duckdb", sql, QUICK).rows
        except QueryError as error:
            return str(error)

    assert said(run_query) == said(ask)


def test_there_are_as_many_probes_as_were_asked_for() -> None:
    assert len(REFUSED) + len(CONTAINED) >= 60
    assert len(HONEST) + len(DESCRIPTIONS) >= 40
