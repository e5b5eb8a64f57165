"""faultline lemons: which nodes to drain and why, and what that saves."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline lemons --store ./demo-store"
MOST_DAYS = 36_600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The store, the days that are judged, and what to print."""
    parser.add_argument(
        "--days",
        type=partial(options.lasting, most=MOST_DAYS),
        default=28.0,
        metavar="D",
        help="days before the end of the period that are judged (default 28)",
    )
    parser.add_argument(
        "--summary",
        action="store_true",
        help="as JSON: what draining saves, the days without the lemons, bad racks and switches",
    )
    options.add(parser, "store", "selection", "conf_level", "redact", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the nodes, lemons first."""
    from app.answers.nodes import lemons

    store, ask = options.asking(arguments, ledger=True)
    selection = options.selection(arguments, store)
    asked = {"days": arguments.days, "conf_level": arguments.conf_level}
    synthetic = terminal.synthetic(store)
    if arguments.summary:
        terminal.print_json(lemons.summary(ask, selection, **asked) | synthetic)
    else:
        terminal.write(lemons.answer(ask, selection, **asked), arguments.format)
    return 0
