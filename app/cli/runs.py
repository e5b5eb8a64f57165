"""faultline runs: one user's runs and jobs: why each ended, whose fault, what was lost, what to do
next; without --user whose jobs there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ask import EVERYTHING
from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline runs --store ./demo-store --user foun01"

LISTED = 20
"""Jobs and runs that a terminal shows; JSON and CSV hold all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A user, and filters of the store."""
    options.add(parser, "store", "selection")
    parser.add_argument("--user", metavar="NAME", help="whose runs, in any letter case")
    options.add(parser, "conf_level", "redact", "format")


def run(arguments: argparse.Namespace) -> int:
    """Builds the ledger where it is not built, and prints one user's jobs, or the users."""
    from app.answers.efficiency import my_runs

    one = arguments.user is not None
    store, ask = options.asking(arguments, ledger=one)
    selection = options.selection(arguments, store)
    if one:
        answer = my_runs.answer(
            ask,
            arguments.user,
            selection,
            limit=EVERYTHING,
            shown=LISTED,
            conf_level=arguments.conf_level,
        )
    else:
        answer = my_runs.everyone(ask, selection, limit=EVERYTHING)
    terminal.write(answer, arguments.format, **terminal.synthetic(store))
    return 0
