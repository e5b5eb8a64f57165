"""Who did what to the store, and asked what of it?"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from app.answers.described import Rows, field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answers.content import Table
    from data.audit import Entry

SHOWN = 10_000
"""Lines that a page reads; the command reads all."""
DESCRIBED = (
    field("made_at", "Time (UTC)", "second", lambda entry: datetime.fromisoformat(entry.made_at)),
    field("person", "Person"),
    field("action", "Action"),
    field("target", "Target"),
    field("detail", "Detail", of=lambda entry: _told(entry.detail)),
)


def table(entries: Sequence[Entry]) -> Table:
    """Lines of the audit, in the order given."""
    note = f"The newest {SHOWN:,} lines; `faultline audit` lists all."
    return Rows(DESCRIBED, entries).table(
        "audit",
        "Audit",
        empty="Nobody did anything of this kind.",
        note=note if len(entries) == SHOWN else "",
    )


def _told(detail: dict[str, Any]) -> str:
    """What else is known, as text: `seed: 0; jobs: 2000`."""
    texts = {
        name: value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, default=str)
        for name, value in detail.items()
    }
    return "; ".join(f"{name}: {text}" for name, text in texts.items())
