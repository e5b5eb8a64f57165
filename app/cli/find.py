"""faultline find: what is called so: a job, node, user, incident, cause, XID, run, trace, saved
query or term; of a line of a log what it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline find gpu0051 --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to look for."""
    parser.add_argument("text", metavar="TEXT", help="a name or a part of it, or lines of a log")
    options.add(parser, "store", "redact", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what is found, by kind."""
    from app.actions.queries import kept_queries
    from app.answers.explore import find

    store, ask = options.asking(arguments)
    saved = () if arguments.redact else kept_queries(store.root).saved()
    answer = find.answer(ask, arguments.text, saved)
    terminal.write(answer, arguments.format, **terminal.synthetic(store))
    return 0
