"""Queries to start from: each answers a question that a reliability engineer asks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Example:
    """A query and the question it answers."""

    title: str
    sql: str


@cache
def examples() -> tuple[Example, ...]:
    """The queries of examples.sql: each begins with `-- # Title` and ends with a semicolon."""
    text = files("data.queries").joinpath("examples.sql").read_text(encoding="utf-8")
    blocks = re.findall(r"^-- # (.+)\n((?:.*\n)+?.*);$", text, re.MULTILINE)
    return tuple(Example(title, sql.strip()) for title, sql in blocks)
