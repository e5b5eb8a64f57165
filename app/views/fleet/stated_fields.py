"""The fields of what a person states of a file, and what is typed into them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import actions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_TEXTS = {
    "cluster": ("Cluster", "as the records say"),
    "timezone": ("Zone of local times", "the cluster's, else UTC"),
    "columns": ("Columns, if no header", "JobID,State,..."),
    "delimiter": ("Delimiter", "the format's own"),
    "node": ("Host, if none is named", "as the lines say"),
    "job_id": ("Job, if none is named", "as the records say"),
    "run_id": ("Run, if none is named", "as the records say"),
    "at": ("When it was observed (UTC)", "as the records say, e.g. 2026-01-31 12:00"),
    "boot_at": ("When the host booted (UTC)", "for times since boot, e.g. 2026-01-31 12:00"),
    "year": ("Year of times without one", "found out from the file's time"),
    "pattern": ("Name of a job's log", "slurm-%j.out, in the words of sbatch"),
    "first_lines": ("First lines that are kept", "the program's own"),
    "last_lines": ("Last lines that are kept", "the program's own"),
}
"""Option -> its label, and what holds where nothing is stated."""
_EVERYWHERE = ("cluster", "timezone")


def asked(known: Collection[str]) -> dict[str, Any]:
    """What was typed into a field for each option that the source knows.

    Raises
    ------
    DataError
        Where a zone, a time or a number is none.
    """
    shown = [name for name in _TEXTS if name in known or name in _EVERYWHERE]
    places = (place for _ in shown for place in st.columns(2))
    texts = {name: _text(place, name) for name, place in zip(shown, places, strict=False)}
    return {
        name: None if text is None else _READ.get(name, str)(text) for name, text in texts.items()
    }


def _text(place: Any, name: str) -> str | None:
    """What was written into a field; None where nothing was."""
    label, otherwise = _TEXTS[name]
    written = place.text_input(label, placeholder=otherwise, key=f"upload_{name}")
    return written.strip() or None if name != "delimiter" else written or None


def _moment(text: str) -> datetime:
    """A time as it was typed; one without a zone is UTC."""
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise actions.DataError(
            f"{text!r} is no time: write it as 2026-01-31 or 2026-01-31 12:00"
        ) from None


def _whole(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise actions.DataError(f"{text!r} is no whole number from 0 to 999,999,999")
    return int(text)


_READ: dict[str, Callable[[str], Any]] = {
    "timezone": actions.checked_zone,
    "columns": lambda text: tuple(name.strip() for name in text.split(",")),
    **dict.fromkeys(("at", "boot_at"), _moment),
    **dict.fromkeys(("year", "first_lines", "last_lines"), _whole),
}
"""Option -> what reads it, where it is more than a text."""
