"""The rows of a query as a file: CSV, JSON, Parquet, XLSX; with what was asked where it has room.

Text that a spreadsheet would run as a formula is marked as text. Numbers stay numbers.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from app.words import moments
from app.words.cells import neutral

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    import pyarrow as pa

    from data.sandbox import QueryResult

LARGEST_EXACT = 2**53
"""Whole numbers that a spreadsheet holds to the last digit."""
LONGEST_CELL = 32_767
"""Characters that a cell of a spreadsheet holds."""
LEVELS_OF_PARQUET = 40
"""Types one in another: readers follow 100 levels of a schema, of which a list takes two."""
WHOLE = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
)  # fmt: skip
LARGEST = 2**63 - 1
"""Whole number that a column of them holds; a column with a larger one holds 16 digits."""
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_ARROW = {
    "BOOLEAN": "bool_",
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "UTINYINT": "uint8",
    "USMALLINT": "uint16",
    "UINTEGER": "uint32",
    "UBIGINT": "uint64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "VARCHAR": "string",
    "DATE": "date32",
    "BLOB": "binary",
}
"""DuckDB's types -> what makes pyarrow's."""


@dataclass(frozen=True)
class Asked:
    """What a file of rows must say about itself."""

    sql: str
    filters: str
    """What the page was filtered by, in words."""
    parameters: dict[str, Any]
    snapshot: int
    synthetic: bool

    def facts(self, result: QueryResult) -> dict[str, Any]:
        """Everything there is to say, as JSON can hold it."""
        return {
            "query": self.sql,
            "filters": self.filters,
            "parameters": {name: plain(value) for name, value in self.parameters.items()},
            "snapshot": self.snapshot,
            "synthetic": self.synthetic,
            "n_rows": len(result.rows),
            "truncated": result.truncated,
            "columns_left_out": result.columns_left_out,
        }


def columns_shown(result: QueryResult) -> str:
    """How many of how many columns there are, where some were left out."""
    shown = len(result.columns)
    return f"{shown:,} of {shown + result.columns_left_out:,} columns"


def plain(value: Any) -> Any:
    """A value as JSON holds it: times as ISO text, exact numbers as text, not a number as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, list | tuple):
        return [plain(found) for found in value]
    if isinstance(value, dict):
        return {str(key): plain(found) for key, found in value.items()}
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def frame_of(result: QueryResult) -> pd.DataFrame:
    """The rows as a frame: times, numbers and words as such, what is nested as JSON."""
    import pandas as pd

    return pd.DataFrame({name: _series(*column) for name, column in _columns(result).items()})


def _columns(result: QueryResult) -> dict[str, tuple[list[Any], str]]:
    """Values and type of each column."""
    described = enumerate(zip(result.names, result.types, strict=True))
    return {name: ([row[at] for row in result.rows], type_) for at, (name, type_) in described}


def _series(values: list[Any], type_: str) -> pd.Series:
    """One column; text where its values fit no type of a frame."""
    import pandas as pd

    known = [value for value in values if value is not None]
    one = not type_.endswith("]")  # else a list of them
    if type_ in WHOLE and all(abs(value) <= LARGEST for value in known):
        return pd.Series(values, dtype="Int64")
    if type_ in ("DOUBLE", "FLOAT", *WHOLE) or (one and type_.startswith("DECIMAL")):
        return pd.Series([None if v is None else float(v) for v in values], dtype="float64")
    if type_ == "BOOLEAN":
        return pd.Series(values, dtype="boolean")
    # A time outside the years 1 to 9999 came as text; one outside pandas' years stays text, too.
    if type_ == "DATE" or (one and type_.startswith("TIMESTAMP")):
        with contextlib.suppress(ValueError, OverflowError):
            if not any(isinstance(value, str) for value in known):
                return pd.to_datetime(pd.Series(values, dtype="object"), utc="ZONE" in type_)
    texts = [None if value is None else text_of(value) for value in values]
    return pd.Series(texts, dtype="string")


def as_csv(result: QueryResult, asked: Asked) -> bytes:
    """CSV; its last column says on every row what was filtered by, and which columns there are
    where some were left out."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([*(neutral(name) for name in result.names), "faultline_selection"])
    cut = f"the first {columns_shown(result)}" if result.columns_left_out else ""
    note = neutral(" · ".join(part for part in (asked.filters, cut) if part))
    for row in result.rows:
        writer.writerow([*(_cell(value) for value in row), note])
    return out.getvalue().encode()


def as_json(result: QueryResult, asked: Asked) -> bytes:
    """One object: what was asked, the columns with their types, and the rows as objects, one a
    line: laid out further, a value nested deep would be indented to many times its size."""
    about = asked.facts(result) | {
        "columns": [
            {"name": name, "type": type_}
            for name, type_ in zip(result.names, result.types, strict=True)
        ],
    }
    head = json.dumps(about, ensure_ascii=False, indent=1).removesuffix("\n}")
    rows = (dict(zip(result.names, map(plain, row), strict=True)) for row in result.rows)
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f'{head},\n "rows": [\n{lines}\n ]\n}}\n'.encode()


def as_parquet(result: QueryResult, asked: Asked) -> bytes:
    """Parquet with the columns' types; what was asked is in the metadata of its schema."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = {name: _array(*column) for name, column in _columns(result).items()}
    said = {
        f"faultline_{key}": json.dumps(value, ensure_ascii=False)
        for key, value in asked.facts(result).items()
    }
    table = pa.table(columns, metadata=said)
    out = io.BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()


def as_xlsx(result: QueryResult, asked: Asked) -> bytes:
    """A workbook: the rows on one sheet, what was asked on another."""
    import xlsxwriter

    out = io.BytesIO()
    options = {"in_memory": True, "strings_to_urls": False, "strings_to_formulas": False}
    with xlsxwriter.Workbook(out, options) as book:
        styles = {
            "head": book.add_format({"bold": True, "bottom": 1}),
            "time": book.add_format({"num_format": moments.SHEET["time"]}),
            "text": book.add_format({"quote_prefix": True}),
        }
        rows = book.add_worksheet("Rows")
        rows.freeze_panes(1, 0)
        for column, name in enumerate(result.names):
            rows.write_string(0, column, name, styles["head"])
            rows.set_column(column, column, min(max(len(name) + 2, 12), 40))
        for line, row in enumerate(result.rows, 1):
            for column, value in enumerate(row):
                _write(rows, (line, column), value, styles)
        if result.rows and result.names:
            rows.autofilter(0, 0, len(result.rows), len(result.names) - 1)
        about = book.add_worksheet("Query")
        about.set_column(0, 0, 14)
        about.set_column(1, 1, 110)
        wrapped = book.add_format({"text_wrap": True, "valign": "top", "quote_prefix": True})
        for line, (key, value) in enumerate(asked.facts(result).items()):
            about.write_string(line, 0, key, styles["head"])
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            about.write_string(line, 1, shown[:LONGEST_CELL], wrapped)
    return out.getvalue()


WRITERS: dict[str, Callable[[QueryResult, Asked], bytes]] = {
    "csv": as_csv,
    "parquet": as_parquet,
    "json": as_json,
    "xlsx": as_xlsx,
}
MIME = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


def _cell(value: Any) -> Any:
    """A value as a cell of CSV: unknown is empty, what is nested is JSON."""
    shown = plain(value)
    if shown is None or isinstance(shown, int | float):
        return "" if shown is None else shown
    return neutral(text_of(value))


def _array(values: list[Any], type_: str) -> pa.Array:
    """A column in the type that fits it; as text where none does."""
    import pyarrow as pa

    known: pa.DataType | None = None
    if type_ == "UUID":
        values = [None if value is None else str(value) for value in values]
    if found := _DECIMAL.fullmatch(type_):
        known = pa.decimal128(int(found[1]), int(found[2]))
    elif type_.startswith("TIMESTAMP") and not type_.endswith("]"):
        known = pa.timestamp("us", "UTC" if "ZONE" in type_ else None)
    elif type_ in _ARROW:
        known = getattr(pa, _ARROW[type_])()
    try:
        array = pa.array(values, known)
        if _is_parquet(array.type):
            return array
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        pass
    return pa.array([None if v is None else text_of(v) for v in values], pa.string())


def _is_parquet(type_: pa.DataType, levels: int = LEVELS_OF_PARQUET) -> bool:
    """Whether Parquet holds a type: no struct in it is empty, and readers go as deep."""
    import pyarrow as pa

    if levels == 0:
        return False
    if isinstance(type_, pa.StructType):
        return type_.num_fields > 0 and all(_is_parquet(each.type, levels - 1) for each in type_)
    if isinstance(type_, pa.MapType):
        return all(_is_parquet(each, levels - 1) for each in (type_.key_type, type_.item_type))
    if isinstance(type_, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        return _is_parquet(type_.value_type, levels - 1)
    return True


def text_of(value: Any) -> str:
    """A value as text; what is nested is JSON."""
    shown = plain(value)
    return json.dumps(shown, ensure_ascii=False) if isinstance(shown, dict | list) else str(shown)


def _write(sheet: Any, at: tuple[int, int], value: Any, styles: dict[str, Any]) -> None:
    """A value into a cell: numbers as numbers, times as times in UTC, the rest as text."""
    if value is None:
        return
    if isinstance(value, datetime.timedelta):
        value = value.total_seconds()
    if isinstance(value, datetime.datetime) and value.year >= 1900:
        naive = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
        sheet.write_datetime(*at, naive, styles["time"])
    elif isinstance(value, bool):
        sheet.write_boolean(*at, value)
    elif isinstance(value, int | float | Decimal) and _fits(value):
        sheet.write_number(*at, float(value))
    else:
        text = text_of(value)[:LONGEST_CELL]
        sheet.write_string(*at, text, None if neutral(text) == text else styles["text"])


def _fits(value: float | Decimal) -> bool:
    """Whether a spreadsheet can hold the number."""
    return math.isfinite(value) and (isinstance(value, float) or abs(value) <= LARGEST_EXACT)
