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
    max_sql_bytes: int = 100_000


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
    "dict": (lambda value: [[encode(k), encode(v)] for k, v in value.items()], dict),
    "tuple": (lambda value: [encode(item) for item in value], tuple),
}


READ_AT_ONCE = 2**17
"""Bytes read without a pause: about 2 ms."""
PAUSE_S = 0.002


def encode(value: Any) -> Any:
    """A value as JSON can hold it; a kind that is not listed above is a KeyError."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [encode(item) for item in value]
    kind = type(value).__name__
    return {kind: _KINDS[kind][0](value)}


def restore(tagged: dict[str, Any]) -> Any:
    """A value from its object of one key; header and end have other keys and stay."""
    kind = next(iter(tagged), "")
    return _KINDS[kind][1](tagged[kind]) if kind in _KINDS else tagged


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
