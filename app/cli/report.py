"""faultline report: writes a failure report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import options, output
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

HELP = "write a failure report"
EXAMPLE = "faultline report --store ./demo-store --out ./report"
KINDS = ("fleet",)
FORMS = ("html",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Kind, period, form and place of the report."""
    options.add_store(parser)
    options.add_selection(parser)
    options.add_estimate(parser)
    parser.add_argument("--kind", choices=KINDS, default="fleet", help="default fleet")
    parser.add_argument("--as", dest="forms", default="html", metavar="FORM", help="html")
    parser.add_argument(
        "--out", type=Path, default=Path("report"), metavar="DIR", help="folder (default ./report)"
    )
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Writes it and prints the files and the hash of the content."""
    from app.reports import fleet, html
    from data.store import Store

    for form in arguments.forms.split(","):
        if form not in FORMS:
            raise DataError(f"--as must be one of {', '.join(FORMS)}, got {form!r}: choose one")
    store = Store.open(arguments.store)
    report = fleet.report(
        store,
        options.selection(arguments, store),
        conf_level=arguments.conf_level,
        seed=arguments.seed,
    )
    try:
        path = html.write(report, arguments.out)
    except OSError as error:
        raise DataError(f"--out {arguments.out}: {error.strerror}: name another folder") from None
    output.print_record(
        {"files": [str(path)], "content_sha256": report.content_sha256},
        output.chosen(arguments.format),
    )
    return 0
