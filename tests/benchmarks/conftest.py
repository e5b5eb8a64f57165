"""Four million accounting records, written once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.cli import main
from tests.benchmarks.accounting import write_sacct

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 4_000_000


@pytest.fixture(scope="session")
def sacct_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of sacct -P with 4 million attempts; 8 % of several nodes, 59,000 distinct lists."""
    return write_sacct(tmp_path_factory.mktemp("sacct") / "sacct.txt", ROWS)


@pytest.fixture(scope="session")
def large_store(sacct_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of four million attempts on nine million nodes of attempts."""
    root = tmp_path_factory.mktemp("large") / "store"
    assert main(["ingest", "sacct", str(sacct_file), "--store", str(root)]) == 0
    return root
