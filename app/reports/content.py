"""What all reports are made of: numbers, tables, and what they were made from."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from data.site import load_site

if TYPE_CHECKING:
    from app.questions import Coverage
    from data.store import Store

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Headline:
    """A number of the report as it is printed."""

    label: str
    value: str
    interval: str
    n: str
    definition: str


@dataclass(frozen=True)
class Table:
    """A table of the report as it is printed."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: str
    """What to say where there are no rows."""
    n_text_columns: int = 1
    """Leading columns that hold text; the others hold numbers."""


def basis(store: Store) -> dict[str, str]:
    """Versions and configuration that a report was made from."""
    return {
        "product": f"Faultline {version('faultline')}",
        "schema": str(store.current.schema_version),
        "configuration": load_site(store.root).sha256,
    }


def digest(printed: dict[str, Any]) -> str:
    """SHA-256 of what a report says: the same content has the same hash, whenever it is made."""
    text = json.dumps(printed, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def one_line(text: str) -> str:
    r"""Text of a log or record without control characters and line ends.

    >>> one_line("\x1b[31mred\x1b[0m\r\nnext")
    'red next'
    """
    return " ".join(_CONTROL.sub("", text).split())


def printable(text: str) -> str:
    r"""A line of a log as it stands, without control characters; its indent stays.

    >>> printable("\t\x07at x\r\n")
    '        at x'
    """
    return " ".join(_CONTROL.sub("", text).expandtabs().splitlines())


def coverage_table(coverage: Coverage) -> Table:
    """Which source covers which days."""
    rows = tuple(
        (
            f"{row.cluster}: {row.source}",
            f"{row.first_at:%Y-%m-%d}",
            f"{row.last_at:%Y-%m-%d}",
            f"{row.n_rows:,}",
            f"{row.days_without_rows:,}",
        )
        for row in coverage.sources.itertuples()
    )
    columns = ("Source", "First day", "Last day", "Rows", "Days without rows")
    return Table("What this rests on", columns, rows, "Nothing was read.")
