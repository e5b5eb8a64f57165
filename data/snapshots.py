"""The snapshots of a store that stay on disk beside the published one: what one can go back to.

When a snapshot is superseded, what CURRENT said of it stays beside it as `warehouse-<n>.json`, so
that its SHA-256 is known for as long as it lies there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from data.current import (
    Current,
    read_current,
    replace_file,
    said_of,
    small_text,
    snapshot_numbers,
)

if TYPE_CHECKING:
    from pathlib import Path


class Kept(NamedTuple):
    """A snapshot on disk."""

    current: Current
    """What CURRENT said of it."""
    n_bytes: int
    """Of its file; blocks that it shares with another one count in both."""


def kept_snapshots(root: Path) -> list[Kept]:
    """The published snapshot and the earlier ones of which it is known what they are, oldest first.

    Those of a version that noted no hash of superseded snapshots are left out.
    """
    published = read_current(root)
    found = []
    for number in snapshot_numbers(root):
        path = root / f"warehouse-{number}.duckdb"
        is_published = published is not None and published.snapshot == number
        current = published if is_published else _superseded(root, number)
        try:
            if current is not None:
                found.append(Kept(current, path.stat().st_size))
        except FileNotFoundError:  # removed by a publish meanwhile
            continue
    return found


def damaged_notes(root: Path) -> tuple[str, ...]:
    """What is told of earlier snapshots of which the note is there and is none, a line each."""
    published = read_current(root)
    found = []
    for number in snapshot_numbers(root):
        if published is not None and published.snapshot == number:
            continue
        try:
            _noted(root, number)
        except FileNotFoundError:
            continue  # of an earlier version, or removed by a publish meanwhile
        except (OSError, ValueError) as error:
            found.append(
                f"{_note(root, number)}: is damaged ({error}): snapshot {number} is no way back "
                "until it is restored from a backup"
            )
    return tuple(found)


def note_superseded(root: Path, current: Current) -> None:
    """Keeps what CURRENT says of a snapshot for when it says it no more."""
    replace_file(_note(root, current.snapshot), current.to_json())


def prune(root: Path, current: Current, *, keep: int) -> None:
    """Removes snapshots but the published one and so many before it, and notes without one."""
    numbers = snapshot_numbers(root)
    earlier = [number for number in numbers if number < current.snapshot]
    stay = {current.snapshot, *(earlier[-keep:] if keep else ())}
    for number in numbers:
        if number not in stay:
            (root / f"warehouse-{number}.duckdb").unlink(missing_ok=True)
    for path in root.glob("warehouse-*.json"):
        if not path.with_suffix(".duckdb").exists():
            path.unlink(missing_ok=True)


def _superseded(root: Path, number: int) -> Current | None:
    """What CURRENT said of a snapshot; None where nothing sound says it."""
    try:
        return _noted(root, number)
    except (OSError, ValueError):
        return None


def _noted(root: Path, number: int) -> Current:
    """What the note of a snapshot says; OSError, ValueError where it is none."""
    current = said_of(small_text(_note(root, number)))
    if current.snapshot != number:
        raise ValueError("it is of another snapshot")
    return current


def _note(root: Path, number: int) -> Path:
    return root / f"warehouse-{number}.json"
