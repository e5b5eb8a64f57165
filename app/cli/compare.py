"""faultline compare: the same records by the definitions of other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline compare --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Filters of the store."""
    options.add(parser, "store", "selection", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what others would say."""
    from app.answers.reliability import compare

    return options.answered(arguments, compare.answer)
