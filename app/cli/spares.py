"""faultline spares: how many spare nodes a job needs, and what the next one is worth."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.cli import options

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline spares --nodes 128 --store ./demo-store"
MOST_HOURS = 87_600
"""Ten years: no repair takes longer."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job, and what is known of its nodes."""
    parser.add_argument(
        "--nodes",
        type=options.whole,
        metavar="N",
        help="of the job (default those of the largest usual one)",
    )
    parser.add_argument(
        "--p-failure",
        type=float,
        metavar="P",
        help="share of its time that a node is out unplanned, in place of what the fleet had",
    )
    parser.add_argument(
        "--repair-hours",
        type=partial(options.lasting, most=MOST_HOURS, unit="hours"),
        metavar="H",
        help="until a failed node is back, beside the rate at which nodes of jobs fail",
    )
    parser.add_argument(
        "--quantile",
        type=float,
        default=0.99,
        metavar="P",
        help="share of the time for which spares are to be enough (default 0.99)",
    )
    options.add(parser, "store", "selection")
    options.add_estimate(parser)
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the spares."""
    from app.answers.recovery import spares

    return options.answered(
        arguments,
        spares.answer,
        nodes=arguments.nodes,
        out_ratio=arguments.p_failure,
        repair_hours=arguments.repair_hours,
        enough=arguments.quantile,
        **options.chance(arguments),
    )
