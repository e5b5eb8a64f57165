"""Select lists drawn by chance: stars of every kind, one in another, over tables and joins."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DEEPEST = 600
"""Lists, structs or maps one in another."""
MOST_STARS = 300
COLUMNS = ("job_id", "cluster", "partition", "state", "n_gpus", "start_at", "end_at")
PATTERNS = (".*", "^n_", "_at$", "^(job_id|state)$", "i", "^cluster$")
SOURCES = (
    "jobs",
    "jobs AS t",
    "jobs AS t JOIN (SELECT job_id, cluster, 1 AS more FROM jobs) AS u USING (job_id, cluster)",
    "jobs AS t LEFT JOIN nodes AS u USING (cluster)",
    "jobs AS t, range(3) AS u",
    "(SELECT *, * FROM jobs) AS t",
    "(SELECT * FROM jobs WHERE false) AS t",
    "jobs AS t NATURAL JOIN (SELECT job_id, 2 AS two FROM jobs) AS u",
)


def drawn(seed: int) -> str:
    """One query; the same for the same seed."""
    chance = random.Random(seed)
    form = chance.random()
    if form < 0.06:
        return _nested_value(chance)
    if form < 0.10:
        return f"SELECT {chance.choice(('min', 'max', 'count'))}(COLUMNS(*)) FROM jobs"
    source = chance.choice(SOURCES)
    table = " AS t" in source
    items = [_item(chance, table=table) for _ in range(_log_uniform(chance, 12))]
    if chance.random() < 0.5:
        stars = ("*", "t.*") if table else ("*",)
        items += [chance.choice(stars)] * _log_uniform(chance, MOST_STARS)
        chance.shuffle(items)
    query = f"SELECT {', '.join(items)} FROM {source}"
    again = ("*", "COLUMNS(*)", "*, *") if len(items) < 10 else ("*", "COLUMNS(*)")
    for level in range(chance.choice((0, 0, 0, 1, 2, 5))):
        query = f"SELECT {chance.choice(again)} FROM ({query}) AS s{level}"
    return query + chance.choice(("", "", " LIMIT 2", " ORDER BY ALL"))


def _item(chance: random.Random, *, table: bool) -> str:
    """One entry of a select list."""
    first, second = chance.sample(COLUMNS, 2)
    kinds: list[Callable[[], str]] = [
        lambda: f"* EXCLUDE ({first}, {second})",
        lambda: f"* REPLACE (1 + length({first}::VARCHAR) AS {first})",
        lambda: f"* RENAME ({first} AS {second}_too)",
        lambda: f"COLUMNS('{chance.choice(PATTERNS)}')",
        lambda: f"COLUMNS(c -> c LIKE '%{first[:2]}%')",
        lambda: "COLUMNS('(.*)_at') AS 'at_\\1'",
        lambda: f"t.{first}" if table else first,
        lambda: f'{first} AS "{"wide " * _log_uniform(chance, 60)}"',
        lambda: f"{chance.randrange(9)} AS a",
        lambda: f"(SELECT {first} FROM jobs ORDER BY job_id LIMIT 1)",
        lambda: f"(SELECT count(*) FROM nodes) AS {first}",
        lambda: f"{{'a': {first}, 'b': [{second}, NULL]}}",
        lambda: f"[{first}::VARCHAR, NULL, {second}::VARCHAR] AS {second}",
        lambda: f"MAP {{{first}::VARCHAR: {second}}}",
        lambda: f"unnest({{'x': {first}, 'y': {{'z': {second}}}}}, recursive := true)",
        lambda: f"unnest([1, {chance.randrange(9)}]) AS u",
        lambda: "'nan'::DOUBLE, 170141183460469231731687303715884105727, DATE '2026-01-02'",
        lambda: _nested(chance, 12),
    ]  # fmt: skip
    return chance.choice(kinds)()


def _nested_value(chance: random.Random) -> str:
    """A value whose parts lie deep, beside stars or alone."""
    value = _nested(chance, DEEPEST)
    return f"SELECT {value} AS v{chance.choice(('', ', * FROM jobs', ' FROM range(3)'))}"


def _nested(chance: random.Random, deepest: int) -> str:
    """One value in lists, structs or maps, or in both of the first two by turns."""
    depth = _log_uniform(chance, deepest)
    opens, closes = chance.choice(
        (("[", "]"), ("{'a': ", "}"), ("[{'a': ", "}]"), ("MAP {'a': ", "}"))
    )
    if opens.startswith("[{"):
        depth = (depth + 1) // 2
    return opens * depth + str(chance.randrange(9)) + closes * depth


def _log_uniform(chance: random.Random, most: int) -> int:
    """A number from 1 on, small ones as often as large ones."""
    return round(math.exp(chance.uniform(0, math.log(most))))
