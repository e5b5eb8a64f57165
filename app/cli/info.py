"""faultline info: what the store holds: tables, coverage, snapshot."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.current import read_current

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline info --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The store and the form of the terminal."""
    options.add(parser, "store", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints it."""
    from app.answers.fleet import coverage

    while True:
        store, ask = options.asking(arguments)
        try:
            answer = coverage.of_store(ask, datetime.now(UTC))
            break
        except FileNotFoundError:  # removed, for two others were published meanwhile
            if read_current(store.root) == store.current:
                raise
    terminal.write(answer, arguments.format)
    return 0
