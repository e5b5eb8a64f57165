"""faultline rollback: take back what an ingest brought, or go back to an earlier snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

    from app.actions import Plan

EXAMPLE = "faultline rollback 1.1 --dry-run --store ./own-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to take back."""
    options.add(parser, "store")
    parser.add_argument(
        "ingest_id", nargs="?", metavar="ID", help="an ingest, as `faultline ingests` lists it"
    )
    parser.add_argument(
        "--to", type=options.whole, metavar="N", help="go back to snapshot N in place of that"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only say what would be taken back and repeated"
    )
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Goes back and prints what is to be read again."""
    from app import actions

    ingest_id, snapshot = arguments.ingest_id, arguments.to
    if (ingest_id is None) == (snapshot is None):
        raise DataError(
            "name an ingest or --to and a snapshot: `faultline ingests` lists ingests, `faultline "
            "info` snapshots"
        )
    if arguments.dry_run:
        done, now = actions.plan(arguments.store, ingest_id=ingest_id, snapshot=snapshot), None
    else:
        done, current, missed = actions.roll_back(
            arguments.store, ingest_id=ingest_id, snapshot=snapshot, progress=terminal.progress
        )
        terminal.progress_done()
        now = current.snapshot
        if missed is not None:
            terminal.notice(missed)
    _tell(done, ingest_id, now)
    terminal.print_record(_record(done, ingest_id, now), arguments.format)
    return 0


def _tell(done: Plan, ingest_id: str | None, now: int | None) -> None:
    """What is to be read again, and how to take the rollback itself back."""
    for each in done.to_repeat(ingest_id):
        command = each["command"] or f"read {each['path']} again ({each['source']})"
        is_gone = "is" if now is not None else "would be"
        terminal.notice(f"{each['ingest_id']} {is_gone} taken back too, to repeat it: {command}")
    if now is not None:
        terminal.notice(f"`faultline rollback --to {done.published}` takes this back")


def _record(done: Plan, ingest_id: str | None, now: int | None) -> terminal.Row:
    """The JSON of the command."""
    return {
        "ingest_id": ingest_id,
        "from_snapshot": done.published,
        "to_snapshot": None if done.base is None else done.base.snapshot,
        "snapshot": now,
        "undone": [each["ingest_id"] for each in done.undone],
        "brought_back": [each["ingest_id"] for each in done.brought_back],
        "to_repeat": [dict(each) for each in done.to_repeat(ingest_id)],
    }
