"""The ledger, built where it is asked for."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from data.audit import noted
from data.publish import writer
from data.queries import efficiency
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READER_WAIT_S = 600.0
"""How long a command that only reads waits for who writes."""


def build_ledger(
    root: Path,
    progress: Callable[[str], None] = lambda message: None,
    *,
    wait_s: float = 0.0,
    author: str | None = None,
) -> bool:
    """Builds the ledger of the present records, where it is not built; whether it had to be.

    Another writer is waited for, `wait_s` seconds at most.
    """
    snapshot = _without_ledger(root)
    if snapshot is None:
        return False
    with writer(root, wait_s=wait_s) as building:
        if building.snapshot != snapshot + 1 and _without_ledger(root) is None:
            return False  # another built it while we waited
        building.publish_ledger(progress)
    missed = noted(root, "build ledger", {}, person=author)
    if missed is not None:
        logging.getLogger(__name__).warning("%s", missed)
    return True


def _without_ledger(root: Path) -> int | None:
    """The snapshot that a store holds; None where the ledger rests on what is in it now."""
    with contextlib.closing(Store.open(root)) as store:
        return None if efficiency.has_ledger(store) else store.snapshot
