"""Trained classifiers below a store's `models/`: JSON, named by the hash of what they learnt."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from data.access import access_of, make_folder
from data.current import replace_file
from data.disk_full import disk_full
from data.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

MODELS = "models"
"""Folder of a store's classifiers."""
_POINTER = "CURRENT"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[0-9a-f]{64}\.json")


def save_model(root: Path, training_sha256: str, document: dict[str, Any]) -> Path:
    """Writes a model and makes it the site's; the file that now holds it.

    Other models stay: their name says what they were trained on. Killed anywhere, the model
    before stays the site's.

    Raises
    ------
    StoreError
        Where the folder cannot be written.
    """
    if not _SHA256.fullmatch(training_sha256):
        raise StoreError(
            f"a model's name must be a SHA-256, got {training_sha256!r}: hash its rows"
        )
    folder = root / MODELS
    path = folder / f"{training_sha256}.json"
    try:
        make_folder(folder, access_of(root))
        replace_file(path, json.dumps(document, ensure_ascii=False, separators=(",", ":")), root)
        replace_file(folder / _POINTER, path.name + "\n", root)
    except OSError as error:
        raise disk_full(error, folder) or StoreError(
            f"{path}: cannot be written ({error.strerror}): check access"
        ) from None
    return path


def current_model(root: Path) -> str:
    """Name of the site's model, as its pointer says; empty where there is none."""
    try:
        return (root / MODELS / _POINTER).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def load_model(root: Path, training_sha256: str | None = None) -> dict[str, Any] | None:
    """The document of the site's model, or of the one of that hash; None where there is none.

    Raises
    ------
    StoreError
        Where it cannot be read or is no JSON object.
    """
    folder = root / MODELS
    path = folder / _POINTER
    try:
        if training_sha256 is None:
            name = path.read_text(encoding="utf-8").strip()
            if not _NAME.fullmatch(name):
                raise StoreError(f"{path}: does not name a model: train one again")
        else:
            name = f"{training_sha256}.json"
            if not (folder / name).exists():
                return None
        path = folder / name
        document = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if path.name == _POINTER:
            return None
        raise StoreError(f"{path}: is missing: train the model again") from None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror}): check access") from None
    except ValueError as error:
        raise StoreError(f"{path}: is no model ({error}): train it again") from None
    if not isinstance(document, dict):
        raise StoreError(f"{path}: is no model: train it again")
    return document
