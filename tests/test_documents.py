"""The documents say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app import cli, questions
from app.actions import sources

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
METHODS = (ROOT / "METHODS.md").read_text(encoding="utf-8")

PAPER_ROWS = re.findall(
    r"\| MTTF, ([\d,]+) GPUs \|.*?\| ([\d.]+) (h|d) \| `faultline mttf (.*?)` \|", METHODS
)


@pytest.mark.parametrize(("gpus", "value", "unit", "arguments"), PAPER_ROWS)
def test_the_table_of_the_paper_holds(gpus: str, value: str, unit: str, arguments: str) -> None:
    size = int(gpus.replace(",", ""))
    assert f"--gpus {size}" in arguments
    (point,) = questions.projection(6.5, [size])
    hours = point.mttf_hours.value
    assert hours is not None
    decimals = len(value.split(".")[1])
    assert f"{hours / (24 if unit == 'd' else 1):.{decimals}f}" == value


def test_the_table_of_the_paper_is_found() -> None:
    assert len(PAPER_ROWS) == 4


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_is_in_the_readme(command: str) -> None:
    assert f"`faultline {command}" in README


@pytest.mark.parametrize("source", sources())
def test_every_source_is_in_the_readme(source: str) -> None:
    assert f"| `{source}` |" in README


def test_no_figure_of_the_readme_is_left_open() -> None:
    assert "@" not in README
