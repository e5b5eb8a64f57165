"""faultline info: what the store holds: tables, coverage, snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline info --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The store and the form of the terminal."""
    options.add(parser, "store", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints it."""
    from app.answers.fleet import coverage

    _, ask = options.asking(arguments)
    terminal.write(coverage.of_store(ask), arguments.format)
    return 0
