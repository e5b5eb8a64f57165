"""faultline reconfigure: what a failure right now would cost, and which job gives up nodes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from app.cli import options

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline reconfigure --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The jobs, the failure, and what is stated of both."""
    parser.add_argument(
        "--jobs",
        metavar="FILE",
        help="CSV or Parquet of job, gpus and, if known, min_gpus, max_gpus, weight, flops, "
        "scaling; - is standard input (default those that ran when the records end)",
    )
    parser.add_argument("--faulted", metavar="JOB", help="the job that is hit (default the worst)")
    parser.add_argument("--cause", metavar="CAUSE", help="of the failure: what is done first")
    parser.add_argument(
        "--lost-gpus", type=options.whole, metavar="N", help="that are lost (default one node)"
    )
    parser.add_argument(
        "--idle-gpus", type=options.whole, default=0, metavar="N", help="that are idle (default 0)"
    )
    parser.add_argument(
        "--least-ratio",
        type=float,
        default=0.5,
        metavar="P",
        help="of its GPUs on which a job can run, where no min_gpus says it (default 0.5)",
    )
    parser.add_argument(
        "--repair-hours", type=float, metavar="H", help="until lost GPUs are back (as measured)"
    )
    parser.add_argument("--transition-min", type=float, metavar="X", help="that a change takes")
    parser.add_argument(
        "--rate-per-1000-node-days", type=float, metavar="R", help="failures, of jobs of a file"
    )
    parser.add_argument("--gpus-per-node", type=float, metavar="N", help="of jobs of a file (8)")
    options.add(parser, "store", "selection", "redact", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the plan."""
    from app.answers.recovery import reconfigure
    from app.show import terminal
    from data.errors import DataError

    if not 0 < arguments.least_ratio <= 1:
        raise DataError(f"--least-ratio must be in (0, 1], got {arguments.least_ratio}")
    asked = {
        "rate": arguments.rate_per_1000_node_days,
        "transition_min": arguments.transition_min,
        "repair_hours": arguments.repair_hours,
        "least_ratio": arguments.least_ratio,
    }
    failure = reconfigure.Failure(
        arguments.faulted, arguments.cause, arguments.lost_gpus, arguments.idle_gpus
    )
    if arguments.jobs is not None:
        known = reconfigure.of_file(arguments.jobs, gpus_per_node=arguments.gpus_per_node, **asked)
        terminal.write(reconfigure.answer(known, failure), arguments.format)
        return 0
    store, ask = options.asking(arguments, ledger=True)
    with contextlib.closing(store):
        also = terminal.synthetic(store)
        chosen = options.selection(arguments, store)
        answer = reconfigure.answer(reconfigure.of_store(ask, chosen, **asked), failure)
    terminal.write(answer, arguments.format, **also)
    return 0
