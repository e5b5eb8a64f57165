"""Keys of JSON and headers of CSV are what scripts of others rest on: they stay as they are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from app.cli import commands
from tests.app.cli.golden import golden, lines

DO_SOMETHING = {
    "annotate", "backup", "collect", "demo", "forget", "report", "restore", "rollback", "serve",
}  # fmt: skip
"""Commands that are called for what they do."""
KEPT = json.loads((Path(__file__).parent / "golden.json").read_text("utf-8"))


def test_every_command_that_answers_is_kept() -> None:
    assert {line.split()[0] for line in KEPT} == commands().keys() - DO_SOMETHING


@pytest.mark.slow
def test_keys_and_headers_of_every_command_are_as_they_were(
    demo_store: Path, tmp_path: Path
) -> None:
    shutil.copytree(demo_store, tmp_path / "store")  # the ledger is built in it
    commands = lines(tmp_path / "store", tmp_path)
    assert list(commands) == list(KEPT)
    changed = {line for line, said in commands.items() if golden(said) != KEPT[line]}
    assert not changed
