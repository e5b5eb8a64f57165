"""Sections and keys of site.toml: what is no section or unknown is refused, the nearest named."""

from __future__ import annotations

import difflib
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from data.errors import SiteError

if TYPE_CHECKING:
    from pathlib import Path


def table(path: Path, place: str, values: object) -> dict[str, Any]:
    """A TOML table."""
    if not isinstance(values, dict):
        section = "cluster.<name>" if place.startswith("cluster") else place
        raise SiteError(f"{path}: {place} must be a section, got {values!r}: write [{section}]")
    return values


def known_keys(
    path: Path, place: str, values: dict[str, Any], known: type | tuple[str, ...]
) -> None:
    """Refuses keys that nothing reads: those that are no field of a dataclass, or not listed."""
    names = known if isinstance(known, tuple) else tuple(item.name for item in fields(known))
    for key in values:
        if key not in names:
            raise SiteError(f"{path}: {place}.{key} is unknown: {nearest(key, names)}")


def nearest(stated: str, known: tuple[str, ...], example: str | None = None) -> str:
    """What was probably meant, else what there is."""
    close = difflib.get_close_matches(stated, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"e.g. {example!r}" if example else f"there are {', '.join(known)}"
