"""A table as a frame: rounded with intervals in words for a page, to the last digit for files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from app.words import cells, numbers

if TYPE_CHECKING:
    from analytics.estimate import Estimate
    from app.answers.content import Table
    from app.words.cells import Column

WHOLE = ("count",)
MEASURED = ("number", "hours")


def names(column: Column) -> tuple[str, ...]:
    """Names of the columns of a page: an estimate has its interval beside it."""
    if column.kind in cells.ESTIMATES:
        return (column.key, f"{column.key}_interval")
    return (column.key,)


def frame(table: Table) -> pd.DataFrame:
    """Values that sort as numbers and times, measured ones with three significant digits."""
    return pd.DataFrame(_shown(table), index=range(len(table)))


def _shown(table: Table) -> dict[str, Any]:
    """Columns of a page."""
    columns: dict[str, Any] = {}
    rows = table.values
    for place, column in enumerate(table.columns):
        values = [row[place] for row in rows]
        if column.kind in cells.ESTIMATES:
            value, interval = names(column)
            columns[value] = [_rounded(v.value) for v in values]
            columns[interval] = [_interval(column, v) for v in values]
        elif column.kind in ("time", "second", "day"):
            columns[column.key] = pd.to_datetime(pd.Series(values, dtype=object))
        elif column.kind in MEASURED:
            columns[column.key] = pd.Series([_rounded(v) for v in values], dtype="float64")
        elif column.kind in WHOLE:
            columns[column.key] = pd.Series(values, dtype="float64").round()
        else:
            columns[column.key] = values
    return columns


def exact(table: Table) -> pd.DataFrame:
    """Every value to the last digit under its schema name; an estimate takes five columns."""
    if isinstance(table.rows, pd.DataFrame):
        return table.rows
    columns: dict[str, Any] = {}
    for place, column in enumerate(table.columns):
        values = [row[place] for row in table.values]
        if column.kind not in cells.ESTIMATES:
            columns[column.key] = values
            continue
        columns[column.key] = [value.value for value in values]
        for name in ("lower", "upper", "conf_level", "n"):
            columns[f"{column.key}_{name}"] = [getattr(value, name) for value in values]
    return pd.DataFrame(columns)


def _rounded(value: float | None) -> float | None:
    return None if value is None or pd.isna(value) else numbers.rounded(float(value))


def _interval(column: Column, value: Estimate) -> str | None:
    """The interval in words, in the unit of its value; None where there is none."""
    in_hours = column.kind == "mttf"
    text = numbers.interval(value) if in_hours else cells.estimate(column.kind, value)[1]
    return None if text == numbers.UNKNOWN else text
