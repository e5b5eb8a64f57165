"""faultline machines: which machines of a job are faulty, by their metrics."""

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
        nargs="*",
        metavar="FILE",
        help="Parquet or CSV: rows of node, metric, at, value, or a column a metric or machine; "
        "or JSON of Prometheus' query_range; - is standard input; without one, the last half hour "
        "of the store's metrics",
    )
    options.add(parser, "store")
    parser.add_argument("--cluster", metavar="NAME", help="of the store's metrics")
    parser.add_argument(
        "--job",
        metavar="ID",
        help="only the store's nodes of this job, in the last half hour in which it ran",
    )
    parser.add_argument(
        "--minutes",
        type=options.whole,
        metavar="M",
        help="how long a machine must stay away from the others (default 4)",
    )
    parser.add_argument(
        "--role",
        action="append",
        default=[],
        metavar="ROLE=NAMES",
        help="machines of a role, as embedding=gpu-00*; they are compared with each other alone; "
        "again for each role",
    )
    parser.add_argument(
        "--settings", metavar="JSON", help="threshold and durations that --learn wrote"
    )
    parser.add_argument(
        "--learn",
        metavar="JSON",
        help="write settings instead: a threshold that no machine of the FILEs, which are healthy, "
        "reaches",
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
    if arguments.learn:
        write_settings(arguments.learn, machines.learnt(arguments.files, settings))
        terminal.notice(f"{arguments.learn}: written, use it by --settings {arguments.learn}")
        return 0
    roles = machines.stated_roles(arguments.role)
    if arguments.files:
        found = machines.examined(arguments.files, settings, roles)
    else:
        from data.store import Store

        store = Store.open(arguments.store)
        found = machines.examined_store(store, arguments.cluster, arguments.job, settings, roles)
    terminal.write(machines.answer(found), arguments.format)
    return 0
