"""faultline sql: one honest query, its rows to the last digit, everything else refused."""

from __future__ import annotations

import csv
import io
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


def test_no_rows_are_an_empty_list(faultline: Callable[..., Any], sacct_store: Path) -> None:
    assert faultline("sql", "SELECT 1 WHERE false", "--store", sacct_store).json == []


def test_more_rows_than_shown_are_announced(
    faultline: Callable[..., Any], sacct_store: Path
) -> None:
    said = faultline("sql", "SELECT * FROM range(10001)", "--store", sacct_store)
    assert len(said.json) == 10_000
    assert said.err == "only the first 10,000 rows: aggregate, or add a LIMIT\n"


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_everything_but_one_select_is_refused_in_one_line(
    refused: Callable[..., str], sacct_store: Path, case: tuple[str, str]
) -> None:
    query, message = case
    assert message in refused("sql", query, "--store", sacct_store)


def test_a_store_that_is_not_there_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "holds no store" in refused("sql", "SELECT 1", "--store", tmp_path / "none")
