"""What does a person state of a file that it does not say itself? Only what its source knows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from app import actions

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

_TEXTS = {
    "cluster": ("Cluster", "as the records say"),
    "timezone": ("Zone of local times", "the cluster's, else UTC"),
    "columns": ("Columns, if no header", "JobID,State,..."),
    "delimiter": ("Delimiter", "the format's own"),
    "node": ("Host, if none is named", "as the lines say"),
    "job_id": ("Job, if none is named", "as the records say"),
    "run_id": ("Run, if none is named", "as the records say"),
    "at": ("When it was observed (UTC)", "as the records say, e.g. 2026-01-31 12:00"),
}
"""Option -> its label, and what holds where nothing is stated."""
_EVERYWHERE = ("cluster", "timezone")


class Stated(NamedTuple):
    """What was stated of a file."""

    options: actions.Options
    mapping: UploadedFile | None
    """A mapping of its own."""


def show(source: str) -> Stated:
    """A field for each option that the source knows.

    Raises
    ------
    DataError
        Where a zone or a time is none, or columns are named twice.
    """
    known = actions.known_options(source)
    shown = [name for name in _TEXTS if name in known or name in _EVERYWHERE]
    places = (place for _ in shown for place in st.columns(2))
    texts = {name: _text(place, name) for name, place in zip(shown, places, strict=False)}
    own_zone = st.checkbox(
        "That zone holds for this file alone, whatever the cluster's is",
        key="upload_own_zone",
        disabled=texts["timezone"] is None,
    )
    preset = _preset(source)
    mapping = None
    if "mapping" in known:
        mapping = st.file_uploader("A mapping of your own (TOML)", key="upload_own_mapping")
    partial = st.checkbox(
        "Partial: of a cut-off archive read what came before the cut", key="upload_partial"
    )
    if mapping is not None and preset:
        raise actions.DataError("a preset and a mapping both name the columns: give one of them")
    if preset.keys() & {name for name, text in texts.items() if text}:
        raise actions.DataError("a preset and a list both name the columns: give one of them")
    options = {**texts, "columns": _names(texts.get("columns")), "at": _moment(texts.get("at"))}
    options["timezone"] = actions.checked_zone(texts["timezone"])
    own_zone = own_zone and texts["timezone"] is not None
    return Stated(
        actions.Options(**{**options, **preset}, own_zone=own_zone, partial=partial), mapping
    )


def _text(place: Any, name: str) -> str | None:
    """What was written into a field; None where nothing was."""
    label, otherwise = _TEXTS[name]
    written = place.text_input(label, placeholder=otherwise, key=f"upload_{name}")
    return written.strip() or None if name != "delimiter" else written or None


def _preset(source: str) -> dict[str, Any]:
    """What a preset that was chosen states."""
    presets = actions.presets(source)
    if not presets:
        return {}
    chosen = st.selectbox(
        "Names of its columns",
        list(presets),
        index=None,
        placeholder="found out from the file",
        key="upload_preset",
    )
    return presets[chosen] if chosen else {}


def _names(columns: str | None) -> tuple[str, ...] | None:
    """Column names as they were typed."""
    return None if columns is None else tuple(name.strip() for name in columns.split(","))


def _moment(text: str | None) -> datetime | None:
    """A time as it was typed; one without a zone is UTC."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise actions.DataError(
            f"{text!r} is no time: write it as 2026-01-31 or 2026-01-31 12:00"
        ) from None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
