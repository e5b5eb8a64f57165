"""faultline predict: failures of the next 28 days, or the odds of a job."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

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
        type=partial(options.days, most=MOST_DAYS),
        metavar="D",
        help="that the job computes",
    )
    options.add(parser, "store", "selection", "definition")
    options.add_estimate(parser, seeded="draws")
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what is to come."""
    from app.answers.reliability import forecast

    if (arguments.gpus is None) != (arguments.days is None):
        raise DataError("--gpus and --days go together: name both, or neither for the fleet")
    asked = options.chance(arguments)
    if arguments.gpus is None:
        return options.answered(arguments, forecast.answer, **asked)
    job = {"gpus": arguments.gpus, "days": arguments.days}
    return options.answered(arguments, forecast.of_job, **job, **asked)
