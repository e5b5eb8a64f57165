"""Who did what to the store, and asked what of it?"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

from app.answers.content import Table
from app.words.cells import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from data.audit import Entry

SHOWN = 10_000
"""Lines that a page reads; the command reads all."""
COLUMNS = (
    Column("made_at", "Time", "second"),
    Column("person", "Person"),
    Column("action", "Action"),
    Column("target", "Target"),
    Column("detail", "Detail"),
)


def table(entries: Sequence[Entry]) -> Table:
    """Lines of the audit, in the order given."""
    rows = [
        (
            datetime.fromisoformat(entry.made_at),
            entry.person,
            entry.action,
            entry.target,
            json.dumps(entry.detail, ensure_ascii=False, default=str),
        )
        for entry in entries
    ]
    note = f"The newest {SHOWN:,} lines; `faultline audit` lists all." if len(rows) == SHOWN else ""
    return Table("audit", "Audit", COLUMNS, rows, "Nobody did anything of this kind.", note)
