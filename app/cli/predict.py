"""faultline predict: failures of the next 28 days, or the odds of a job."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline predict --gpus 1024 --days 14 --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job, and filters of the store."""
    parser.add_argument(
        "--gpus", type=options.whole, metavar="N", help="of a job; without it the whole fleet"
    )
    parser.add_argument("--days", type=float, metavar="D", help="that the job computes")
    options.add(parser, "store", "selection", "definition")
    options.add_estimate(parser, seeded="draws")
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what is to come."""
    from app.answers.reliability import forecast

    if (arguments.gpus is None) != (arguments.days is None):
        raise DataError("--gpus and --days go together: name both, or neither for the fleet")
    store, ask = options.asking(arguments)
    with contextlib.closing(store):
        selection = options.selection(arguments, store)
        chance = {"conf_level": arguments.conf_level, "seed": arguments.seed}
        if arguments.gpus is None:
            answer = forecast.answer(ask, selection, **chance)
        else:
            answer = forecast.of_job(ask, selection, arguments.gpus, arguments.days, **chance)
        terminal.write(answer, arguments.format, **terminal.synthetic(store))
    return 0
