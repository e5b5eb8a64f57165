"""faultline availability: how available nodes were, and how long they take to return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options

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

    return options.answered(arguments, availability.answer, **options.chance(arguments))
