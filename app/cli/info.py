"""faultline info: what the store is and what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

HELP = "what the store holds: tables, coverage, snapshot"
EXAMPLE = "faultline info --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The store and the form of the terminal."""
    options.add_store(parser)
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints it."""
    from app.answers.fleet import contents
    from app.ask import of_store
    from data.store import Store

    answer = contents.answer(of_store(Store.open(arguments.store)))
    terminal.write(answer, terminal.chosen(arguments.format))
    return 0
