"""What commands print: JSON for machines, tables for people, CSV for sheets."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import sys
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from analytics.estimate import Estimate
from app.figures.numbers import number
from app.reports.cells import neutral

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Row = dict[str, Any]


def chosen(requested: str | None) -> str:
    """The output's format."""
    return requested or ("table" if sys.stdout.isatty() else "json")


def notice(text: str) -> None:
    """One line for people, on stderr."""
    print(text, file=sys.stderr)


def progress(text: str) -> None:
    """Progress of long work, on stderr: one line rewritten on a terminal, else nothing."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def progress_done() -> None:
    """Clears the line of progress."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def plain(value: Any) -> Any:
    """A value as JSON holds it: estimates as objects, times as ISO, unknown as null."""
    if isinstance(value, Estimate):
        return {key: plain(found) for key, found in dataclasses.asdict(value).items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, dict):
        return {str(key): plain(found) for key, found in value.items()}
    if isinstance(value, list | tuple):
        return [plain(found) for found in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime | date):
        return None if value != value else value.isoformat()
    if _is_na(value):
        return None
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_json(document: Any) -> None:
    """One JSON document."""
    print(json.dumps(plain(document), indent=2, ensure_ascii=False, default=str))


def print_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Rows with a header; unknown is empty."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([_in_sheet(column) for column in columns])
    for row in rows:
        writer.writerow([_in_sheet(plain(value)) for value in row])


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], form: str) -> None:
    """Rows in the form asked for, to the last digit; of columns with one name, the later ones
    are numbered in JSON."""
    if form == "json":
        names = _distinct(columns)
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    elif form == "csv":
        print_csv(columns, rows)
    else:
        print_table(columns, rows, cell=lambda value: str(_in_csv(plain(value))))


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    cell: Callable[[Any], str] | None = None,
) -> None:
    """Aligned columns: numbers right, text left; `cell` writes a value, else it is rounded."""
    cells = [[(cell or _cell)(value) for value in row] for row in rows]
    numeric = [
        all(isinstance(row[index], int | float | Decimal | None) for row in rows)
        for index in range(len(columns))
    ]
    widths = [
        max([len(column), *(len(row[index]) for row in cells)])
        for index, column in enumerate(columns)
    ]

    def line(row: Sequence[str]) -> str:
        aligned = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, numeric, strict=True)
        )
        return "  ".join(aligned).rstrip()

    print(line(columns))
    print("  ".join("-" * width for width in widths))
    for row in cells:
        print(line(row))


def estimate(value: Estimate, unit: str = "") -> str:
    """An estimate in words: value, interval, n."""
    if value.value is None and value.lower is None:
        return f"unknown (n {value.n:,})"
    suffix = f" {unit}" if unit else ""
    if value.value is None:
        return f"over {number(value.lower)}{suffix} (n {value.n:,}, one-sided)"
    low = number(value.lower) if value.lower is not None else "unknown"
    high = number(value.upper) if value.upper is not None else "unknown"
    return (
        f"{number(value.value)}{suffix} "
        f"({low} to {high}, {100 * value.conf_level:g} %, n {value.n:,})"
    )


def _is_na(value: Any) -> bool:
    """Whether it is pandas' NA, told by its name: most commands need no pandas."""
    return type(value).__name__ == "NAType"


def _in_csv(value: Any) -> Any:
    """A plain value as one cell: what is nested is JSON, unknown is empty."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "" if value is None else value


def _in_sheet(value: Any) -> Any:
    """The same where a spreadsheet reads it: no text is run as a formula."""
    cell = _in_csv(value)
    return neutral(cell) if isinstance(cell, str) else cell


def _distinct(columns: Sequence[str]) -> list[str]:
    """Names made distinct: a, a_2."""
    names: list[str] = []
    for column in columns:
        name, place = column, 1
        while name in names:
            place += 1
            name = f"{column}_{place}"
        names.append(name)
    return names


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, datetime):
        return "" if value != value else f"{value:%Y-%m-%d %H:%M}"
    return "" if value is None or _is_na(value) else str(value)


def print_record(record: Row, form: str) -> None:
    """One record: JSON, CSV of one row, or a line a key."""
    if form == "json":
        print_json(record)
    elif form == "csv":
        print_csv(list(record), [list(record.values())])
    else:
        width = max(len(key) for key in record)
        for key, value in record.items():
            print(f"{key.ljust(width)}  {_in_words(value)}")


def _in_words(value: Any) -> str:
    if isinstance(value, Estimate):
        return estimate(value)
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(found)}" for key, found in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(found) for found in value) or "none"
    return "unknown" if value is None else _cell(value)
