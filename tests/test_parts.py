"""Slow tests in parts: each is run by one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.parts import SECONDS, in_part, parts

ROOT = Path(__file__).resolve().parents[1]
FILES = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}


def test_each_file_is_in_one_part_and_parts_are_alike() -> None:
    shared = parts(FILES, 6)
    assert sorted(file for files in shared for file in files) == sorted(FILES)
    seconds = [sum(SECONDS.get(file, 0.0) for file in files) for files in shared]
    assert max(seconds) <= min(seconds) + max(SECONDS.values())
    assert in_part(FILES, "3/6") == {*shared[2]}


def test_every_file_that_was_measured_is_there_and_slow() -> None:
    assert SECONDS.keys() <= FILES
    for file in SECONDS:
        assert re.search(r"mark\.slow|pytestmark = .*slow", (ROOT / file).read_text("utf-8")), file


@pytest.mark.parametrize("part", ["0/6", "7/6", "half"])
def test_a_part_that_is_none_is_refused(part: str) -> None:
    with pytest.raises(ValueError, match=r"PART=|invalid literal"):
        in_part(FILES, part)
