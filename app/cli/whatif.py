"""faultline whatif: a period again without its worst nodes and with another checkpoint interval."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    from analytics.efficiency.what_if import Every

EXAMPLE = "faultline whatif --store ./demo-store --worst 3 --interval-min 30"
AS_WAS, BEST = "as-was", "best"
MOST_MIN = 1e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The store, what is changed, and what to print."""
    parser.add_argument(
        "--worst",
        type=options.whole,
        default=3,
        metavar="K",
        help="leave out the K worst nodes, as `faultline lemons` ranks them (default 3)",
    )
    parser.add_argument(
        "--node",
        action="append",
        default=[],
        metavar="NAME",
        help="leave out this node instead; again for each of several",
    )
    parser.add_argument(
        "--known",
        choices=("before", "within"),
        default="before",
        help="rank nodes by what was known before the period, or within it (default before)",
    )
    parser.add_argument(
        "--interval-min",
        type=_interval,
        default=BEST,
        metavar="D",
        help=f"minutes between checkpoints, {BEST} or {AS_WAS} (default {BEST})",
    )
    parser.add_argument(
        "--gpus",
        type=options.whole,
        metavar="N",
        help="size of the job whose best interval is told (default the largest usual one)",
    )
    options.add(parser, "store", "selection", "conf_level", "redact", "format")


def run(arguments: argparse.Namespace) -> int:
    """Plays the period again; the last whole month that is recorded where none is given."""
    from app.answers.efficiency import what_if

    store, ask = options.asking(arguments, ledger=True)
    every: Every = None if arguments.interval_min == AS_WAS else arguments.interval_min
    wish = what_if.Wish(
        arguments.worst, tuple(arguments.node), arguments.known, every, arguments.gpus
    )
    answer = what_if.answer(
        ask, options.selection(arguments, store), wish, conf_level=arguments.conf_level
    )
    terminal.write(answer, arguments.format, **terminal.synthetic(store))
    return 0


def _interval(text: str) -> float | str:
    """Minutes, or one of two words."""
    if text in (AS_WAS, BEST):
        return text
    found = options.above_zero(text, MOST_MIN)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"must be minutes above 0, {BEST} or {AS_WAS}, got {text!r}"
        )
    return found
