"""What site.toml says now, beside what it said when it was last taken: by a publish or a check."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from data.errors import SiteError
from data.site_file import stated
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHOWN = ("cluster", "attribution", "taxonomy", "runs", "nodes", "limits", "retention")
"""Sections whose values are told; of others, which name people and servers, the settings alone."""
LONGEST = 40
"""Characters of a value that is told."""
MOST = 5
"""Settings that are told by name; of more, how many there are."""
_HIDDEN = "hidden:"
_ABSENT = "not set"


def settings(root: Path) -> dict[str, str]:
    """Every setting of site.toml by its name, dots between, with its value as text.

    Of a value that is not for all eyes, or long, a hash stands for it.
    """
    return {name: _text(name, value) for name, value in _flat("", stated(root))}


def changes(root: Path) -> tuple[str, ...]:
    """One line that names what is other than when site.toml was last taken; none where nothing is.

    Nor where nothing took it yet, or where it cannot be read: who needs it is told so.
    """
    before = State(root).settings()
    if before is None:
        return ()
    try:
        now = settings(root)
    except SiteError:
        return ()
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if not names:
        return ()
    told = [_change(name, before, now) for name in names[:MOST]]
    if len(names) > MOST:
        told.append(f"{len(names) - MOST} more")
    since = f"site.toml changed since the last publish: {', '.join(told)}"
    return (f"{since}; `faultline config check` takes it as it is",)


def take(root: Path, *, author: str) -> None:
    """Takes site.toml as it is, with a line of the audit, where it changed."""
    if changes(root):
        State(root).take_settings(settings(root), author=author)


def _change(name: str, before: dict[str, str], now: dict[str, str]) -> str:
    """A setting and, where they may be told, its values."""
    old, new = before.get(name, _ABSENT), now.get(name, _ABSENT)
    if old.startswith(_HIDDEN) or new.startswith(_HIDDEN):
        return name
    return f"{name} ({old} -> {new})"


def _text(name: str, value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    if name.partition(".")[0] in SHOWN and len(text) <= LONGEST:
        return text
    return _HIDDEN + hashlib.sha256(text.encode()).hexdigest()


def _flat(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The settings in a section, those of the sections in it too."""
    if not isinstance(value, dict):
        yield place, value
        return
    for key, each in value.items():
        name = "".join(char if char.isprintable() else " " for char in key)
        yield from _flat(f"{place}.{name}" if place else name, each)
