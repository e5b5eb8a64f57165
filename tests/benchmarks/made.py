"""Files and stores that the table measures on: made once, when they are first asked for."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.benchmarks.measured import faultline, python

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TENTH = 10
"""How many times as large the larger size is."""


class Made:
    """A folder with accounting of two sizes, their stores and the demo."""

    def __init__(self, folder: Path, n_rows: int) -> None:
        self.folder = folder
        self.sizes = (n_rows // TENTH, n_rows)

    def sacct(self, n_rows: int, *, first: int = 0) -> Path:
        """A file of sacct -P with so many attempts, from a number on."""
        path = self.folder / f"sacct-{first}-{n_rows}.txt"
        if not path.exists():
            python("tests.benchmarks.accounting", path, n_rows, first)
        return path

    def store(self, n_rows: int) -> Path:
        """A store of those attempts, without a ledger."""
        root = self.folder / f"store-{n_rows}"
        if not root.exists():
            faultline("ingest", "sacct", self.sacct(n_rows), "--store", root)
        return root

    def with_ledger(self, n_rows: int) -> Path:
        """The same with its ledger."""
        root = self.folder / f"ledger-{n_rows}"
        if not root.exists():
            shutil.copytree(self.store(n_rows), root)
            faultline("ledger", "--store", root)
        return root

    def demo(self) -> Path:
        """The store of the synthetic demo cluster."""
        root = self.folder / "demo"
        if not root.exists():
            faultline("demo", "--store", root)
        return root

    @contextmanager
    def copied(self, root: Path) -> Iterator[Path]:
        """A copy of a store for as long as something is done to it."""
        with self.anew("copy") as copy:
            shutil.copytree(root, copy)
            yield copy

    @contextmanager
    def anew(self, name: str) -> Iterator[Path]:
        """A place where nothing is yet, and nothing stays."""
        path = self.folder / name
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def snapshot(root: Path) -> Path:
    """The file of the snapshot that a store has published."""
    current = json.loads((root / "CURRENT").read_text("utf-8"))
    return root / str(current["file"])
