"""Keys of JSON and headers of CSV are what scripts of others rest on: they stay as they are."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from app.cli import commands
from tests.app.cli.golden import KEPT, golden, kept, lines

if TYPE_CHECKING:
    from pathlib import Path

DO_SOMETHING = {
    "annotate", "backup", "collect", "demo", "forget", "reduce", "report", "restore", "rollback",
    "serve",
}  # fmt: skip
"""Commands that are called for what they do."""


def test_every_command_that_answers_is_kept() -> None:
    assert {path.stem for path in KEPT.glob("*.json")} == commands().keys() - DO_SOMETHING
    assert {line.split()[0] for line in kept()} == commands().keys() - DO_SOMETHING


@pytest.mark.slow
def test_keys_and_headers_of_every_command_are_as_they_were(
    demo_store: Path, tmp_path: Path
) -> None:
    shutil.copytree(demo_store, tmp_path / "store")  # the ledger is built in it
    commands = lines(tmp_path / "store", tmp_path)
    changed = {
        line for line, said in kept().items() if {"of": said["of"]} | golden(commands[line]) != said
    }
    assert not changed
