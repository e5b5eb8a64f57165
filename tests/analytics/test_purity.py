"""Analyses and figures load neither the store nor the dashboard; the command line stays light."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("analytics", "app/figures")
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
)
# Every module is imported in a process of its own (a fork of one that holds the libraries that
# both sides may use), so that none hides behind an import of another.
PROBE = """
import importlib, os, sys
import numpy, pandas, plotly.graph_objects, scipy.stats
forbidden = ("streamlit", "duckdb")
assert not [name for name in forbidden if name in sys.modules], "the libraries bring them in"
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        importlib.import_module(name)
        found = [bad for bad in forbidden if bad in sys.modules]
        print(name, *found, flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, name
"""


def python(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_analyses_and_figures_to_look_at() -> None:
    assert "analytics.reliability.failure_rate" in MODULES
    assert "app.figures.reliability.mttf_by_size" in MODULES


def test_no_analysis_and_no_figure_loads_the_store_or_the_dashboard() -> None:
    lines = python("-c", PROBE, *MODULES).splitlines()
    assert lines == MODULES


@pytest.mark.parametrize("name", ["streamlit", "duckdb", "pandas", "scipy", "plotly", "pyarrow"])
def test_the_parser_of_the_command_line_loads_no_library_it_may_not_need(name: str) -> None:
    loaded = python("-c", "import app.cli, sys; app.cli.parser(); print(*sys.modules)").split()
    assert "argparse" in loaded
    assert name not in loaded
