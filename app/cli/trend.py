"""faultline trend: whether failures become more frequent, since when, and what changed then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline trend --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What nodes are told apart by, and filters of the store."""
    parser.add_argument(
        "--by",
        metavar="FACT",
        help="failures that a node has had on average, by driver, firmware, batch, gpu_model, rack "
        "or another key of node_facts",
    )
    options.add(parser, "store", "selection", "definition")
    options.add_estimate(parser)
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the verdict, the changes and the roll-outs."""
    from app.answers.reliability import node_groups, trend

    if arguments.by is not None:
        return options.answered(
            arguments, node_groups.answer, fact=arguments.by, conf_level=arguments.conf_level
        )
    return options.answered(arguments, trend.answer, **options.chance(arguments))
