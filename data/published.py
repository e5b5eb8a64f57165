"""Which snapshot of a store is published, once it is known to be the store's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.current import SCHEMA_VERSION, Current, read_current, refuse_newer
from data.errors import StoreError
from data.landing import landed
from data.sampled import refuse_another
from data.state import State

if TYPE_CHECKING:
    from pathlib import Path


def require_current(root: Path) -> Current:
    """The published snapshot of a store that this version can read, and that is all its own.

    Raises
    ------
    StoreError
        Where there is no store, it was written by a newer version, or the snapshot or what people
        said is not the one that CURRENT names.
    """
    while True:
        current = published(root)
        try:
            refuse_another(root, current)
            State(root).refuse_another(current.store_id)
        except StoreError:
            landed(root)  # which replaces all three
            if read_current(root) == current:
                raise
        else:
            return current


def published(root: Path) -> Current:
    """What CURRENT says, of a schema that this version reads; an older one is brought up first."""
    landed(root)
    current = read_current(root)
    if current is None:
        raise StoreError(
            f"{root}: holds no store: `faultline ingest` or `faultline demo` makes one "
            "(--store says where)"
        )
    refuse_newer(root, current)
    if current.schema_version < SCHEMA_VERSION:
        from data.older import brought_up  # only here: a reader seldom needs what writes

        current = brought_up(root, current)
    return current
