"""faultline actions: what to do now, ranked by the GPU-hours at stake, and which causes rose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline actions --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Filters of the store, or a row to put off."""
    options.add(parser, "store", "selection")
    put_off = parser.add_mutually_exclusive_group()
    put_off.add_argument("--acknowledge", metavar="TARGET", help="somebody has taken this row on")
    put_off.add_argument("--snooze", metavar="TARGET", help="hear no more of this row for --days")
    parser.add_argument(
        "--days", type=options.whole, default=7, metavar="N", help="of the snooze (default 7)"
    )
    options.add(parser, "redact", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the list, or puts a row off (`faultline annotate --undo` takes that back)."""
    from datetime import UTC, datetime

    from app import actions
    from app.answers.fleet.actions import listed

    if target := arguments.acknowledge or arguments.snooze:
        days = arguments.days if arguments.snooze else None
        made = actions.put_off(arguments.store, target, days=days)
        terminal.print_record(terminal.plain(made), arguments.format)
        return 0
    store, ask = options.asking(arguments)
    selection = options.selection(arguments, store)
    also = terminal.synthetic(store)
    terminal.write(listed.answer(ask, selection, datetime.now(UTC)), arguments.format, **also)
    return 0
