"""Who did what to the store, and asked what of it?"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from app.answers.content import Table
from app.words.cells import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from data.audit import Entry

SHOWN = 10_000
"""Lines that a page reads; the command reads all."""
COLUMNS = (
    Column("made_at", "Time (UTC)", "second"),
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
            _told(entry.detail),
        )
        for entry in entries
    ]
    note = f"The newest {SHOWN:,} lines; `faultline audit` lists all." if len(rows) == SHOWN else ""
    return Table("audit", "Audit", COLUMNS, rows, "Nobody did anything of this kind.", note)


def _told(detail: dict[str, Any]) -> str:
    """What else is known, as text: `seed: 0; jobs: 2000`."""
    texts = {
        name: value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, default=str)
        for name, value in detail.items()
    }
    return "; ".join(f"{name}: {text}" for name, text in texts.items())
