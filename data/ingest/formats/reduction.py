"""Folders that `faultline reduce` wrote: what their readers share."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.reader import Source
from data.reduce.manifest import BEGINS, NAME, load

if TYPE_CHECKING:
    from pathlib import Path

    from data.reduce.manifest import Manifest

_KIND = re.compile(r'\s*\d+,\s*"kind": "(\w+)"')
_FIRST = "metrics"
"""What a manifest is of that does not say it."""


def is_reduction(head: str, kind: str) -> bool:
    """Whether a file begins as the manifest of a reduction of such records."""
    if not head.startswith(BEGINS):
        return False
    found = _KIND.match(head, len(BEGINS))
    return (found[1] if found else _FIRST) == kind


def manifest_of(folder: Path, name: str, kind: str) -> Manifest:
    """The manifest of a folder.

    Raises
    ------
    SourceError
        Where it holds no reduction of such records.
    """
    manifest = load(folder)
    if manifest is None or manifest.kind != kind:
        raise SourceError(f"{name}: holds no reduction of {kind}: give the folder of --out")
    return manifest


def files_of(folder: Path, manifest: Manifest, kind: str) -> list[Path]:
    """The files of a kind.

    Raises
    ------
    SourceError
        Where one is not there.
    """
    files = [folder / name for name in manifest.files(kind)]
    missing = next((path for path in files if not path.is_file()), None)
    if missing is not None:
        raise SourceError(f"{missing}: is absent, and {NAME} names it: copy the whole folder")
    return files


def source_of(folder: Path, name: str) -> Source:
    """The manifest as the input that was read."""
    path = folder / NAME
    modified_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return Source(path, name, modified_at, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def told_of(manifest: Manifest, called: str) -> str:
    """What the rows were made of, on one line."""
    inputs = manifest.inputs.values()
    told = f"made of {sum(one.kept for one in inputs):,} {called} of {len(inputs):,} files"
    rejected = manifest.total("rejected")
    if rejected:
        reasons = "; ".join(f"{reason} ({n:,})" for reason, n in rejected.most_common())
        told += f", of which {rejected.total():,} more rows were rejected: {reasons}"
    if manifest.refused:
        told += f"; {len(manifest.refused):,} files could not be read"
    return told
