"""faultline incidents: incidents: failures, events and outages that belong together, with what they
cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline incidents --store ./demo-store --domain hardware --limit 5"
LISTED = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Filters of the store and of incidents."""
    options.add(parser, "store", "selection")
    parser.add_argument("--domain", choices=("user", "system_software", "hardware", "unknown"))
    parser.add_argument("--cause", metavar="NAME", help="only this cause")
    parser.add_argument("--status", choices=("open", "acknowledged", "resolved"))
    parser.add_argument("--owner", metavar="TEAM", help="only those that people say this team has")
    parser.add_argument("--assignee", metavar="PERSON", help="only those of this person")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--summary", action="store_true", help="number, rate and cost in place of the list"
    )
    instead.add_argument(
        "--signals",
        action="store_true",
        help="which checks and codes come together, in place of the list",
    )
    options.add(parser, "conf_level")
    parser.add_argument(
        "--first",
        choices=("latest", "largest"),
        default="latest",
        help="order of the list: largest lost most (default latest)",
    )
    parser.add_argument(
        "--limit", type=options.whole, default=LISTED, metavar="N", help="list at most N"
    )
    options.add(parser, "redact", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the list, the summary or the signals."""
    from app.answers.failures import incidents, signals
    from app.answers.failures.taxonomy import taxonomy

    store, ask = options.asking(arguments)
    selection = options.selection(arguments, store)
    if arguments.cause is not None:
        taxonomy(store).domain_of(arguments.cause)
    chosen = ("domain", "cause", "status", "owner", "assignee")
    kind = incidents.Kind(**{name: getattr(arguments, name) for name in chosen})
    terminal.synthetic(store)
    if arguments.summary:
        answer = incidents.answer(ask, selection, kind, conf_level=arguments.conf_level)
    elif arguments.signals:
        answer = signals.answer(ask, selection, kind, conf_level=arguments.conf_level)
    else:
        first, limit = arguments.first, arguments.limit
        answer = incidents.listing(ask, selection, kind, first=first, limit=limit)
    terminal.write(answer, arguments.format)
    return 0
