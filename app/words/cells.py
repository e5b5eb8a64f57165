"""How the values of a table's cells are printed, and how sheets hold them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from app.words import moments, numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from analytics.estimate import Estimate

Kind = Literal[
    "text", "count", "number", "ratio", "decimal", "hours", "day", "time", "second", "flag",
    "rate", "share", "mttf", "ettr",
]  # fmt: skip
"""rate, share (a ratio), mttf (hours) and ettr (a ratio) are estimates; decimal is a ratio that is
written with three decimals, not as a percentage; times are UTC."""
ESTIMATES = ("rate", "share", "mttf", "ettr")
Link = Literal["job", "node", "incident", "run", "trace", "user", "sql", "term", "training"]
"""What a cell can open: the page of its job, node, incident, run, straggler trace, user, query in
SQL or term; of a run what it logged."""
_NUMBER = re.compile(r"[+-]?(\d[\d,]*\.?\d*|\.\d+)(e[+-]?\d+)?( ?%)?", re.IGNORECASE)
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a formula begins with; the wide forms are read alike in East Asian sheets."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    key: str
    """Its name in the schema and in JSON: snake_case, with the unit."""
    title: str
    """What stands above it, with the unit where the values do not carry it."""
    kind: Kind = "text"
    unit: str = ""
    """Of the numbers that a sheet holds, where the title does not name it."""
    none: str = numbers.UNKNOWN
    """What is printed where there is no value, and why; a sheet's cell stays empty."""
    help: str = ""
    """What the values mean, where the title does not say it."""
    link: Link | None = None
    """What a cell opens."""
    shown: bool = True
    """Whether people see it; what is not shown serves links and downloads."""
    wide: bool = False
    """Whether only a page, which scrolls sideways, has room for it."""
    px: int | None = None
    """Its width on a page, where its texts break into lines; None where it takes what it needs."""


def titles(column: Column) -> tuple[str, ...]:
    """Titles of what a column prints: an estimate has its interval beside it, times their zone."""
    title = headed(column, in_unit=column.kind not in ("hours", "mttf"))
    return (title, "Interval") if column.kind in ESTIMATES else (title,)


def headed(column: Column, *, in_unit: bool = True, timezone: str = "UTC") -> str:
    """What stands above a column, with the zone of times and, where cells are `in_unit`, the unit.

    >>> headed(Column("at_least", "At least", "number", "GPU-h"))
    'At least (GPU-h)'
    >>> headed(Column("end_at", "Ended", "time", "UTC"), timezone="Europe/Berlin")
    'Ended (Europe/Berlin)'
    >>> headed(Column("lost_gpu_hours", "Lost (GPU-h)", "number", "GPU-h"))
    'Lost (GPU-h)'
    """
    zoned = column.kind in ("time", "second")
    unit = timezone if zoned else column.unit if in_unit else ""
    return column.title if not unit or f"({unit})" in column.title else f"{column.title} ({unit})"


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
    writers: dict[str, Callable[[Any], str]] = {
        "count": numbers.count,
        "number": numbers.number,
        "ratio": numbers.percent,
        "decimal": numbers.decimals,
        "hours": numbers.duration,
        "day": numbers.day,
        "time": moments.minute,
        "second": moments.second,
        "flag": lambda holds: "yes" if holds else "no",
    }
    return (writers[column.kind](value),)


def estimate(kind: Kind, value: Estimate) -> tuple[str, str]:
    """Value and interval of an estimate; where only a bound is known, it stands in both places.

    >>> from analytics.estimate import Estimate
    >>> estimate("ettr", Estimate(0.9, 0.85, 0.93, 0.9, 40))
    ('0.900', '0.850 to 0.930')
    """
    if kind == "rate":
        return numbers.number(value.value), numbers.interval(value)
    if kind == "share":
        return numbers.percent(value.value), numbers.percent_interval(value)
    if kind == "ettr":
        return numbers.decimals(value.value), numbers.decimals_interval(value)
    return numbers.duration(value.value), numbers.duration_interval(value)


def basis(kind: Kind, value: Estimate) -> str:
    """What an estimate rests on: its interval at its level, and n.

    >>> from analytics.estimate import Estimate
    >>> basis("rate", Estimate(6.5, 5.8, 7.3, 0.9, 100))
    '5.80 to 7.30 (90 %), n = 100'
    >>> basis("mttf", Estimate(None, 50.0, None, 0.9, 0))
    'one-sided 95 %, n = 0'
    """
    n = f"n = {value.n:,}"
    if value.lower is None and value.upper is None:
        return n
    if value.value is None:
        return f"{numbers.level(value)}, {n}"
    of_ratio = kind == "ettr" and not value.assumed
    level = numbers.percent(value.conf_level) if of_ratio else numbers.level(value)
    return f"{estimate(kind, value)[1]} ({level}), {n}"


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
    """A frame with texts and column names that no spreadsheet runs as formulas."""
    texts_only = frame.select_dtypes(["object", "string"]).columns
    safe = frame.assign(
        **{
            name: frame[name].map(lambda v: neutral(v) if isinstance(v, str) else v)
            for name in texts_only
        }
    )
    return safe.rename(columns=lambda name: neutral(str(name)))
