"""Folders that `faultline reduce` wrote: what their readers share."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.reader import Source
from data.reduce.manifest import BEGINS, NAME, load

if TYPE_CHECKING:
    from data.reduce.manifest import Manifest

_KIND = re.compile(re.escape(BEGINS) + r'\d+,\s*"kind": "(\w+)"')


def is_reduction(head: str, kind: str) -> bool:
    """Whether a file begins as the manifest of a reduction of such records.

    Examples
    --------
    >>> is_reduction('{"faultline_reduction": 1, "kind": "jobs"', "jobs")
    True
    """
    found = _KIND.match(head)
    return found is not None and found[1] == kind


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
        Where one is not there, or lies elsewhere: a manifest may be anybody's.
    """
    for name in manifest.files(kind):
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise SourceError(f"{NAME} names {name}, which is not in its folder: reduce again")
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
    """What the rows were made of, on one line: read = kept + skipped + rejected."""
    inputs = manifest.inputs.values()
    n_rows = sum(one.rows for one in inputs)
    lost = {what: manifest.total(what) for what in ("skipped", "rejected")}
    n_kept = n_rows - sum(by_reason.total() for by_reason in lost.values())
    told = f"made of {n_rows:,} {called} of {len(inputs):,} files, of which {n_kept:,} were kept"
    for what, by_reason in lost.items():
        if by_reason:
            reasons = "; ".join(f"{reason} ({n:,})" for reason, n in by_reason.most_common())
            told += f", {by_reason.total():,} {what}: {reasons}"
    if manifest.refused:
        told += f"; {len(manifest.refused):,} files could not be read"
    return told
