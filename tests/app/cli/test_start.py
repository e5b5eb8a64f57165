"""Commands that need no frames start without pandas, which takes longer than all else they load."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT = [
    ["xid", "79"],
    ["mttf", "--rate-per-1000-node-days", "6.5", "--gpus", "1024"],
    ["mttf", "--store", "STORE"],
    ["--help"],
]
CODE = """
import sys
from app.cli import main
try:
    status = main(sys.argv[1:])
except SystemExit as end:
    status = end.code
print("loaded:", sorted({"pandas", "streamlit"} & set(sys.modules)), "status:", status or 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", WITHOUT, ids=" ".join)
def test_a_command_that_needs_no_frames_loads_no_pandas(
    command: list[str], demo_store: Path
) -> None:
    given = [str(demo_store) if word == "STORE" else word for word in command]
    run = [sys.executable, "-c", CODE, *given]
    said = subprocess.run(run, capture_output=True, check=True, text=True).stdout
    assert said.splitlines()[-1] == "loaded: [] status: 0"
