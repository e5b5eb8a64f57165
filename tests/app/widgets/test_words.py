"""Numbers, commands and published figures as they are written."""

from __future__ import annotations

import doctest
import re
import subprocess
from datetime import date

import pytest

from app import actions
from app.answers.content import Table
from app.answers.reliability import projection
from app.figures import template
from app.widgets import export_help
from app.words import numbers


@pytest.mark.parametrize("module", [numbers, template], ids=lambda m: m.__name__)
def test_examples_hold(module: object) -> None:
    results = doctest.testmod(module)
    assert results.attempted
    assert not results.failed


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_what_is_not_a_number_is_unknown(value: float | None) -> None:
    assert numbers.number(value) == numbers.count(value) == numbers.duration(value) == "unknown"


@pytest.mark.parametrize("source", sorted(actions.sources()))
def test_commands_are_bash_that_parses(source: str) -> None:
    for command in export_help.commands(source, start=date(2026, 1, 1), end=date(2026, 2, 1)):
        subprocess.run(["bash", "-n", "-c", command], check=True)
        assert not re.search(r"[{]start|[{]end", command)


def test_the_columns_of_sacct_are_one_word_for_the_shell() -> None:
    command, _ = export_help.commands("sacct", start=date(2026, 1, 1), end=date(2026, 2, 1))
    words = subprocess.run(
        ["bash", "-c", f"sacct() {{ printf '%s\\n' \"$@\"; }}\n{command.replace('> sacct.txt', '')}"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert words[:4] == ["-a", "-P", "--duplicates", "-S"]
    assert "FailedNode" in words[-1].removeprefix("--format=").split(",")


def test_published_figures_stand_beside_the_published_rate() -> None:
    (table,) = projection.published().blocks
    assert isinstance(table, Table)
    printed = {gpus: (projected, implied) for gpus, _, projected, implied, _ in table.printed}
    assert printed["1,024"] == ("28.8 h", "23.7")
    assert printed["8"][1] == "21.0"
    assert printed["131,072"][0] == "13.5 min"
