"""The tables of a snapshot, a family a module, each with all its facts; others read them here.

Times are TIMESTAMPTZ in UTC, unknown is NULL, intervals are half-open [start_at, end_at). No
PRIMARY KEY or UNIQUE: the merge in data.publish keeps keys unique, tests assert it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from data.tables.table import Column, Coverage, People, Records, Table

__all__ = [
    "Column",
    "Coverage",
    "People",
    "Records",
    "Table",
    "dated",
    "forgettable",
    "people",
    "records",
    "tables",
]


@cache
def tables() -> dict[str, Table]:
    """Every table that a module of this folder declares, by name."""
    declared = [
        value
        for module in iter_modules(__path__)
        for value in vars(import_module(f"{__name__}.{module.name}")).values()
        if isinstance(value, Table)
    ]
    return {table.name: table for table in sorted(declared, key=lambda table: table.name)}


def records() -> dict[str, Records]:
    """The tables into which records are merged, by name."""
    return {name: table for name, table in tables().items() if isinstance(table, Records)}


def dated() -> list[tuple[str, Coverage, tuple[str, str]]]:
    """The tables whose rows tell which period the records are of, with first and last time."""
    return [
        (name, table.coverage, table.coverage.period)
        for name, table in tables().items()
        if table.coverage is not None and table.coverage.period is not None
    ]


def forgettable() -> dict[str, str]:
    """The tables whose rows have a time, each with it: what a site may forget by age."""
    return {name: table.time for name, table in tables().items() if table.time is not None}


def people() -> dict[str, People]:
    """Columns that name people, and whom they name: of one name in every table the same."""
    return {
        name: column.people
        for table in tables().values()
        for name, column in table.columns.items()
        if column.people is not None
    }
