"""faultline restore: put a backup in the place of a store, once all of it was checked."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline restore ./store-backup --store ./restored-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The backup, and whether a store may be replaced."""
    options.add(parser, "store")
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the backup")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--force", action="store_true", help="replace the store that is there")
    chosen.add_argument(
        "--check", action="store_true", help="only check every byte of the backup, restore nothing"
    )
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Restores or checks it and prints what it holds."""
    from app.actions import login
    from data import backup
    from data.disk_full import told_full

    begin = time.monotonic()
    if arguments.check:
        made = backup.checked(arguments.folder, terminal.progress)
        current = made.current
    else:
        with told_full(arguments.store, kept="the store is as it was"):
            made, current = backup.restore(
                arguments.folder,
                arguments.store,
                author=login(),
                force=arguments.force,
                told=terminal.progress,
            )
    terminal.progress_done()
    result = {
        "manifest": str(arguments.folder / backup.MANIFEST),
        "made_at": made.made_at,
        **({} if arguments.check else {"store": str(arguments.store)}),
        "snapshot": current.snapshot,
        "files": len(made.files),
        "bytes": made.n_bytes,
        "seconds": round(time.monotonic() - begin, 3),
        "synthetic": current.synthetic,
    }
    terminal.print_record(result, arguments.format)
    return 0
