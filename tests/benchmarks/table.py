"""`make bench`: measures what Faultline costs, beside floors of the same run, and writes the table.

Ends with 1 where a bar is missed, and names the rows.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks import of_commands, of_pages, of_recovery, of_store, of_stragglers
from tests.benchmarks.made import Made
from tests.benchmarks.measured import ROOT, FailedError
from tests.benchmarks.row import Section, jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROWS = 4_000_000
TABLE = ROOT / "docs" / "benchmarks.md"
GROUPS: dict[str, Callable[[Made], list[Section]]] = {
    "ingest": of_store.ingest,
    "answers": of_store.answers,
    "further": of_commands.large,
    "ledger": of_store.ledger,
    "hourly": of_store.hourly,
    "attribution": of_store.attribution,
    "pages": of_pages.pages,
    "commands": of_commands.small,
    "stragglers": of_stragglers.stragglers,
    "recovery": of_recovery.recovery,
    "report": of_commands.report,
}
LIBRARIES = {"DuckDB": "duckdb", "Streamlit": "streamlit", "pandas": "pandas", "polars": "polars"}
ABOUT = """\
`make bench` writes this table anew and fails where a bar is missed. All of it is measured in one
run, by turns: other work on the machine hits a figure and its floor alike.

- **Processor seconds**, user and system, of a process and all that it starts, the median of some
  runs: a busy machine changes them less than the clock.
- **Floor**: the least that could do the work, or what one would use instead, as the row says.
- **Ratio**: how many times its floor a row takes, at the larger size. **At most**: the bar.
- **Growth**: the seconds of {large} jobs to those of {small}, {times:g} times as many.
- **Peak GB**: memory of the largest process.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, writes the table, says which bars were missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.table")
    parser.add_argument("--rows", type=int, default=ROWS, help="jobs of the larger store")
    parser.add_argument("--only", nargs="+", choices=GROUPS, help="these; prints, unless --out")
    parser.add_argument("--out", type=Path, help=f"default {TABLE.relative_to(ROOT)}")
    asked = parser.parse_args(arguments)
    sections, missed = [], []
    with tempfile.TemporaryDirectory(prefix="faultline-bench-") as folder:
        made = Made(Path(folder), asked.rows)
        for name in asked.only or GROUPS:
            print(f"measuring {name}", file=sys.stderr, flush=True)
            try:
                measured = GROUPS[name](made)
            except FailedError as error:
                measured = [Section(name.capitalize(), [], unmeasured="Not measured: it failed.")]
                missed.append(f"{name}: {error}")
            sections += measured
            for section in measured:
                print(f"{section.text(made.sizes)}\n", file=sys.stderr, flush=True)
    missed += [each for section in sections for row in section.rows for each in row.missed]
    out = asked.out or (None if asked.only else TABLE)
    written = _written(sections, made.sizes)
    if out is None:
        print(written, end="")
    else:
        out.write_text(written, encoding="utf-8")
    for each in missed:
        print(f"missed: {each}", file=sys.stderr)
    return 1 if missed else 0


def _written(sections: Sequence[Section], sizes: tuple[int, int]) -> str:
    """The document."""
    small, large = map(jobs, sizes)
    about = ABOUT.format(small=small, large=large, times=sizes[1] / sizes[0])
    parts = ["# Benchmarks", _measured_on(), about.strip()]
    return "\n\n".join([*parts, *(section.text(sizes) for section in sections)]) + "\n"


def _measured_on() -> str:
    """When, and on what."""
    libraries = ", ".join(f"{name} {version(package)}" for name, package in LIBRARIES.items())
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} processors ({_processor()}), "
        f"Python {platform.python_version()}, {libraries}."
    )


def _processor() -> str:
    """The model of the processor, as the system names it."""
    try:
        named = re.search(
            r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.M
        )
    except OSError:
        named = None
    return platform.machine() if named is None else named[1].replace(" @ ", ", ")


if __name__ == "__main__":
    sys.exit(main())
