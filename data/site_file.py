"""site.toml as it stands, before anything of it is understood: `data.site` does that."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from data.errors import SiteError
from data.toml import Toml

if TYPE_CHECKING:
    from pathlib import Path

NAME = "site.toml"


def document(root: Path) -> Toml:
    """The file of a store, of which its mistakes are told."""
    return Toml(str(root / NAME), SiteError)


def content(root: Path) -> bytes:
    """What it holds; nothing where there is none.

    Raises
    ------
    SiteError
        Where it cannot be read.
    """
    return document(root).read(root / NAME, needed=False)


def stated(root: Path) -> dict[str, Any]:
    """What it says, section by section.

    Raises
    ------
    SiteError
        Where it cannot be read, or is no TOML.
    """
    return document(root).document(content(root))


def site_version(root: Path) -> str:
    """Changes with site.toml: a price or a time zone counts at once; empty where there is none.

    Raises
    ------
    SiteError
        Where it cannot be read.
    """
    held = content(root)
    return hashlib.sha256(held).hexdigest() if held else ""
