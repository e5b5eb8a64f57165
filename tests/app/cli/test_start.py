"""Commands that need no frames start without pandas, which takes longer than all else they load."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT = [
    ["xid", "79"],
    ["mttf", "--rate-per-1000-node-days", "6.5", "--gpus", "1024"],
    ["mttf", "--store", "STORE"],
    ["--help"],
]
CODE = """
import json, sys
from app.cli import main
for command in json.loads(sys.argv[1]):
    try:
        status = main(command)
    except SystemExit as end:
        status = end.code
    loaded = sorted({"pandas", "streamlit", "ibis"} & set(sys.modules))
    print("loaded:", loaded, "status:", status or 0, *command, file=sys.stderr)
"""


def test_commands_that_need_no_frames_load_no_pandas(demo_store: Path) -> None:
    commands = [
        [str(demo_store) if word == "STORE" else word for word in command] for command in WITHOUT
    ]
    run = [sys.executable, "-c", CODE, json.dumps(commands)]
    said = subprocess.run(run, capture_output=True, check=True, text=True).stderr
    loaded = [line for line in said.splitlines() if line.startswith("loaded:")]
    assert loaded == [" ".join(["loaded: [] status: 0", *command]) for command in commands]
