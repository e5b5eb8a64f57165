"""faultline trend: whether failures become more frequent, since when, and what changed then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options

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

    return options.answered(arguments, trend.answer, **options.chance(arguments))
