"""faultline ledger: where every GPU-hour of the fleet went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.frames import LEDGER_GROUPS
from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

HELP = "GPU-hours by bucket: productive, checkpoints, lost to failures, queue, down, idle"
EXAMPLE = "faultline ledger --store ./demo-store --by size_class"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Filters of the store, and what to divide by."""
    options.add_store(parser)
    options.add_selection(parser)
    parser.add_argument("--by", choices=LEDGER_GROUPS, help="GPU-hours of each bucket by this")
    options.add_conf_level(parser)
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Builds the ledger where it is not built, and prints it."""
    from app.actions import build_ledger
    from app.answers.efficiency import ledger, ledger_by_group
    from app.ask import of_store
    from data.store import Store

    form = terminal.chosen(arguments.format)
    build_ledger(arguments.store, terminal.progress)
    terminal.progress_done()
    store = Store.open(arguments.store)
    selection = options.selection(arguments, store)
    ask, also = of_store(store), terminal.synthetic(store)
    if arguments.by is None:
        answer = ledger.answer(ask, selection, conf_level=arguments.conf_level)
        terminal.write(answer, form, **also)
    else:
        terminal.write(ledger_by_group.answer(ask, selection, arguments.by), form)
    return 0
