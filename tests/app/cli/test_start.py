"""Commands load what they need, and end without losing what they said or have to clear away."""

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


END = """
import atexit, sys
from app.cli import program
atexit.register(print, "cleared away")
sys.argv = ["faultline", *sys.argv[1:]]
program()
"""


def test_a_command_ends_with_its_status_its_output_and_what_is_due_at_exit() -> None:
    run = [sys.executable, "-c", END, "xid", "79", "--format", "json"]
    ended = subprocess.run(run, capture_output=True, check=True, text=True)
    assert json.loads(ended.stdout.removesuffix("cleared away\n"))["xid"] == 79
    assert ended.stdout.endswith("}\ncleared away\n")
    refused = subprocess.run([*run[:3], "xid", "none"], capture_output=True, check=False, text=True)
    assert refused.returncode == 2
    assert refused.stdout == "cleared away\n"
