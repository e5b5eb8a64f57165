"""CURRENT as another version of Faultline would have written it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FIRST = ("snapshot", "file", "sha256", "schema_version", "published_at", "synthetic")
"""What it said before it held a hash of itself."""


def as_earlier(root: Path, schema_version: int) -> None:
    """Lets CURRENT say what a version of that schema did, of the snapshot as it lies there."""
    said = json.loads((root / "CURRENT").read_text("utf-8"))
    said |= {"schema_version": schema_version}
    said |= {"sha256": hashlib.sha256((root / said["file"]).read_bytes()).hexdigest()}
    (root / "CURRENT").write_text(json.dumps({key: said[key] for key in FIRST}), "utf-8")


def saying(root: Path, **values: object) -> None:
    """Changes what CURRENT says, and its hash with it."""
    said = json.loads((root / "CURRENT").read_text("utf-8")) | values
    said.pop("check")
    check = hashlib.sha256(json.dumps(said).encode()).hexdigest()
    (root / "CURRENT").write_text(json.dumps(said | {"check": check}), "utf-8")
