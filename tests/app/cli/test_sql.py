"""faultline sql: one honest query, its rows to the last digit, everything else refused."""

from __future__ import annotations

import csv
import io
import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REFUSED = {
    "nothing": ("", ""),
    "no SQL": ("SELEKT 1", "syntax error"),
    "no such table": ("SELECT * FROM nowhere", "nowhere"),
    "no such column": ("SELECT colour FROM jobs", "colour"),
    "two statements": ("SELECT 1; SELECT 2", "one"),
    "a change": ("DELETE FROM jobs", ""),
    "a new table": ("CREATE TABLE t AS SELECT 1", ""),
    "a file read": ("SELECT * FROM read_text('/etc/passwd')", ""),
    "a file written": ("COPY (SELECT 1) TO '/tmp/faultline-test.csv'", ""),
    "a setting": ("SET memory_limit='9GB'", ""),
    "another database": ("ATTACH '/tmp/other.duckdb'", ""),
    "a line end": ("SELECT\n*\nFROM\nnowhere", "nowhere"),
}


def test_rows_come_as_json_with_unknown_as_null(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    said = faultline("sql", "SELECT job_id, n_gpus, end_at, failed_node, 0.5 AS half, "
                     "'nan'::DOUBLE AS odd, [1, 2] AS list FROM jobs ORDER BY job_id DESC LIMIT 1",
                     "--store", sacct_store)  # fmt: skip
    assert (said.code, said.err) == (0, "")
    assert said.json == [
        {"job_id": "3", "n_gpus": 4, "end_at": None, "failed_node": None, "half": 0.5,
         "odd": None, "list": [1, 2]}
    ]  # fmt: skip


def test_columns_of_one_name_are_told_apart(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    query = "SELECT a.job_id, b.job_id FROM jobs a, jobs b WHERE a.job_id = '1' AND b.job_id = '2'"
    (row,) = faultline("sql", query, "--store", sacct_store).json
    assert sorted(row.values()) == ["1", "2"]


def test_csv_and_table_keep_every_digit(faultline: Callable[..., Any], sacct_store: Path) -> None:
    given = ("sql", "SELECT 1234567.25 AS a, 1000001 AS b, NULL AS c, 'x' AS d", "--store",
             sacct_store, "--format")  # fmt: skip
    assert list(csv.reader(io.StringIO(faultline(*given, "csv").out))) == [
        ["a", "b", "c", "d"],
        ["1234567.25", "1000001", "", "x"],
    ]
    table = faultline(*given, "table").out.splitlines()
    assert table[2].split() == ["1234567.25", "1000001", "x"]


def test_an_explain_is_answered(faultline: Callable[..., Any], sacct_store: Path) -> None:
    assert faultline("sql", "EXPLAIN SELECT 1", "--store", sacct_store).code == 0


@pytest.mark.slow
def test_tables_of_the_ledger_are_built_before_they_are_asked(
    faultline: Callable[..., Any], sacct_store: Path, tmp_path: Path
) -> None:
    own = shutil.copytree(sacct_store, tmp_path / "own")
    said = faultline("sql", "SELECT sum(gpu_seconds) > 0 AS any FROM Gpu_Time",
                     "--store", own)  # fmt: skip
    assert (said.code, said.json) == (0, [{"any": True}])
    said = faultline("sql", "SELECT count(*) > 0 AS any FROM job_runs", "--store", own)
    assert said.json == [{"any": True}]


def test_no_rows_are_an_empty_list(faultline: Callable[..., Any], sacct_store: Path) -> None:
    assert faultline("sql", "SELECT 1 WHERE false", "--store", sacct_store).json == []


def test_more_rows_than_shown_are_announced(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    said = faultline("sql", "SELECT * FROM range(10001)", "--store", sacct_store)
    assert len(said.json) == 10_000
    assert said.err == "only the first 10,000 rows: aggregate, or add a LIMIT\n"


def test_more_columns_than_shown_are_announced(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    query = f"SELECT {', '.join('*' * 1_100)} FROM (SELECT 7 AS n)"
    said = faultline("sql", query, "--store", sacct_store)
    assert said.err == "only the first 1,000 of 1,100 columns: name those that you need\n"
    (row,) = said.json
    assert [*row] == ["n", *(f"n_{place}" for place in range(2, 1_001))]
    assert set(row.values()) == {7}
    sheet = faultline("sql", query, "--store", sacct_store, "--format", "csv").out.splitlines()
    assert sheet == [",".join("n" * 1_000), ",".join("7" * 1_000)]


def test_a_long_text_makes_no_other_line_long(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    query = "SELECT repeat('x', CASE WHEN range = 0 THEN 5000 ELSE 1 END) AS a, range FROM range(3)"
    table = faultline("sql", query, "--store", sacct_store, "--format", "table").out.splitlines()
    assert [len(line) for line in table] == [207, 207, 5007, 207, 207]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_value_nested_a_hundred_deep_is_printed_and_a_deeper_one_refused(
    faultline: Callable[..., Any], sacct_store: Path, form: str
) -> None:
    deep = ("sql", f"SELECT {'[' * 100}7{']' * 100} AS v", "--store", sacct_store)
    printed = faultline(*deep, "--format", form).out
    assert (printed.count("["), printed.count("7"), printed.count("]")) == (
        (100 + (form == "json"), 1, 100 + (form == "json"))
    )
    said = faultline("sql", f"SELECT {'[' * 120}7{']' * 120} AS v", "--store", sacct_store)
    assert said.code == 2
    assert "more than 100 levels deep" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_everything_but_one_select_is_refused_in_one_line(
    refused: Callable[..., str], sacct_store: Path, name: str
) -> None:
    query, message = REFUSED[name]
    assert message in refused("sql", query, "--store", sacct_store)


def test_a_store_that_is_not_there_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "holds no store" in refused("sql", "SELECT 1", "--store", tmp_path / "none")


def test_the_filters_are_parameters(faultline: Callable[..., Any], sacct_store: Path) -> None:
    query = "SELECT job_id FROM jobs WHERE end_at >= $from_at AND ($cluster IS NULL OR cluster = $cluster)"
    given = ("sql", query, "--store", sacct_store)
    assert [row["job_id"] for row in faultline(*given).json] == ["1", "2"]
    later = faultline(*given, "--from", "2026-01-06T12:00", "--cluster", "c").json
    assert [row["job_id"] for row in later] == ["2"]


def test_a_parameter_that_is_none_is_refused(
    refused: Callable[..., str], sacct_store: Path
) -> None:
    assert "parameter $user is unknown: there are $cluster, $from_at" in refused(
        "sql", "SELECT $user", "--store", sacct_store
    )
    assert "--cluster must be one of the store's" in refused(
        "sql", "SELECT 1", "--cluster", "x", "--store", sacct_store
    )


def test_a_query_comes_from_standard_input(
    faultline: Callable[..., Any], sacct_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 7 AS n"))
    assert faultline("sql", "-", "--store", sacct_store).json == [{"n": 7}]


@pytest.mark.parametrize(
    ("kind", "first_bytes"),
    [("csv", b"job_id,n_gpus,faultline_selection"), ("json", b"{"), ("parquet", b"PAR1"), ("xlsx", b"PK")],
)  # fmt: skip
def test_rows_are_written_to_a_file(
    faultline: Callable[..., Any], sacct_store: Path, tmp_path: Path, kind: str, first_bytes: bytes
) -> None:
    out = tmp_path / f"rows.{kind}"
    said = faultline("sql", "SELECT job_id, n_gpus FROM jobs", "--store", sacct_store,
                     "--min-gpus", "4", "--as", kind, "--out", out)  # fmt: skip
    assert said.code == 0
    assert said.json == {"file": str(out), "rows": 3}
    assert out.read_bytes().startswith(first_bytes)
    if kind == "csv":
        assert b"min_gpus 4" in out.read_bytes()


def test_a_file_needs_its_kind_and_a_place(
    refused: Callable[..., str], sacct_store: Path, tmp_path: Path
) -> None:
    given = ("sql", "SELECT 1", "--store", sacct_store)
    assert "--as and --out go together" in refused(*given, "--as", "csv")
    assert "--as and --out go together" in refused(*given, "--out", tmp_path / "x.csv")
    assert "cannot be written" in refused(*given, "--as", "csv", "--out", tmp_path / "no" / "x.csv")


def test_what_shows_the_server_is_refused(refused: Callable[..., str], sacct_store: Path) -> None:
    said = refused("sql", "FROM duckdb_settings()", "--store", sacct_store)
    assert "duckdb_settings is not for ad hoc queries" in said
