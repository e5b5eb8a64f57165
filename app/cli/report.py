"""faultline report: writes a failure report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import options, output
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

    from app.reports.fleet import FleetReport
    from app.reports.incident import IncidentReport
    from data.store import Store

HELP = "write a failure report"
EXAMPLE = "faultline report --store ./demo-store --out ./report"
FORMS = {"fleet": ("html",), "incident": ("html", "md")}
"""What each kind of report can be written as."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Kind, period, form and place of the report."""
    options.add_store(parser)
    options.add_selection(parser)
    options.add_estimate(parser)
    parser.add_argument("--kind", choices=tuple(FORMS), default="fleet", help="default fleet")
    parser.add_argument(
        "--incident", metavar="ID", help="of --kind incident; `faultline incidents` shows the ids"
    )
    parser.add_argument(
        "--as",
        dest="forms",
        default="html",
        metavar="FORM[,FORM]",
        help="html; of an incident also md (default html)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("report"), metavar="DIR", help="folder (default ./report)"
    )
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Writes it and prints the files and the hash of the content."""
    from data.store import Store

    forms = _forms(arguments)
    store = Store.open(arguments.store)
    report = _report(store, arguments)
    try:
        paths = [_write(report, form, arguments.out) for form in forms]
    except OSError as error:
        raise DataError(f"--out {arguments.out}: {error.strerror}: name another folder") from None
    output.print_record(
        {"files": [str(path) for path in paths], "content_sha256": report.content_sha256},
        output.chosen(arguments.format),
    )
    return 0


def _forms(arguments: argparse.Namespace) -> list[str]:
    """The forms asked for; refuses one that the kind does not have."""
    if (arguments.kind == "incident") != (arguments.incident is not None):
        raise DataError(
            "--kind incident and --incident ID go together: `faultline incidents` shows the ids"
        )
    forms = list(dict.fromkeys(arguments.forms.split(",")))
    known = FORMS[arguments.kind]
    for form in forms:
        if form not in known:
            raise DataError(f"--as must be one of {', '.join(known)}, got {form!r}: choose one")
    return forms


def _report(store: Store, arguments: argparse.Namespace) -> FleetReport | IncidentReport:
    """What is said; filters choose what the fleet report counts, an incident is told whole."""
    from app.reports import fleet, incident

    selection = options.selection(arguments, store)
    if arguments.kind == "incident":
        return incident.report(store, arguments.incident)
    return fleet.report(store, selection, conf_level=arguments.conf_level, seed=arguments.seed)


def _write(report: FleetReport | IncidentReport, form: str, folder: Path) -> Path:
    """One file."""
    from app.reports import html, markdown
    from app.reports.fleet import FleetReport

    if form == "html" or isinstance(report, FleetReport):
        return html.write(report, folder)
    return markdown.write(report, folder)
