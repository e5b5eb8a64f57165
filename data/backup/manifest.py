"""The manifest of a backup: what lies in it, with a hash of every file and of itself."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from data.backup.copying import Progress
from data.current import SCHEMA_VERSION, Current, copy_hashed
from data.errors import StoreError
from data.inside import Inside, LeftOutError
from data.metrics_files import METRICS
from data.models import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "manifest.json"
FORMAT = 1
"""Version of the manifest and of how a backup lies in its folder."""
_SINGLE = re.compile(r"CURRENT|warehouse-\d+\.duckdb|state\.sqlite|site\.toml")
_ANOTHER = "take another backup"


@dataclass(frozen=True)
class Manifest:
    """What lies in a backup."""

    made_at: str
    """ISO time in UTC."""
    product_version: str
    current: Current
    """The snapshot."""
    files: dict[str, tuple[int, str]]
    """Path -> bytes and SHA-256."""

    @property
    def n_bytes(self) -> int:
        """Bytes of all files."""
        return sum(n_bytes for n_bytes, _ in self.files.values())

    def to_json(self) -> str:
        """The file's content; the last key is the SHA-256 of the same without it."""
        said: dict[str, Any] = {
            "format": FORMAT,
            "made_at": self.made_at,
            "product_version": self.product_version,
            "current": self.current.facts,
            "files": {
                name: {"bytes": n_bytes, "sha256": digest}
                for name, (n_bytes, digest) in sorted(self.files.items())
            },
        }
        own = hashlib.sha256(_text(said).encode()).hexdigest()
        return _text(said | {"sha256": own})


def read(folder: Path) -> Manifest:
    """The manifest of a backup.

    Raises
    ------
    StoreError
        Where there is none, it is damaged, or a newer version made it.
    """
    path = folder / NAME
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"{path}: is missing: name the folder of a finished backup") from None
    try:
        said = json.loads(content)
        current = Current(**said["current"])
        newer = said["format"] > FORMAT or current.schema_version > SCHEMA_VERSION
        files = {name: (each["bytes"], each["sha256"]) for name, each in said["files"].items()}
        manifest = Manifest(said["made_at"], said["product_version"], current, files)
        sound = manifest.to_json().encode() == content or (newer and _holds(said))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        newer = sound = False
    if not sound:
        raise StoreError(f"{path}: is damaged: {_ANOTHER}")
    if newer:
        raise StoreError(f"{path}: was made by a newer Faultline: upgrade Faultline")
    for name in files:
        if not _is_ours(name):
            raise StoreError(f"{path}: names {name!r}, which is no file of a store: {_ANOTHER}")
    return manifest


def checked(folder: Path, told: Callable[[str], None] = lambda message: None) -> Manifest:
    """The manifest of a backup whose files are all as they were made; none of them is changed."""
    manifest = read(folder)
    progress = Progress(told, "checked", manifest.n_bytes)
    for name in manifest.files:
        copy_checked(folder, manifest, name, Path(os.devnull), progress)
    return manifest


def copy_checked(
    folder: Path, manifest: Manifest, name: str, target: Path, progress: Callable[[int], None]
) -> None:
    """Copies a file out of a backup; refuses one that is not as it was made."""
    path = folder / name
    try:
        held = Inside(folder).take(path)
    except LeftOutError:
        raise StoreError(
            f"{path}: is no file of the backup, or leads out of it: {_ANOTHER}"
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"{path}: is missing from the backup: {_ANOTHER}") from None
    with held:
        digest = copy_hashed(held.path, target, progress)
    if digest != manifest.files[name][1]:
        raise StoreError(f"{path}: is damaged (its SHA-256 is not the one of {NAME}): {_ANOTHER}")


def _is_ours(name: str) -> bool:
    """Whether a path is one that a store has, inside its folder."""
    parts = PurePosixPath(name).parts
    if len(parts) == 1:
        return _SINGLE.fullmatch(name) is not None
    return parts[0] in (METRICS, MODELS) and ".." not in parts and name == "/".join(parts)


def _holds(said: dict[str, Any]) -> bool:
    """Whether a manifest of any version has the hash of what it says."""
    own = said.pop("sha256")
    return bool(own == hashlib.sha256(_text(said).encode()).hexdigest())


def _text(said: dict[str, Any]) -> str:
    return json.dumps(said, indent=1) + "\n"
