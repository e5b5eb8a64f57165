"""The rows of a query leave as files that hold them exactly, and that no spreadsheet runs."""

from __future__ import annotations

import csv
import datetime
import io
import json
import uuid
from dataclasses import replace
from decimal import Decimal

import openpyxl
import pyarrow.parquet as pq
import pytest

from app.reports.query_files import WRITERS, Asked, as_csv, as_json, as_parquet, as_xlsx
from data.sandbox import QueryLimits, QueryResult

AT = datetime.datetime(2026, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
ASKED = Asked(
    "SELECT '=1+1'", "cluster a · synthetic data", {"from_at": AT, "cluster": None}, 3, True
)
DANGEROUS = ["=1+1", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "=HYPERLINK(1)"]
TYPES = {
    "n": ("BIGINT", 2**60 + 1), "rate": ("DOUBLE", -0.25), "odd": ("DOUBLE", float("nan")),
    "price": ("DECIMAL(9,3)", Decimal("-12.340")), "huge": ("HUGEINT", 2**100),
    "text": ("VARCHAR", "é,\n\"x\""), "yes": ("BOOLEAN", True), "day": ("DATE", AT.date()),
    "at": ("TIMESTAMP WITH TIME ZONE", AT), "local": ("TIMESTAMP", AT.replace(tzinfo=None)),
    "lasting": ("INTERVAL", datetime.timedelta(hours=2)), "list": ("INTEGER[]", [1, None]),
    "struct": ("STRUCT(a DATE)", {"a": AT.date()}), "id": ("UUID", uuid.UUID(int=1)),
    "blob": ("BLOB", b"\xff"), "nothing": ("INTEGER", None), "far": ("DATE", "290000-01-01"),
    "clock": ("TIME", datetime.time(4, 5)),
}  # fmt: skip


def result_of(columns: list[str], types: list[str], rows: list[tuple[object, ...]]) -> QueryResult:
    return QueryResult(tuple(columns), tuple(types), rows, truncated=False, seconds=0.1)


@pytest.fixture
def typed() -> QueryResult:
    row = tuple(value for _, value in TYPES.values())
    return result_of([*TYPES], [type_ for type_, _ in TYPES.values()], [row, (None,) * len(row)])


@pytest.fixture
def dangerous() -> QueryResult:
    return result_of(["=name"], ["VARCHAR"], [(text,) for text in DANGEROUS])


def test_csv_says_what_was_filtered_by(typed: QueryResult) -> None:
    header, first, empty = csv.reader(io.StringIO(as_csv(typed, ASKED).decode()))
    assert header == [*TYPES, "faultline_selection"]
    row = dict(zip(header, first, strict=True))
    assert row["faultline_selection"] == "cluster a · synthetic data"
    assert (row["n"], row["rate"], row["price"]) == (str(2**60 + 1), "-0.25", "-12.340")
    assert (row["at"], row["list"], row["odd"]) == ("2026-02-03T04:05:06+00:00", "[1, null]", "")
    assert set(empty[:-1]) == {""}


def test_json_holds_the_query_the_parameters_and_the_types(typed: QueryResult) -> None:
    document = json.loads(as_json(typed, ASKED))
    assert document["query"] == "SELECT '=1+1'"
    assert document["parameters"] == {"from_at": "2026-02-03T04:05:06+00:00", "cluster": None}
    assert (document["snapshot"], document["synthetic"], document["n_rows"]) == (3, True, 2)
    assert document["columns"][0] == {"name": "n", "type": "BIGINT"}
    first = document["rows"][0]
    assert first["n"] == 2**60 + 1
    assert first["price"] == "-12.340"
    assert first["odd"] is None
    assert first["struct"] == {"a": "2026-02-03"}


def test_parquet_keeps_types_and_says_what_was_asked(typed: QueryResult) -> None:
    table = pq.read_table(io.BytesIO(as_parquet(typed, ASKED)))
    said = {key.decode(): json.loads(value) for key, value in table.schema.metadata.items()}
    assert said["faultline_query"] == "SELECT '=1+1'"
    assert said["faultline_snapshot"] == 3
    types = {field.name: str(field.type) for field in table.schema}
    assert types["n"] == "int64"
    assert types["price"] == "decimal128(9, 3)"
    assert types["at"] == "timestamp[us, tz=UTC]"
    assert types["list"].startswith("list")
    assert types["far"] == types["id"] == "string"
    first = table.to_pylist()[0]
    assert (first["n"], first["text"], first["price"]) == (2**60 + 1, 'é,\n"x"', Decimal("-12.340"))
    assert set(table.to_pylist()[1].values()) == {None}


def test_a_workbook_keeps_numbers_and_times_and_says_what_was_asked(typed: QueryResult) -> None:
    book = openpyxl.load_workbook(io.BytesIO(as_xlsx(typed, ASKED)))
    cells = dict(zip(TYPES, next(book["Rows"].iter_rows(min_row=2, max_row=2)), strict=True))
    assert (cells["rate"].value, cells["rate"].data_type) == (-0.25, "n")
    assert cells["price"].value == -12.34
    assert cells["at"].value == AT.replace(tzinfo=None)
    assert cells["n"].value == str(2**60 + 1)  # more digits than a spreadsheet holds
    assert cells["yes"].value is True
    assert cells["lasting"].value == 7200
    assert cells["nothing"].value is None
    said = {row[0].value: row[1].value for row in book["Query"].iter_rows()}
    assert said["query"] == "SELECT '=1+1'"
    assert said["filters"] == "cluster a · synthetic data"


def test_no_text_is_a_formula_in_csv(dangerous: QueryResult) -> None:
    header, *rows = csv.reader(io.StringIO(as_csv(dangerous, ASKED).decode(), newline=""))
    assert header[0] == "'=name"
    assert [row[0] for row in rows] == [f"'{text}" for text in DANGEROUS]


def test_no_text_is_a_formula_in_a_workbook(dangerous: QueryResult) -> None:
    book = openpyxl.load_workbook(io.BytesIO(as_xlsx(dangerous, ASKED)))
    for sheet in book:
        assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)
        assert all(cell.hyperlink is None for row in sheet.iter_rows() for cell in row)
    shown = [row[0].value for row in book["Rows"].iter_rows(min_row=2)]
    assert shown[0] == "=1+1"
    assert all(row[0].quotePrefix for row in book["Rows"].iter_rows(min_row=2))


@pytest.mark.parametrize("kind", WRITERS)
def test_columns_of_one_name_and_no_rows_are_written(kind: str) -> None:
    write = WRITERS[kind]
    assert write(result_of(["a", "a"], ["INTEGER", "INTEGER"], [(1, 2)]), ASKED)
    assert write(result_of(["a"], ["INTEGER"], []), ASKED)


@pytest.mark.parametrize("kind", WRITERS)
def test_every_type_of_the_engine_can_be_written(kind: str, tmp_path: object) -> None:
    import duckdb

    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        answer = con.execute("SELECT * FROM test_all_types()")
        columns = [str(each[0]) for each in answer.description]
        types = [str(each[1]) for each in answer.description]
        rows = answer.fetchall()
    assert WRITERS[kind](result_of(columns, types, rows), ASKED)


def test_every_file_says_where_columns_were_left_out() -> None:
    cut = replace(result_of(["a"], ["INTEGER"], [(1,)]), columns_left_out=1_999)
    assert b"the first 1 of 2,000 columns" in as_csv(cut, ASKED)
    assert json.loads(as_json(cut, ASKED))["columns_left_out"] == 1_999
    said = pq.read_table(io.BytesIO(as_parquet(cut, ASKED))).schema.metadata
    assert said[b"faultline_columns_left_out"] == b"1999"
    book = openpyxl.load_workbook(io.BytesIO(as_xlsx(cut, ASKED)))
    told = {row[0].value: row[1].value for row in book["Query"].iter_rows()}
    assert told["columns_left_out"] == "1999"


@pytest.mark.parametrize("kind", WRITERS)
def test_a_value_nested_as_deep_as_a_query_may_answer_is_written(kind: str) -> None:
    value: object = 7
    for _ in range(QueryLimits().max_levels // 2):
        value = [{"a": value}]
    content = WRITERS[kind](result_of(["v"], ["STRUCT"], [(value,), (None,)]), ASKED)
    if kind == "json":
        assert json.loads(content)["rows"] == [{"v": value}, {"v": None}]
    elif kind == "parquet":
        rows = pq.read_table(io.BytesIO(content))["v"].to_pylist()
        assert [json.loads(rows[0]), rows[1]] == [value, None]  # deeper than its readers go
    elif kind == "csv":
        assert json.loads([*csv.reader(io.StringIO(content.decode()))][1][0]) == value
    else:
        rows = openpyxl.load_workbook(io.BytesIO(content))["Rows"]
        assert json.loads(str(rows["A2"].value)) == value


@pytest.mark.parametrize("levels", [1, 20, 39])
def test_parquet_holds_what_is_nested_as_deep_as_its_readers_go(levels: int) -> None:
    value: object = 7
    for _ in range(levels):
        value = [value]
    content = as_parquet(result_of(["v"], ["INTEGER[]"], [(value,)]), ASKED)
    assert pq.read_table(io.BytesIO(content)).to_pylist() == [{"v": value}]
