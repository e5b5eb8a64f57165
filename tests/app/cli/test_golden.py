"""Keys of JSON and headers of CSV are what scripts of others rest on: they stay as they are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.app.cli.golden import golden, lines

KEPT = json.loads((Path(__file__).parent / "golden.json").read_text("utf-8"))


@pytest.mark.slow
def test_keys_and_headers_of_every_command_are_as_they_were(
    demo_store: Path, tmp_path: Path
) -> None:
    shutil.copytree(demo_store, tmp_path / "store")  # the ledger is built in it
    commands = lines(tmp_path / "store", tmp_path)
    assert list(commands) == list(KEPT)
    changed = {line for line, said in commands.items() if golden(said) != KEPT[line]}
    assert not changed
