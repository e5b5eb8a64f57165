"""faultline machines: which machines of a job are faulty, by their metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.cli import options, spread
from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from analytics.nodes.machines.detection import Settings
    from app.answers.nodes.machines import Examined, Roles

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
    parser.add_argument(
        "--each",
        action="store_true",
        help="each FILE is a job of its own: a verdict each, instead of one of all together",
    )
    spread.add_arguments(parser, "jobs")
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the verdict, or writes settings; 2 where a job of several could not be judged."""
    from analytics.nodes.machines.detection import Settings
    from app.answers.nodes import machines
    from data.machine_settings import read_settings, write_settings

    where = _where(arguments)
    settings = read_settings(arguments.settings) if arguments.settings else Settings()
    if arguments.minutes is not None:
        settings = replace(settings, continuity_seconds=60.0 * max(1, arguments.minutes))
    if arguments.learn:
        write_settings(arguments.learn, machines.learnt(arguments.files, settings))
        terminal.notice(f"{arguments.learn}: written, use it by --settings {arguments.learn}")
        return 0
    roles = machines.stated_roles(arguments.role)
    if arguments.each:
        return _each(arguments, where, settings, roles)
    if where.on_spark:
        found = _on_spark(arguments.files, where, settings, roles)
    elif arguments.files:
        found = machines.examined(arguments.files, settings, roles)
    else:
        from data.store import Store

        store = Store.open(arguments.store)
        found = machines.examined_store(store, arguments.cluster, arguments.job, settings, roles)
    terminal.write(machines.answer(found), arguments.format)
    return 0


def _where(arguments: argparse.Namespace) -> spread.Spread:
    """Where jobs are judged; refuses what is no list of jobs, and on Spark what it cannot reach."""
    files = arguments.files
    where = spread.Spread.of(arguments, files, "no FILE means the store's metrics")
    if arguments.each and not files:
        raise DataError("--each judges FILEs: name them")
    if arguments.each and "-" in files and len(files) > 1:
        raise DataError("standard input is one job: name the others in a run of its own")
    if arguments.learn:
        where.refuse_on_spark("--learn makes one threshold of all FILEs")
        if arguments.each:
            raise DataError("--learn makes one threshold of all FILEs: leave --each out")
    return where


def _each(
    arguments: argparse.Namespace, where: spread.Spread, settings: Settings, roles: Roles
) -> int:
    """Prints the verdict on each file."""
    from app.answers.nodes import machines_by_job

    pieces = [spread.Piece((name, settings, roles), (name,), name) for name in arguments.files]
    found = list(spread.outcomes(machines_by_job.judged, pieces, where, "jobs"))
    errors = [error for _, error in found if error is not None]
    jobs = [job for job, _ in found if job is not None]
    if not jobs:
        raise DataError("; ".join(errors))
    for error in errors:
        terminal.notice(f"faultline machines: {error}")
    terminal.write(machines_by_job.answer(jobs), arguments.format)
    return 2 if errors else 0


def _on_spark(
    files: Sequence[str], where: spread.Spread, settings: Settings, roles: Roles
) -> Examined:
    """One job of all files, as a task."""
    from app.answers.nodes import machines

    piece = spread.Piece((files, settings, roles), tuple(files))
    ((found, error),) = spread.outcomes(machines.examined, [piece], where, "job")
    if found is None:
        raise DataError(error)
    return found
