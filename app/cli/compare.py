"""faultline compare: the same records by the definitions of other tools."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline compare --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Filters of the store."""
    options.add(parser, "store", "selection", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what others would say."""
    from app.answers.reliability import compare

    store, ask = options.asking(arguments)
    with contextlib.closing(store):
        terminal.synthetic(store)
        answer = compare.answer(ask, options.selection(arguments, store))
        terminal.write(answer, arguments.format)
    return 0
