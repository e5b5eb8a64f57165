"""How the values of a table's cells are printed, and how sheets hold them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from app.figures import numbers

if TYPE_CHECKING:
    import pandas as pd

    from analytics.estimate import Estimate

Kind = Literal[
    "text", "count", "number", "ratio", "hours", "day", "time", "second",
    "rate", "share", "mttf",
]  # fmt: skip
"""rate, share (a ratio) and mttf (hours) are estimates; times are UTC."""
ESTIMATES = ("rate", "share", "mttf")
_NUMBER = re.compile(r"[+-]?(\d[\d,]*\.?\d*|\.\d+)(e[+-]?\d+)?( ?%)?", re.IGNORECASE)
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a formula begins with; the wide forms are read alike in East Asian sheets."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    key: str
    """In JSON: snake_case, with the unit."""
    title: str
    kind: Kind = "text"
    unit: str = ""
    """Of the numbers that a sheet holds, where the title does not name it."""
    none: str = numbers.UNKNOWN
    """What is printed where there is no value; a sheet's cell stays empty."""


def titles(column: Column) -> tuple[str, ...]:
    """Titles of what a column prints: an estimate has its interval beside it."""
    return (column.title, "Interval") if column.kind in ESTIMATES else (column.title,)


def alignment(column: Column) -> Literal["text", "time", "number"]:
    """How a column stands: texts and times to the left, numbers to the right."""
    if column.kind == "text":
        return "text"
    return "time" if column.kind in ("day", "time", "second") else "number"


def texts(column: Column, value: Any) -> tuple[str, ...]:
    """A value as it is printed; of an estimate, value and interval.

    >>> from analytics.estimate import Estimate
    >>> texts(Column("mttf_hours", "MTTF", "mttf"), Estimate(14.2, 11.1, 18.0, 0.9, 40))
    ('14.2 h', '11.1 to 18.0 h')
    >>> texts(Column("gpus", "GPUs", "count"), None)
    ('unknown',)
    """
    if column.kind in ESTIMATES:
        return estimate(column.kind, value)
    if column.kind == "text":
        return (value or "",)
    if value is None:
        return (column.none,)
    writers = {
        "count": numbers.count,
        "number": numbers.number,
        "ratio": numbers.percent,
        "hours": numbers.duration,
        "day": lambda at: f"{at:%Y-%m-%d}",
        "time": lambda at: f"{at:%Y-%m-%d %H:%M}",
        "second": lambda at: f"{at:%Y-%m-%d %H:%M:%S}",
    }
    return (writers[column.kind](value),)


def estimate(kind: Kind, found: Estimate) -> tuple[str, str]:
    """Value and interval of an estimate."""
    if kind == "rate":
        return numbers.number(found.value), numbers.interval(found)
    if kind == "share":
        return numbers.percent(found.value), numbers.percent_interval(found)
    return numbers.duration(found.value), numbers.duration_interval(found)


def neutral(text: str) -> str:
    r"""Text that no spreadsheet runs as a formula: an apostrophe stands before one.

    Numbers stay as they are, negative ones too.

    >>> neutral("=1+1"), neutral("-2.5"), neutral("-2+cmd"), neutral("\t@x"), neutral("a=b")
    ("'=1+1", '-2.5', "'-2+cmd", "'\t@x", 'a=b')
    """
    if _NUMBER.fullmatch(text):
        return text
    risky = text.startswith(("\t", "\r", "\n")) or text.lstrip().startswith(_FORMULA)
    return f"'{text}" if risky else text


def neutral_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose texts, names of columns included, no spreadsheet runs as formulas."""
    texts_only = frame.select_dtypes(["object", "string"]).columns
    safe = frame.assign(
        **{
            name: frame[name].map(lambda v: neutral(v) if isinstance(v, str) else v)
            for name in texts_only
        }
    )
    return safe.rename(columns=lambda name: neutral(str(name)))
