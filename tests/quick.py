"""Format, lint and types of what changed, and the tests beside it: `make quick`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent
MOST_FILES = 12
"""Files of tests that run in about half a minute."""


def changed(base: str) -> list[Path]:
    """Python files that differ from a commit, new ones too."""
    asked = (
        ["git", "diff", "--name-only", "--diff-filter=d", base],
        ["git", "ls-files", "--others", "--exclude-standard"],
    )
    said = [subprocess.run(each, capture_output=True, text=True, check=True) for each in asked]
    names = {name for each in said for name in each.stdout.splitlines()}
    return sorted(Path(name) for name in names if name.endswith(".py"))


def beside(path: Path) -> list[Path]:
    """The tests of a file: itself, those of its name, else those of its folder."""
    if path.parts[0] == "tests":
        return [path] if path.name.startswith("test_") else []
    tests = list(Path("tests").rglob(f"test_{path.stem}*.py"))
    folder = Path("tests", *path.parts[:-1])
    return tests or sorted(folder.glob("test_*.py"))


def main(base: str = "HEAD") -> int:
    """Runs them one after the other; the first that fails ends it."""
    files = changed(base)
    tests = list(dict.fromkeys(test for path in files for test in beside(path)))
    names = [*map(str, files)]
    if not files:
        print(f"nothing changed since {base}")
        return 0
    if len(tests) > MOST_FILES:
        print(f"{len(tests) - MOST_FILES} files of tests are left to `make test`")
    typed = [name for name in names if not name.startswith(("tests", "docs"))]
    steps = [
        [BIN / "ruff", "format", "--check", "--quiet", *names],
        [BIN / "ruff", "check", "--quiet", *names],
        [BIN / "mypy", "--no-error-summary"] if typed else [],
        [BIN / "python", "-m", "pytest", "-q", "-m", "not slow and not benchmark and not service",
         *map(str, tests[:MOST_FILES])] if tests else [],
    ]  # fmt: skip
    return next((code for step in steps if step and (code := subprocess.call(step))), 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
