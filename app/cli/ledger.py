"""faultline ledger: GPU-hours by bucket: productive, checkpoints, lost to failures, queue, down,
idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.frames import LEDGER_GROUPS
from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline ledger --store ./demo-store --by size_class"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Filters of the store, and what to divide by."""
    options.add(parser, "store", "selection")
    parser.add_argument("--by", choices=LEDGER_GROUPS, help="GPU-hours of each bucket by this")
    options.add(parser, "conf_level", "format")


def run(arguments: argparse.Namespace) -> int:
    """Builds the ledger where it is not built, and prints it."""
    from app.answers.efficiency import ledger, ledger_parts

    store, ask = options.asking(arguments, ledger=True)
    selection = options.selection(arguments, store)
    also = terminal.synthetic(store)
    if arguments.by is None:
        answer = ledger.answer(ask, selection, conf_level=arguments.conf_level)
        terminal.write(answer, arguments.format, **also)
    else:
        terminal.write(ledger_parts.answer(ask, selection, arguments.by), arguments.format)
    return 0
