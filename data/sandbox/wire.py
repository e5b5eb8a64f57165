"""What goes to and from the confined process: limits, and values in lines of JSON."""

import base64
import datetime
import decimal
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from data.errors import QueryError


@dataclass(frozen=True)
class QueryLimits:
    """Limits of one ad hoc query; nothing of it ever spills to a disk."""

    wall_seconds: float = 20.0
    cpu_seconds: int = 20
    memory_mb: int = 1024
    """DuckDB's own limit: sorts, joins and aggregates end with a clear error."""
    address_space_mb: int = 3072
    """The system's limit, for the allocations that DuckDB's own does not count."""
    max_rows: int = 10_000
    max_bytes: int = 32 * 2**20
    """Size of the encoded rows; further rows are left out."""
    max_values: int = 1_000_000
    """Values in all rows, nested ones too; further rows are left out."""
    max_named_bytes: int = 32 * 2**20
    """Size of the names where they stand beside the values of each row, as JSON writes them;
    further rows are left out."""
    max_columns: int = 1_000
    """Further columns are left out."""
    max_head_bytes: int = 2**20
    """Size of the encoded names and types of the columns; further columns are left out."""
    max_levels: int = 100
    """Lists, structs and maps that a value holds one in another; a deeper one is refused, before
    anything that walks down a value ends in a RecursionError."""
    max_sql_bytes: int = 100_000


_NESTED = ("list", "tuple", "dict")
_KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "bytes": (lambda value: base64.b64encode(value).decode(), base64.b64decode),
    "date": (datetime.date.isoformat, datetime.date.fromisoformat),
    "datetime": (datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "Decimal": (str, decimal.Decimal),
    "time": (datetime.time.isoformat, datetime.time.fromisoformat),
    "timedelta": (
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: datetime.timedelta(*parts),
    ),
    "UUID": (str, uuid.UUID),
}
_RESTORED: dict[str, Callable[[Any], Any]] = {
    "dict": dict,
    "tuple": tuple,
    **{kind: restored for kind, (_, restored) in _KINDS.items()},
}


READ_AT_ONCE = 2**17
"""Bytes read without a pause: about 2 ms."""
PAUSE_S = 0.002


def encode(value: Any, most: int = QueryLimits.max_levels, level: int = 0) -> Any:
    """A value as JSON can hold it; a kind that is not listed above is a KeyError.

    Raises
    ------
    QueryError
        Where more levels than that are nested one in another.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    kind = type(value).__name__
    if kind not in _NESTED:
        return {kind: _KINDS[kind][0](value)}
    if level == most:
        raise QueryError(
            f"a value is nested more than {most:,} levels deep: select a part of it, or unnest it"
        )
    inside = (most, level + 1)
    if kind == "dict":
        return {kind: [[encode(k, *inside), encode(v, *inside)] for k, v in value.items()]}
    items = [encode(item, *inside) for item in value]
    return items if kind == "list" else {kind: items}


def n_values(value: Any) -> int:
    """How many values one is, with those that are nested in it."""
    if isinstance(value, dict):
        return 1 + sum(n_values(k) + n_values(v) for k, v in value.items())
    return 1 + sum(map(n_values, value)) if isinstance(value, list | tuple) else 1


def restore(tagged: dict[str, Any]) -> Any:
    """A value from its object of one key; header and end have other keys and stay."""
    kind = next(iter(tagged), "")
    return _RESTORED[kind](tagged[kind]) if kind in _RESTORED else tagged


def line(value: Any) -> bytes:
    """One line of the answer; the value is encoded already."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read(output: bytes) -> list[Any]:
    """The lines of an answer, values restored.

    A large one is read with pauses: Python runs one thread at a time, and others serve pages.
    """
    lines, since = [], 0
    for text in output.splitlines():
        lines.append(json.loads(text, object_hook=restore))
        since += len(text)
        if since > READ_AT_ONCE:
            time.sleep(PAUSE_S)
            since = 0
    return lines
