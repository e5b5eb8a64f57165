"""faultline machines: which machine of a job is faulty, by metrics sampled every second."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    from datetime import datetime

EXAMPLE = (
    'awk \'BEGIN {print "at,node,power"; for (t = 0; t < 600; t++) for (n = 0; n < 16; n++) '
    'print t ",gpu-" n "," 500 + 20 * rand() - (n == 7 && t > 200) * 150}\' | '
    "faultline machines -"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files, and what makes a machine faulty."""
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="Parquet or CSV: rows of node, metric, at, value, or a column a metric or machine; "
        "or JSON of Prometheus' query_range; - is standard input; without one, the last half hour "
        "of the store's metrics",
    )
    options.add(parser, "store")
    parser.add_argument("--cluster", metavar="NAME", help="of the store's metrics")
    parser.add_argument("--job", metavar="ID", help="only the store's nodes of this job")
    parser.add_argument(
        "--minutes",
        type=options.whole,
        metavar="M",
        help="how long a machine must stay unlike all others (default 4)",
    )
    parser.add_argument(
        "--settings", metavar="JSON", help="thresholds and order of metrics that --learn wrote"
    )
    parser.add_argument(
        "--learn",
        metavar="JSON",
        help="write settings instead: thresholds that no machine of the FILEs, which are healthy, "
        "reaches",
    )
    parser.add_argument(
        "--faulty",
        type=_labelled,
        action="append",
        default=[],
        metavar="FILE@TIME",
        help="with --learn: samples with a machine that was faulty since then, for the order of "
        "metrics; again for each of several",
    )
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the verdict, or writes settings."""
    from analytics.nodes.machines.detection import Settings
    from app.answers.nodes import machines
    from data.machine_settings import read_settings, write_settings

    settings = read_settings(arguments.settings) if arguments.settings else Settings()
    if arguments.minutes is not None:
        settings = replace(settings, continuity_seconds=60.0 * max(1, arguments.minutes))
    if arguments.faulty and not arguments.learn:
        raise DataError("--faulty tells what to learn from: give --learn JSON, too")
    if arguments.learn:
        learnt = machines.learnt(arguments.files, arguments.faulty, settings)
        write_settings(arguments.learn, learnt)
        terminal.notice(f"{arguments.learn}: written, use it by --settings {arguments.learn}")
        return 0
    if arguments.files:
        found = machines.examined(arguments.files, settings)
    else:
        from data.store import Store

        store = Store.open(arguments.store)
        found = machines.examined_store(store, arguments.cluster, arguments.job, settings)
    terminal.write(machines.answer(found), arguments.format)
    return 0


def _labelled(text: str) -> tuple[str, datetime]:
    """A file, and since when a machine in it was faulty."""
    name, _, at = text.rpartition("@")
    if not name:
        raise argparse.ArgumentTypeError(f"must be FILE@TIME, got {text!r}")
    return name, options.moment(at)
