"""The documents say what the code does."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from analytics.reliability.failure_rate import projection_of_rate
from app import cli
from app.actions import sources

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
METHODS = (ROOT / "METHODS.md").read_text(encoding="utf-8")

PAPER_ROWS = re.findall(
    r"\| MTTF, ([\d,]+) GPUs \|.*?\| ([\d.]+) (h|d) \| `faultline mttf (.*?)` \|", METHODS
)
ETTR_ROWS = re.findall(r"\| ETTR (\w+), .*?\| (0\.\d+) \| `faultline (ettr .*?)` \|", METHODS)


@pytest.mark.parametrize(("gpus", "value", "unit", "arguments"), PAPER_ROWS)
def test_the_table_of_the_paper_holds(gpus: str, value: str, unit: str, arguments: str) -> None:
    size = int(gpus.replace(",", ""))
    assert f"--gpus {size}" in arguments
    (point,) = projection_of_rate(6.5, [size])
    hours = point.mttf_hours.value
    assert hours is not None
    decimals = len(value.split(".")[1])
    assert f"{hours / (24 if unit == 'd' else 1):.{decimals}f}" == value


def test_the_table_of_the_paper_is_found() -> None:
    assert len(PAPER_ROWS) == 4


@pytest.mark.parametrize(("form", "value", "command"), ETTR_ROWS)
def test_the_table_of_expected_ettr_holds(
    form: str, value: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*shlex.split(command), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)[form]
    assert f"{found:.3f}" == value


def test_the_table_of_expected_ettr_is_found() -> None:
    assert len(ETTR_ROWS) == 13


@pytest.mark.parametrize("command", cli.commands())
def test_every_command_is_in_the_readme(command: str) -> None:
    assert f"`faultline {command}" in README


@pytest.mark.parametrize("source", sources())
def test_every_source_is_in_the_readme(source: str) -> None:
    assert f"| `{source}` |" in README


def _story() -> list[tuple[str, list[str]]]:
    """The commands of the story, each with the lines that it shows; `...` stands for a cut."""
    (block,) = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    parts = [part.splitlines() for part in block.split("$ ")[1:]]
    return [(command, shown) for command, *shown in parts]


@pytest.mark.slow
def test_the_story_of_the_readme_holds_on_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAULTLINE_STORE", str(tmp_path / "demo-store"))
    assert cli.main(["demo", "--store", str(tmp_path / "demo-store")]) == 0
    for command, shown in _story():
        capsys.readouterr()
        assert cli.main(shlex.split(command)[1:]) == 0
        printed = capsys.readouterr().out
        for line in shown:
            pattern = ".*".join(re.escape(part.strip()) for part in line.split("..."))
            assert re.search(pattern, printed), (command, line)


def test_the_story_of_the_readme_has_its_commands() -> None:
    assert [command.split()[1] for command, _ in _story()] == [
        "incidents", "incident", "sql", "annotate", "report",
    ]  # fmt: skip


def test_no_figure_of_the_readme_is_left_open() -> None:
    assert "@" not in README.replace(" -d @- ", "")  # curl's standard input
