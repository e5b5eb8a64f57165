"""faultline repairs: which repairs hold, by what was done, and which nodes are for their vendor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline repairs --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The horizon and filters."""
    parser.add_argument(
        "--horizon-days",
        type=float,
        default=28.0,
        metavar="D",
        help="days in which a repair is expected to hold (default 28)",
    )
    options.add(parser, "store", "selection", "definition", "conf_level", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what became of repaired nodes."""
    from app.answers.nodes import repairs

    store, ask = options.asking(arguments)
    answer = repairs.answer(
        ask,
        options.selection(arguments, store),
        horizon_days=arguments.horizon_days,
        conf_level=arguments.conf_level,
    )
    terminal.write(answer, arguments.format, **terminal.synthetic(store))
    return 0
