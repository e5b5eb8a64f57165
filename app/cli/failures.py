"""faultline failures: what fails, how often, whose fault it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

HELP = "counts and rates of failures by state, cause and domain; --list: one verdict an attempt"
EXAMPLE = "faultline failures --store ./demo-store --list --domain hardware"
LISTED = 1_000_000
"""Verdicts listed at most, where nothing else is said."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Filters of the store, and what to list."""
    options.add_store(parser)
    options.add_selection(parser)
    options.add_conf_level(parser)
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
    options.add_redact(parser)
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the summary, or the verdicts."""
    from app.answers.failures import summary, verdicts
    from app.answers.failures.taxonomy import taxonomy
    from app.ask import of_store
    from app.reports import redaction
    from data.store import Store

    form = terminal.chosen(arguments.format)
    store = Store.open(arguments.store)
    selection = options.selection(arguments, store)
    cause, domain = arguments.cause, arguments.domain
    if cause is not None:
        taxonomy(store).domain_of(cause)
    ask, also = of_store(store), terminal.synthetic(store)
    if arguments.list or cause is not None or domain is not None:
        redacted = redaction.redacting(ask, redaction.names(store, redact=arguments.redact))
        listed = verdicts.answer(
            redacted, selection, cause=cause, domain=domain, limit=arguments.limit
        )
        terminal.write(listed, form)
    else:
        answer = summary.answer(ask, selection, conf_level=arguments.conf_level)
        terminal.write(answer, form, **also)
    return 0
