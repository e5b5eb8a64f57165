"""faultline incidents: failures and events that belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

HELP = "incidents: failures, events and outages that belong together, with what they cost"
EXAMPLE = "faultline incidents --store ./demo-store --domain hardware --limit 5"
LISTED = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Filters of the store and of incidents."""
    options.add_store(parser)
    options.add_selection(parser)
    parser.add_argument("--domain", choices=("user", "system_software", "hardware", "unknown"))
    parser.add_argument("--cause", metavar="NAME", help="only this cause")
    parser.add_argument("--status", choices=("open", "acknowledged", "resolved"))
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--summary", action="store_true", help="number, rate and cost in place of the list"
    )
    instead.add_argument(
        "--signals",
        action="store_true",
        help="which checks and codes come together, in place of the list",
    )
    options.add_conf_level(parser)
    parser.add_argument(
        "--first",
        choices=("latest", "largest"),
        default="latest",
        help="order of the list: largest is by GPU-hours lost (default latest)",
    )
    parser.add_argument(
        "--limit", type=options.whole, default=LISTED, metavar="N", help="list at most N"
    )
    options.add_redact(parser)
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the list, the summary or the signals."""
    from app.answers.failures import incidents, signals
    from app.answers.failures.taxonomy import taxonomy
    from app.ask import of_store
    from app.reports import redaction
    from data.store import Store

    form = terminal.chosen(arguments.format)
    store = Store.open(arguments.store)
    selection = options.selection(arguments, store)
    if arguments.cause is not None:
        taxonomy(store).domain_of(arguments.cause)
    kind = incidents.Kind(arguments.domain, arguments.cause, arguments.status)
    terminal.synthetic(store)
    names = redaction.names(store, redact=arguments.redact)
    ask, conf_level = redaction.redacting(of_store(store), names), arguments.conf_level
    if arguments.summary:
        answer = incidents.answer(ask, selection, kind, conf_level=conf_level)
    elif arguments.signals:
        answer = signals.answer(ask, selection, kind, conf_level=conf_level)
    else:
        answer = incidents.listing(
            ask, selection, kind, first=arguments.first, limit=arguments.limit
        )
    terminal.write(answer, form)
    return 0
