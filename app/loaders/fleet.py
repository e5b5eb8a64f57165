"""What is in the store, and what can be chosen of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import questions
from app.loaders import cached

if TYPE_CHECKING:
    import pandas as pd

    from data.queries.selection import Selection


def choices() -> questions.Choices | None:
    """What the filters can be set to; None where nothing was published yet."""
    return cached.answer(questions.choices) if cached.snapshot() else None


def fleet(selection: Selection) -> questions.Fleet:
    """Nodes, and which of them are out of service."""
    return cached.answer(questions.fleet, selection)


def coverage(selection: Selection) -> questions.Coverage:
    """Which source covers which days, and which was never collected."""
    return cached.answer(questions.coverage, selection)


def ingests() -> pd.DataFrame:
    """What was read into the store."""
    return cached.answer(questions.ingests)


def rejected_rows(ingest_id: str | None, limit: int) -> pd.DataFrame:
    """Records that could not be read."""
    return cached.rows(questions.rejected_rows, ingest_id, limit=limit)
