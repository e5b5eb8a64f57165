"""faultline rates: adjusted ratios of failure rates by driver, firmware, batch, model or rack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline rates --by driver --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The fact, what is adjusted for, and filters."""
    parser.add_argument(
        "--by",
        default="driver",
        metavar="FACT",
        help="driver, firmware, batch, gpu_model, rack or another key of node_facts "
        "(default driver)",
    )
    parser.add_argument(
        "--adjust",
        nargs="*",
        choices=("age", "size"),
        default=["age", "size"],
        help="adjust for age of the node, size of the job, both (default) or none",
    )
    options.add(parser, "store", "selection", "definition", "conf_level", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the ratios."""
    from app.answers.reliability import rate_ratios

    store, ask = options.asking(arguments)
    answer = rate_ratios.answer(
        ask,
        options.selection(arguments, store),
        arguments.by,
        adjust=tuple(dict.fromkeys(arguments.adjust)),
        conf_level=arguments.conf_level,
    )
    terminal.write(answer, arguments.format, **terminal.synthetic(store))
    return 0
