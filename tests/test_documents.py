"""The documents say what the code does."""

from __future__ import annotations

import json
import re
import runpy
import shlex
from pathlib import Path

import pytest

from analytics.reliability.failure_rate import projection_of_rate
from app import cli

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
METHODS = (ROOT / "METHODS.md").read_text(encoding="utf-8")

PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
]

DOCUMENTS = [*PAGES, "ARCHITECTURE.md", "METHODS.md"]
PARTS = ["Question", "Equation", "Assumptions", "Misleads when", "Checked by"]
"""Of every number in METHODS.md, in this order."""
NO_NUMBERS = {
    "Which names are one node", "Secrets", "The demo cluster", "Colours", "What was tried",
}  # fmt: skip
"""Chapters of METHODS.md that define no number."""

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


def _sections(text: str, level: int) -> dict[str, str]:
    """The sections under headings of one level, by title."""
    _, *parts = re.split(rf"^{'#' * level} (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_every_number_of_methods_has_its_parts_in_order() -> None:
    chapters = _sections(METHODS, 2)
    numbers = {title: _sections(text, 3) for title, text in chapters.items()}
    assert {title for title, of_chapter in numbers.items() if not of_chapter} == NO_NUMBERS
    for of_chapter in numbers.values():
        for title, text in of_chapter.items():
            before, *parts = re.split(r"^\*\*([\w ]+):\*\* ?", text, flags=re.MULTILINE)
            assert not before.strip(), title
            assert parts[::2] == PARTS, title
            assert all(part.strip() for part in parts[1::2]), title
            checks = re.findall(r"\btests/[\w./-]*\w", parts[-1])
            assert checks, title
            for name in checks:
                assert (ROOT / name).exists(), (title, name)


def test_what_documents_take_from_the_program_is_what_it_says() -> None:
    make = runpy.run_path(str(ROOT / "docs" / "make.py"))
    sources = (ROOT / "docs" / "sources.md").read_text("utf-8")
    assert make["with_sources"](sources) == sources, "make docs"
    assert make["sources"]() in sources
    assert make["all_commands"]() == (ROOT / "docs" / "commands.md").read_text("utf-8"), "make docs"


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_link_of_a_document_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        path, _, anchor = target.partition("#")
        if target.startswith("http"):
            continue
        linked = (ROOT / page).parent / path if path else ROOT / page
        assert linked.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)$", linked.read_text("utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_command_of_a_document_is_one_and_takes_its_options(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    for line in re.findall(r"\bfaultline ([a-z][^`\n|#;&>]*)", text):
        name, *rest = line.split()
        if name not in cli.commands():
            continue  # prose
        known = cli.parser_of(name, "").format_help() if rest else ""
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line):
            assert f"{option}" in known or cli.parser_of(name, "").get_default("reads_rest"), line


def test_readme_and_architecture_are_short() -> None:
    assert len(README.splitlines()) <= 200
    lines = (ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/decisions.md"])
def test_every_file_that_a_document_names_is_there(page: str) -> None:
    names = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.\w+)`", (ROOT / page).read_text("utf-8")))
    places = (ROOT, ROOT / "app", ROOT / "data", ROOT / "tests", ROOT / "analytics")
    missing = {name for name in names if not any((place / name).exists() for place in places)}
    assert not missing


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


@pytest.mark.parametrize("page", PAGES)
def test_no_figure_is_left_open(page: str) -> None:
    text = (ROOT / page).read_text("utf-8").replace(" -d @- ", "")  # curl's standard input
    assert not re.search(r"@(?!\w)", text)
