"""The glossary: every tooltip has one entry, every entry is found, on every surface."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING

import app
from app.answers.explore import glossary
from app.cli import main
from app.words.menu import MENU, TITLES, view

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

APP = Path(app.__file__).parent
MADE_OF_RESULTS = {
    ("efficiency/ledger.py", "meanings"),
    ("explore/glossary.py", "_own"),
    ("explore/glossary.py", "causes"),
    ("reliability/mttf.py", "_counted"),
}
"""Functions that make terms of what the ledger, the taxonomy or a report says."""


def test_a_key_names_one_entry_and_an_entry_says_what_it_is() -> None:
    entries = glossary.entries()
    keys = [each.key for each in entries]
    assert len(keys) == len(set(keys))
    assert len({each.term.definition for each in entries}) == len(entries)
    assert {"mttf", "node_mttf", "ettr", "lemons", "bucket_lost_work", "failure_paper"} <= {*keys}
    for each in entries:
        assert each.term.definition.endswith("."), each
        assert set(each.term.pages) <= set(TITLES), each


def test_no_term_takes_the_name_of_another() -> None:
    for path in sorted((APP / "words").rglob("*.py")):
        names = [
            target.id
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        ]
        assert len(names) == len(set(names)), path


def test_the_menu_holds_every_page_that_is_there() -> None:
    named = {view(section, page) for section, pages in MENU.items() for page in pages}
    assert {view for view in named if not (APP / view).is_file()} == set()
    drawn = {
        path.relative_to(APP).as_posix()
        for path in (APP / "views").glob("*/*.py")
        if "page_head." in path.read_text("utf-8")
    }
    assert drawn - named == set()


def test_an_answer_takes_its_words_from_the_glossary() -> None:
    others = [text for path in sorted((APP / "answers").rglob("*.py")) for text in _own_words(path)]
    assert others == [], "put the Term, or the help of the Column, into app/words"


def _own_words(path: Path) -> Iterator[str]:
    """Terms and helps of columns that an answer makes up by itself."""
    name, tree = str(path.relative_to(APP / "answers")), ast.parse(path.read_text())
    allowed = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and (name, function.name) in MADE_OF_RESULTS
        for node in ast.walk(function)
    }
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        called = getattr(call.func, "id", "")
        if called == "Term" and id(call) not in allowed:
            yield f"{name}: {ast.unparse(call)}"
        for given in call.keywords if called in ("Column", "replace") else ():
            if given.arg == "help" and not ast.unparse(given.value).endswith(".definition"):
                yield f"{name}: {ast.unparse(call)}"


def test_what_is_called_so_comes_before_what_mentions_it(tmp_path: Path) -> None:
    found = glossary.found(tmp_path, "mttf")
    keys = [each.key for each in found.entries]
    assert keys[0] == "mttf"
    assert keys.index("node_mttf") < keys.index(
        "failure_rate" if "failure_rate" in keys else "projection"
    )
    assert [each.key for each in glossary.found(tmp_path, "node_mttf").entries] == ["node_mttf"]
    assert glossary.found(tmp_path, "no such word").entries == ()
    everything = glossary.found(tmp_path)
    assert len(everything.entries) == everything.n
    assert [each.key for each in glossary.found(tmp_path, "cause_gpu_memory").entries] == [
        "cause_gpu_memory"
    ]


def test_the_command_says_it_without_a_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", str(tmp_path / "none")]
    assert main(["terms", "node_mttf", *store, "--format", "json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["terms"]
    assert (entry["label"], entry["unit"], entry["group"]) == ("MTTF of one node", "h", "MTTF")
    assert entry["pages"] == ["mttf", "reports"]
    assert entry["source"] is None
    assert main(["terms", "Daly-Young", "interval", *store, "--format", "table"]) == 0
    printed = capsys.readouterr().out
    assert "Daly-Young interval (Planner: daly_young)" in printed
    assert "  Equation: sqrt(2 x time of a checkpoint x MTTF)\n" in printed
    assert main(["terms", *store, "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == glossary.found(tmp_path).n + 1
