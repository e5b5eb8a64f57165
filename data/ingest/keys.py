"""Keys of records from sources that have none: a hash of the row and its occurrence number.

True duplicates within a file stay apart (occurrence 1, 2, ...), the same file twice gives the
same keys, and of overlapping files the one with most occurrences decides how many are kept.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


def occurrence_keys(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Key of each row: 24 hex digits of SHA-256 over `columns` and the occurrence number."""
    seen: dict[str, int] = {}
    keys = []
    text = frame[list(columns)].astype("string").fillna("\x00")
    for values in text.itertuples(index=False, name=None):
        row = "\x1f".join(values)
        seen[row] = seen.get(row, 0) + 1
        keys.append(hashlib.sha256(f"{row}\x1e{seen[row]}".encode()).hexdigest()[:24])
    return keys
