"""faultline predict: failures of the next 28 days, or the odds of a job."""

from __future__ import annotations

import contextlib
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
    parser.add_argument(
        "--lines",
        action="store_true",
        help="print only lines for the job's batch script",
    )
    parser.add_argument(
        "--lead-time",
        type=partial(options.days, most=MOST_DAYS),
        metavar="D",
        help="how many parts to keep so that they last so many days from order to delivery",
    )
    options.add(parser, "store", "selection", "definition")
    options.add_estimate(parser, seeded="draws")
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what is to come."""
    from app.answers.reliability import forecast

    if (arguments.gpus is None) != (arguments.days is None):
        raise DataError("--gpus and --days go together: name both, or neither for the fleet")
    if arguments.lines and arguments.gpus is None:
        raise DataError("--lines are of a job: name its --gpus and --days")
    if arguments.lead_time is not None and arguments.gpus is not None:
        raise DataError("--lead-time is of the fleet: leave out --gpus and --days, or ask twice")
    asked = options.chance(arguments)
    if arguments.lead_time is not None:
        seed = {"seed": asked["seed"]} if "seed" in asked else {}
        return options.answered(arguments, forecast.shelf, lead_days=arguments.lead_time, **seed)
    if arguments.gpus is None:
        return options.answered(arguments, forecast.answer, **asked)
    job = {"gpus": arguments.gpus, "days": arguments.days}
    if arguments.lines:
        store, ask = options.asking(arguments)
        with contextlib.closing(store):
            selection = options.selection(arguments, store)
            print(*forecast.of_job(ask, selection, **job, **asked).record["batch_script"], sep="\n")
        return 0
    return options.answered(arguments, forecast.of_job, **job, **asked)
