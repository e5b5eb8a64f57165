"""faultline failures: counts and rates of failures by state, cause and domain; --list: one verdict
an attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline failures --store ./demo-store --list --domain hardware"
LISTED = 1_000_000
"""Verdicts listed at most, where nothing else is said."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Filters of the store, and what to list."""
    options.add(parser, "store", "selection", "conf_level")
    parser.add_argument("--list", action="store_true", help="one verdict an attempt, latest first")
    parser.add_argument("--cause", metavar="NAME", help="list only this cause")
    parser.add_argument(
        "--domain",
        choices=("user", "system_software", "hardware", "unknown"),
        help="list only this domain",
    )
    parser.add_argument(
        "--limit", type=options.whole, default=LISTED, metavar="N", help="list at most N"
    )
    options.add(parser, "redact", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the summary, or the verdicts."""
    from app.answers.failures import summary, verdicts
    from app.answers.failures.taxonomy import taxonomy

    store, ask = options.asking(arguments)
    selection = options.selection(arguments, store)
    cause, domain = arguments.cause, arguments.domain
    if cause is not None:
        taxonomy(store).domain_of(cause)
    also = terminal.synthetic(store)
    if arguments.list or cause is not None or domain is not None:
        limit = arguments.limit
        listed = verdicts.answer(ask, selection, cause=cause, domain=domain, limit=limit)
        terminal.write(listed, arguments.format)
    else:
        answer = summary.answer(ask, selection, conf_level=arguments.conf_level)
        terminal.write(answer, arguments.format, **also)
    return 0
