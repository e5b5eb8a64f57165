"""faultline backup: copy the store into a folder, while others use it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline backup ./store-backup --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the backup goes."""
    options.add(parser, "store")
    parser.add_argument(
        "folder",
        type=options.folder,
        metavar="DIR",
        help="folder of the backup: a new one, or empty",
    )
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Makes it and prints where its manifest lies."""
    from data import backup
    from data.audit import noted
    from data.disk_full import told_full

    begin = time.monotonic()
    with told_full(arguments.folder):
        made = backup.backup(arguments.store, arguments.folder, terminal.progress)
    terminal.progress_done()
    detail = {"path": str(arguments.folder.resolve()), "snapshot": made.current.snapshot}
    untold = noted(arguments.store, "backup", detail)
    result = {
        "manifest": str(arguments.folder / backup.MANIFEST),
        "snapshot": made.current.snapshot,
        "files": len(made.files),
        "bytes": made.n_bytes,
        "seconds": round(time.monotonic() - begin, 3),
        "synthetic": made.current.synthetic,
    }
    terminal.print_record(result, arguments.format)
    if untold is not None:
        terminal.notice(untold)
    return 0
