"""Reading a file that a person sent: where it stands, Cancel, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.ask import reader
from app.ask.cached import store_root
from app.words import escaping

if TYPE_CHECKING:
    from collections.abc import Callable

ASKED_EVERY_S = 0.2


def ingest(
    source: str, upload: actions.Upload, options: actions.Options, *, key: str
) -> list[actions.IngestResult]:
    """Reads it into the store in a process of its own; leaving or cancelling ends that process.

    Raises
    ------
    DataError
        Where nothing could be read: the store is as it was.
    """
    with st.status(f"Reading {escaping.escaped(upload.name)}", expanded=True):
        line, cancel = st.empty(), st.empty()
        cancel.button("Cancel", key=f"{key}_cancel", help="The store stays as it was")
        running = actions.RunningUpload(
            store_root(), source, upload, options, author=reader.author()
        )
        try:
            _follow(running, line.caption)
        finally:  # Streamlit ends the page by an exception where a person leaves or cancels
            running.cancel()
            cancel.empty()
    return running.result()


def _follow(running: actions.RunningUpload, tell: Callable[[str], object]) -> None:
    """Tells progress until the end; each telling lets Streamlit end the page."""
    while not running.wait(ASKED_EVERY_S):
        tell(escaping.escaped(running.progress))
