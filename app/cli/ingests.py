"""faultline ingests: what was read into the store, what each brought, which can be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline ingests --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The store, and whether names are replaced."""
    options.add(parser, "store", "redact", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints them, the newest first."""
    from app.answers.fleet import ingests

    store, ask = options.asking(arguments)
    terminal.synthetic(store)
    terminal.write(ingests.answer(ask), arguments.format)
    return 0
