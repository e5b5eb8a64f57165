"""Analyses and figures load neither the store nor the dashboard; the command line stays light."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("analytics", "app/figures")
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
)
# Whoever imports what is forbidden ends the probe, whatever catches errors of imports: so nothing
# forbidden is ever there, and no module hides behind an import of another.
PROBE = """
import importlib, os, sys
class Refusal:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in ("streamlit", "duckdb") or name == "scipy.stats":
            print(name, "is imported by", importing)
            sys.stdout.flush()
            os._exit(0)
sys.meta_path.insert(0, Refusal)
for importing in sys.argv[1:]:
    importlib.import_module(importing)
    print(importing)
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
    # nor scipy.stats, which takes longer to import than most commands take
    lines = python("-c", PROBE, *MODULES).splitlines()
    assert lines == MODULES


def test_the_parser_of_the_command_line_loads_no_library_it_may_not_need() -> None:
    loaded = python("-c", "import app.cli, sys; app.cli.parser(); print(*sys.modules)").split()
    assert "argparse" in loaded
    libraries = {"streamlit", "duckdb", "pandas", "scipy", "plotly", "pyarrow"}
    assert libraries & set(loaded) == set()
