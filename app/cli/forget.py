"""faultline forget: remove records older than [retention] of site.toml keeps them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline forget --store ./own-store"
WARNING = (
    "this cannot be taken back but from a backup: the {n} earlier snapshots, which hold these rows "
    "too, are removed with them"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whether to do it, and as of when."""
    options.add(parser, "store")
    parser.add_argument("--yes", action="store_true", help="do it; without it only say what goes")
    parser.add_argument(
        "--as-of", type=options.moment, metavar="TIME", help="count days back from it (default now)"
    )
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what is too old, by table; with --yes it is gone then."""
    from app import actions
    from data.snapshots import kept_snapshots

    as_of = arguments.as_of or datetime.now(UTC)
    n_earlier = len(kept_snapshots(arguments.store)) - 1
    snapshot = None
    if arguments.yes:
        gone, current, missed = actions.forget(arguments.store, as_of, progress=terminal.progress)
        terminal.progress_done()
        snapshot = None if current is None else current.snapshot
        if missed is not None:
            terminal.notice(missed)
    else:
        gone = actions.to_forget(arguments.store, as_of)
        if any(each.n_rows for each in gone):
            terminal.notice(f"nothing is removed without --yes; {WARNING.format(n=n_earlier)}")
    terminal.print_record(
        {
            "as_of": as_of,
            "done": snapshot is not None,
            "snapshot": snapshot,
            "earlier_snapshots": n_earlier,
            "tables": [vars(each) for each in gone],
        },
        arguments.format,
    )
    return 0
