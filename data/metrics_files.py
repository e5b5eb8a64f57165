"""Parquet files below a store's `metrics/`: which folder holds what, and which of them stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

METRICS = "metrics"
"""Folder of a store's Parquet files."""
TRACES = "straggler_traces"
"""Folder of straggler traces, below it."""


NAMED = "SELECT path FROM straggler_traces"
"""Query of the files that a snapshot names, as paths below METRICS."""


def unnamed(root: Path, named: Collection[str]) -> set[str]:
    """Files of traces but those that the published snapshot names, as paths below METRICS."""
    folder = root / METRICS / TRACES
    if not folder.is_dir():
        return set()
    return {f"{TRACES}/{file.name}" for file in folder.iterdir()} - {*named}


def remove(root: Path, files: Collection[str]) -> None:
    """Removes files by their paths below METRICS."""
    for name in files:
        (root / METRICS / name).unlink()
