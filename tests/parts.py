"""Slow tests in parts of about the same length: each file is in one of them.

`python -m tests.parts` lists them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

SECONDS: dict[str, float] = json.loads(
    Path(__file__).with_name("slow_seconds.json").read_text("utf-8")
)
"""File -> processor seconds of its slow tests: measured where they ran since, else estimated."""
OF_ANOTHER_FILE = 1.0
"""Seconds of a file without slow tests, or of which nothing is known."""


def parts(files: Iterable[str], n_parts: int) -> list[list[str]]:
    """The longest file first, each to the part that is shortest so far."""
    shared: list[list[str]] = [[] for _ in range(n_parts)]
    totals = [0.0] * n_parts
    for file in sorted(files, key=lambda file: (-SECONDS.get(file, OF_ANOTHER_FILE), file)):
        shortest = totals.index(min(totals))
        shared[shortest].append(file)
        totals[shortest] += SECONDS.get(file, OF_ANOTHER_FILE)
    return shared


def in_part(files: Iterable[str], part: str) -> set[str]:
    """Files of a part that is named like 3/6.

    Raises
    ------
    ValueError
        Where there is no such part.
    """
    number, n_parts = map(int, part.split("/"))
    if not 1 <= number <= n_parts:
        raise ValueError(f"PART={part}: name one like 3/6")
    return set(parts(files, n_parts)[number - 1])


if __name__ == "__main__":
    for number, files in enumerate(parts(SECONDS, 6), 1):
        print(f"part {number}/6, {sum(SECONDS[file] for file in files):,.0f} processor s")
        for file in files:
            print(f"  {SECONDS[file]:6.0f}  {file}")
