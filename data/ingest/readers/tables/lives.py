"""A table of lives, CSV or Parquet: how old a part grew, and whether it died."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from data.errors import SourceError
from data.ingest.formats.tabular import table_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from analytics.arrays import Bools, Floats
    from data.ingest.formats.tabular import Record

AGES: Final = ("age", "duration", "duration_s", "hours", "days", "years", "time")
"""Columns of an age, in the order in which they are looked for."""
DEATHS: Final = ("died", "dead", "failed", "event_observed", "event", "observed")
UNKNOWN_CAUSE: Final = "unknown"
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
    cause: tuple[str, ...] | None
    """Of each that died; `UNKNOWN_CAUSE` where none is told, empty of the others."""
    column: str
    """Of the age."""
    n_rejected: int
    """Rows without an age, or of which nobody knows whether it died."""
    rejected_at: int | None
    """Line of the first of them."""


@dataclass(frozen=True)
class LifeColumns:
    """Names of the columns of a table of lives, in any case."""

    age: str | None = None
    """One of `AGES` where none is given."""
    died: str | None = None
    """One of `DEATHS` where none is given."""
    since: str | None = None
    group: str | None = None
    causes: tuple[str, ...] = ()
    """Column of the cause of death; or several, one a cause, that say whether it was that one."""


def read_lives(name: str, columns: LifeColumns) -> LifeFile:
    """Lives of a file; `-` is standard input.

    Raises
    ------
    SourceError
        Where the file cannot be read, lacks a column or holds no life.
    """
    with table_of(name) as (_, header, records):
        ages = AGES if columns.age is None else (columns.age,)
        deaths = DEATHS if columns.died is None else (columns.died,)
        place = {
            "age": _column(name, header, ages, "--age"),
            "died": _column(name, header, deaths, "--died"),
        }
        if columns.since is not None:
            place["since"] = _column(name, header, (columns.since,), "--since-age")
        if columns.group is not None:
            place["group"] = _column(name, header, (columns.group,), "--by")
        causes = [_column(name, header, (cause,), "--cause") for cause in columns.causes]
        file = _taken(records, place, causes)
    if not len(file.age):
        where = "" if file.rejected_at is None else f", the first of line {file.rejected_at}"
        raise SourceError(
            f"{name}: holds no life ({file.n_rejected:,} rows left out{where}): give an age above "
            "or at 0, and whether it died (1 or 0, true or false, yes or no)"
        )
    return file


def _column(name: str, header: list[str], wanted: Iterable[str], option: str) -> str:
    """The first column of those wanted, in any case."""
    there = {column.strip().casefold(): column for column in reversed(header)}
    found = next((there[each.casefold()] for each in wanted if each.casefold() in there), None)
    if found is None:
        raise SourceError(
            f"{name}: has no column {' or '.join(wanted)}: name it with {option}; there are "
            f"{', '.join(header[:20])}"
        )
    return found


def _taken(records: Iterable[Record], columns: dict[str, str], causes: list[str]) -> LifeFile:
    """Rows with an age of 0 or more and a known end."""
    rows, died, group = array("d"), array("b"), list[str | None]()
    cause = list[str]()
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
        cause.append(_cause(values, causes) if end in YES else "")
        told = values.get(columns.get("group", ""))
        group.append(str(told).strip() or None if told is not None else None)
    lives = np.frombuffer(rows).reshape(-1, 2) if len(rows) else np.empty((0, 2))
    return LifeFile(
        lives[:, 0],
        np.frombuffer(died, dtype=np.int8).astype(bool) if len(died) else np.empty(0, dtype=bool),
        lives[:, 1] if "since" in columns else None,
        tuple(group) if "group" in columns else None,
        tuple(cause) if causes else None,
        columns["age"],
        n_rejected,
        rejected_at,
    )


def _cause(values: Mapping[str, object], columns: list[str]) -> str:
    """The cause that a column tells, or the names of the columns that say yes."""
    if len(columns) == 1:
        told = values.get(columns[0])
        return str(told).strip() if told is not None and str(told).strip() else UNKNOWN_CAUSE
    said = [name for name in columns if str(values.get(name)).strip().casefold() in YES]
    return " and ".join(said) or UNKNOWN_CAUSE


def _number(value: object) -> float:
    """A number; NaN where it is none."""
    try:
        return float(str(value).strip())
    except ValueError:
        return math.nan
