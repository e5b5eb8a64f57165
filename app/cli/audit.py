"""faultline audit: who did what to the store, and asked what of it; newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline audit --action demo --format json --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Period, person and action."""
    options.add(parser, "store")
    parser.add_argument(
        "--from", dest="from_at", type=options.moment, metavar="TIME", help="from, ISO (UTC)"
    )
    parser.add_argument(
        "--to", dest="to_at", type=options.moment, metavar="TIME", help="up to, exclusive"
    )
    parser.add_argument("--person", metavar="NAME", help="only what this person did")
    parser.add_argument("--action", metavar="NAME", help="only this, e.g. query or 'log in'")
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the lines of the audit; it is only read."""
    from data.audit import Audit
    from data.published import require_current

    require_current(arguments.store)
    from_at, to_at = arguments.from_at, arguments.to_at
    if from_at is not None and to_at is not None and from_at >= to_at:
        raise DataError(
            f"--from must be before --to, got {from_at:%Y-%m-%dT%H:%M} and {to_at:%Y-%m-%dT%H:%M}"
        )
    audit = Audit(arguments.store)
    options.known("person", arguments.person, audit.people())
    options.known("action", arguments.action, audit.actions())
    found = audit.entries(
        from_at=from_at, to_at=to_at, person=arguments.person, action=arguments.action
    )
    columns = ["made_at", "person", "action", "target", "detail"]
    rows = [[getattr(entry, name) for name in columns] for entry in found]
    terminal.print_rows(columns, rows, arguments.format)
    return 0
