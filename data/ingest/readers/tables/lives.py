"""A table of lives, CSV or Parquet: how old a part grew, and whether it died."""

from __future__ import annotations

import math
import tempfile
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from data.errors import SourceError
from data.ingest.formats.source import opened, without_long_lines
from data.ingest.formats.tabular import opened_table
from data.limits import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.arrays import Bools, Floats
    from data.ingest.formats.tabular import Record

AGES: Final = ("age", "duration", "duration_s", "hours", "days", "years", "time")
"""Columns of an age, in the order in which they are looked for."""
DEATHS: Final = ("died", "dead", "failed", "event_observed", "event", "observed")
DELIMITERS: Final = ",;\t|"
YES: Final = frozenset({"1", "1.0", "true", "t", "yes", "y", "dead", "died", "failed"})
NO: Final = frozenset({"0", "0.0", "false", "f", "no", "n", "alive", "censored"})


@dataclass(frozen=True)
class LifeFile:
    """What a file holds; arrays of one length."""

    age: Floats
    died: Bools
    since: Floats | None
    """Age from which each was watched; None where no column says it."""
    group: tuple[str | None, ...] | None
    column: str
    """Of the age."""
    n_rejected: int
    """Rows without an age, or of which nobody knows whether it died."""
    rejected_at: int | None
    """Line of the first of them."""


def read_lives(
    name: str,
    *,
    age: str | None = None,
    died: str | None = None,
    since: str | None = None,
    group: str | None = None,
) -> LifeFile:
    """Lives of a file; `-` is standard input.

    Parameters
    ----------
    age, died, since, group
        Names of columns; of the first two those of `AGES` and `DEATHS` where none is given.

    Raises
    ------
    SourceError
        Where the file cannot be read, lacks a column or holds no life.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(name, Path(folder)) as whole,
        without_long_lines(whole, DEFAULTS, Path(folder)) as source,
    ):
        header, records = opened_table(source, _delimiter(source.path), None)
        columns = {
            "age": _column(name, header, AGES if age is None else (age,), "age"),
            "died": _column(name, header, DEATHS if died is None else (died,), "died"),
        }
        for key, asked in (("since", since), ("group", group)):
            if asked is not None:
                columns[key] = _column(name, header, (asked,), key)
        file = _taken(records, columns)
    if not len(file.age):
        where = "" if file.rejected_at is None else f", the first of line {file.rejected_at}"
        raise SourceError(
            f"{name}: holds no life ({file.n_rejected:,} rows left out{where}): give an age above "
            "or at 0, and whether it died (1 or 0, true or false, yes or no)"
        )
    return file


def _delimiter(path: Path) -> str:
    """The sign that the first line shows most; a comma where it shows none."""
    with path.open("rb") as stream:
        return max(DELIMITERS, key=stream.readline(1 << 16).decode(errors="replace").count)


def _column(name: str, header: list[str], wanted: Iterable[str], key: str) -> str:
    """The first column of those wanted, in any case."""
    there = {column.strip().casefold(): column for column in reversed(header)}
    found = next((there[each.casefold()] for each in wanted if each.casefold() in there), None)
    if found is None:
        option = {"age": "--age", "died": "--died", "since": "--since-age", "group": "--by"}[key]
        raise SourceError(
            f"{name}: has no column {' or '.join(wanted)}: name it with {option}; there are "
            f"{', '.join(header[:20])}"
        )
    return found


def _taken(records: Iterable[Record], columns: dict[str, str]) -> LifeFile:
    """Rows with an age of 0 or more and a known end."""
    rows, died, group = array("d"), array("b"), list[str | None]()
    n_rejected, rejected_at = 0, None
    for record in records:
        values = record.values or {}
        age, since = (_number(values.get(columns.get(key, ""))) for key in ("age", "since"))
        end = str(values.get(columns["died"])).strip().casefold()
        if not 0 <= age < math.inf or end not in YES | NO:
            n_rejected += 1
            rejected_at = record.line_no if rejected_at is None else rejected_at
            continue
        rows.extend((age, since))
        died.append(end in YES)
        told = values.get(columns.get("group", ""))
        group.append(str(told).strip() or None if told is not None else None)
    lives = np.frombuffer(rows).reshape(-1, 2) if len(rows) else np.empty((0, 2))
    return LifeFile(
        lives[:, 0],
        np.frombuffer(died, dtype=np.int8).astype(bool) if len(died) else np.empty(0, dtype=bool),
        lives[:, 1] if "since" in columns else None,
        tuple(group) if "group" in columns else None,
        columns["age"],
        n_rejected,
        rejected_at,
    )


def _number(value: object) -> float:
    """A number; NaN where it is none."""
    try:
        return float(str(value).strip())
    except ValueError:
        return math.nan
