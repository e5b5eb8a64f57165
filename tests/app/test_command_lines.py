"""Commands on screen: for the store that is shown, quoted for the shell."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from app.show import command_lines

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "a store; rm -rf $HOME"
    monkeypatch.setattr(command_lines, "store_root", lambda: root)
    monkeypatch.setattr(command_lines, "snapshot", lambda: None)
    return root


@pytest.mark.parametrize(
    "line",
    [
        "faultline ingest sacct sacct.txt",
        "faultline collect --wait 600",
        "faultline ledger",
        "faultline validate-plan outputs/*/results-summary.jsonl",
        "faultline ingest tickets tickets.csv   # ticket_id,node",
    ],
)
def test_a_command_names_the_store_that_is_shown(root: Path, line: str) -> None:
    words = shlex.split(command_lines.of_store(line), comments=True)
    assert words[words.index("--store") + 1] == str(root)
    assert words[: words.index("--store")] == shlex.split(line, comments=True)


@pytest.mark.parametrize(
    "line", ["sacct -a -P", "faultline links delays.csv", "faultline sql --store x 'SELECT 1'", ""]
)
def test_what_needs_no_store_or_names_its_own_stays(root: Path, line: str) -> None:
    assert command_lines.of_store(line) == line


def test_ones_own_store_is_never_the_one_that_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for shown in (tmp_path / "store", tmp_path / "other"):
        monkeypatch.setattr(command_lines, "store_root", lambda shown=shown: shown)
        assert (tmp_path / command_lines.own_store()).resolve() != shown
