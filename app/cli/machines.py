"""faultline machines: which machine of a job is faulty, by metrics sampled every second."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = (
    'awk \'BEGIN {print "at,node,power"; for (t = 0; t < 600; t++) for (n = 0; n < 16; n++) '
    'print t ",gpu-" n "," 500 + 20 * rand() - (n == 7 && t > 200) * 150}\' | '
    "faultline machines -"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files, and what makes a machine faulty."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="Parquet or CSV: rows of node, metric, at, value, or a column a metric or machine; "
        "or JSON of Prometheus' query_range; - is standard input",
    )
    parser.add_argument(
        "--minutes",
        type=options.whole,
        metavar="M",
        help="how long a machine must stay unlike all others (default 4)",
    )
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the verdict."""
    from analytics.nodes.machines.settings import Settings
    from app.answers.nodes import machines

    settings = Settings()
    if arguments.minutes is not None:
        settings = replace(settings, continuity_seconds=60.0 * max(1, arguments.minutes))
    terminal.write(machines.answer(machines.examined(arguments.files, settings)), arguments.format)
    return 0
