"""faultline incident: one incident with its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

    from data.store import Store

HELP = "one incident: what happened, why, what it hit, in order of time"
DOCUMENTS = ("markdown", "html")
EXAMPLE = "faultline incident largest --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which incident, and in which form."""
    options.add_store(parser)
    parser.add_argument(
        "incident_id", metavar="ID", help="latest, largest, or an id of `faultline incidents`"
    )
    parser.add_argument(
        "--as", dest="document", choices=DOCUMENTS, help="print the incident's report instead"
    )
    options.add_redact(parser)
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the incident."""
    from app.answers.failures import incident
    from app.ask import of_store
    from app.reports import redaction
    from data.store import Store

    store = Store.open(arguments.store)
    if arguments.document is not None:
        _print_document(store, arguments)
        return 0
    names = redaction.names(store, redact=arguments.redact)
    answer = incident.answer(redaction.redacting(of_store(store), names), arguments.incident_id)
    terminal.synthetic(store)
    terminal.write(answer, terminal.chosen(arguments.format))
    return 0


def _print_document(store: Store, arguments: argparse.Namespace) -> None:
    """The report as text."""
    from app.reports import incident
    from app.show import html, markdown

    report = incident.report(store, arguments.incident_id, redact=arguments.redact)
    writer = html if arguments.document == "html" else markdown
    print(writer.render(report), end="")
