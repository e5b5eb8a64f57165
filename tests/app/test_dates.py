"""One form of dates and times for people: 2 Nov 2026 14:05."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from app.words import moments

APP = Path(moments.__file__).parents[1]
FORMATS = re.compile(r"%-?[bBdeHYy]\b|%-?d|%Y|%[bB]|YYYY|yyyy")
MACHINES = {
    "words/moments.py": "the family itself",
    "words/periods.py": "addresses",
    "cli/collect.py": "echoes an option as it is written",
    "cli/audit.py": "echoes an option as it is written",
    "cli/options.py": "echoes an option as it is written",
    "figures/failures/timeline.py": "times of one incident, whose day its axis says",
    "views/fleet/upload_form.py": "an example of a format to type",
    "show/drawings/timeline.py": "ticks of paper",
    "show/drawings/coverage.py": "ticks of paper",
    "show/drawings/rate_over_time.py": "ticks of paper",
}
"""Modules that name a format themselves, and why."""
TICKS = {"%b %Y", "%-d %b", "%H:%M", "%H:%M:%S"}
"""What ticks of paper leave out is said beside them."""


def texts(path: Path) -> list[str]:
    """Texts of a module, those of format specifications too, without its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documented
    ]


def test_no_module_has_a_form_of_its_own() -> None:
    named = {}
    for path in sorted(APP.rglob("*.py")):
        found = [text for text in texts(path) if len(text) < 60 and FORMATS.search(text)]
        if found:
            named[path.relative_to(APP).as_posix()] = found
    assert set(named) == set(MACHINES)
    drawn = [form for name, found in named.items() if "drawings" in name for form in found]
    assert set(drawn) <= TICKS


@pytest.mark.parametrize("form", [moments.DAY, moments.MINUTE, moments.SECOND])
def test_the_forms_say_the_same_to_programs_grids_and_sheets(form: str) -> None:
    (precision,) = [name for name, each in moments.FORMS.items() if each == form]
    as_grid = form
    for said, grid in (("%-d", "D"), ("%b", "MMM"), ("%Y", "YYYY"), ("%H", "HH"), ("%M", "mm"),
                       ("%S", "ss")):  # fmt: skip
        as_grid = as_grid.replace(said, grid)
    assert moments.GRID[precision] == as_grid
    assert moments.SHEET[precision].startswith(moments.GRID[precision].lower())
