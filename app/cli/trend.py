"""faultline trend: whether failures become more frequent, since when, and what changed then."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline trend --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Filters of the store."""
    options.add(parser, "store", "selection", "definition")
    options.add_estimate(parser)
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the verdict, the changes and the roll-outs."""
    from app.answers.reliability import trend

    store, ask = options.asking(arguments)
    with contextlib.closing(store):
        answer = trend.answer(
            ask,
            options.selection(arguments, store),
            conf_level=arguments.conf_level,
            seed=arguments.seed,
        )
        terminal.write(answer, arguments.format, **terminal.synthetic(store))
    return 0
