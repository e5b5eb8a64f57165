"""faultline links: which link, sender, receiver or switch is slow, by delays between pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = (
    "for a in 1 2 3 4 5 6; do for b in 1 2 3 4 5 6; do "
    "echo n$a,n$b,$((a == b ? 0 : a == 3 ? 40 : 20 + (a * b) % 2)); done; done | "
    "sed 1isource,destination,delay_us | faultline links -"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The delays, and what is known of the fabric."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="CSV or Parquet: source, destination, delay_us, and size_bytes where sizes differ; "
        "or a matrix of microseconds, senders by receivers; - is standard input",
    )
    parser.add_argument(
        "--groups", metavar="FILE", help="CSV or Parquet of host and switch, in its first columns"
    )
    parser.add_argument(
        "--least-ratio",
        type=float,
        metavar="R",
        help="delay over usual from which something is slow (default 1.2)",
    )
    options.add(parser, "conf_level", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what is slow."""
    from analytics.nodes.links.verdict import LEAST_RATIO
    from app.answers.nodes import links

    least = LEAST_RATIO if arguments.least_ratio is None else arguments.least_ratio
    examined = links.examined(
        arguments.file, arguments.groups, least_ratio=least, conf_level=arguments.conf_level
    )
    terminal.write(links.answer(examined), arguments.format)
    return 0
