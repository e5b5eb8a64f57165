"""faultline availability: how available nodes were, and how long they take to return."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline availability --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Filters of the store."""
    options.add(parser, "store", "selection")
    options.add_estimate(parser)
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints shares of time, repairs, and the least available nodes."""
    from app.answers.reliability import availability

    store, ask = options.asking(arguments)
    with contextlib.closing(store):
        answer = availability.answer(
            ask,
            options.selection(arguments, store),
            conf_level=arguments.conf_level,
            seed=arguments.seed,
        )
        terminal.write(answer, arguments.format, **terminal.synthetic(store))
    return 0
