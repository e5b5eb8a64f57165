"""faultline predict: failures of the next 28 days, or the odds of a job."""

from __future__ import annotations

import contextlib
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from analytics.estimate import CONF_LEVEL
from app.cli import options
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

MOST_DAYS = 3_660
"""Ten years: no job runs for longer."""
EXAMPLE = "faultline predict --gpus 1024 --days 14 --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job, and filters of the store."""
    parser.add_argument(
        "--gpus", type=options.whole, metavar="N", help="of a job; without it the whole fleet"
    )
    parser.add_argument(
        "--days",
        type=partial(options.lasting, most=MOST_DAYS),
        metavar="D",
        help="that the job computes",
    )
    parser.add_argument(
        "--lines",
        action="store_true",
        help="print only lines for the job's batch script",
    )
    parser.add_argument(
        "--lead-time",
        type=partial(options.lasting, most=MOST_DAYS),
        metavar="D",
        help="how many parts to keep so that they last so many days from order to delivery",
    )
    options.add(parser, "store", "selection", "definition")
    options.add_estimate(parser, seeded="draws")
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what is to come."""
    from app.answers.reliability import forecast

    _refuse(arguments)
    asked = options.chance(arguments)
    if arguments.lead_time is not None:
        lead = {"lead_days": arguments.lead_time, "seed": arguments.seed}
        return options.answered(arguments, forecast.shelf, **lead)
    if arguments.gpus is None:
        return options.answered(arguments, forecast.answer, **asked)
    asked |= {"gpus": arguments.gpus, "days": arguments.days}
    if arguments.lines:
        return _print_lines(arguments, asked)
    return options.answered(arguments, forecast.of_job, **asked)


def _refuse(arguments: argparse.Namespace) -> None:
    """Refuses options that would change nothing."""
    if (arguments.gpus is None) != (arguments.days is None):
        raise DataError("--gpus and --days go together: name both, or neither for the fleet")
    if arguments.lines and arguments.gpus is None:
        raise DataError("--lines are of a job: name its --gpus and --days")
    if arguments.lines and arguments.format is not None:
        raise DataError("--lines are printed as they are: leave out --format")
    if arguments.lead_time is not None and arguments.gpus is not None:
        raise DataError("--lead-time is of the fleet: leave out --gpus and --days, or ask twice")
    if arguments.lead_time is not None and arguments.conf_level != CONF_LEVEL:
        raise DataError("--conf-level is of intervals; parts to keep last 19 of 20 lead times")


def _print_lines(arguments: argparse.Namespace, asked: dict[str, Any]) -> int:
    """Prints what a batch script may begin with, and on standard error what must be known of it."""
    from app.answers.reliability import forecast
    from app.show import terminal

    store, ask = options.asking(arguments)
    with contextlib.closing(store):
        answer = forecast.of_job(ask, options.selection(arguments, store), **asked)
        notes = (*answer.notes, *map(str, terminal.synthetic(store).values()))
    lines = answer.record["batch_script"]
    if not lines:
        raise DataError(answer.sentence)
    for note in notes:
        print(note, file=sys.stderr)
    print(*lines, sep="\n")
    return 0
