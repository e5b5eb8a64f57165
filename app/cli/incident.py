"""faultline incident: one incident: what happened, why, what it hit, in order of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

DOCUMENTS = ("markdown", "html")
EXAMPLE = "faultline incident largest --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which incident, and in which form."""
    options.add(parser, "store")
    parser.add_argument(
        "incident_id", metavar="ID", help="latest, largest, or an id of `faultline incidents`"
    )
    parser.add_argument(
        "--as", dest="document", choices=DOCUMENTS, help="print the incident's report instead"
    )
    options.add(parser, "redact", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the incident, or its report as text."""
    from app.answers.failures import incident

    store, ask = options.asking(arguments)
    if arguments.document is not None:
        from app.reports import kinds
        from app.show import html, markdown

        about, redact = arguments.incident_id, arguments.redact
        report = kinds.report(store, "incident", about=about, redact=redact)
        writer = html if arguments.document == "html" else markdown
        print(writer.render(report), end="")
        return 0
    answer = incident.answer(ask, arguments.incident_id)
    terminal.synthetic(store)
    terminal.write(answer, arguments.format)
    return 0
