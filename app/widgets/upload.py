"""The one door for files: choosing one, reading it aside, Cancel, and what became of it."""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING, Any, BinaryIO

import streamlit as st

from app import actions
from app.actions import DataError
from app.ask import reader
from app.ask.cached import store_root
from app.words import escaping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlit.runtime.uploaded_file_manager import UploadedFile

ASKED_EVERY_S = 0.2
SHOWN_AFTER_S = 0.5
"""Seconds after which a reader is told that files are being looked into."""


def chosen(label: str, key: str) -> UploadedFile | None:
    """A file that a reader chose; what it holds is for `ingest` and `examined` alone to open."""
    return st.file_uploader(label, key=key)


def several(label: str, key: str) -> list[UploadedFile]:
    """Files that a reader chose, likewise."""
    return st.file_uploader(label, key=key, accept_multiple_files=True)


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
            while not running.wait(ASKED_EVERY_S):
                line.caption(escaping.escaped(running.progress))
        finally:  # Streamlit ends the page by an exception where a person leaves or cancels
            running.cancel()
            cancel.empty()
    return running.result()


def examined(
    question: str,
    files: Sequence[UploadedFile | None],
    *,
    sample: bytes | None = None,
    **said: Any,
) -> Any:
    """What files show, found out in a process of its own, once for as long as nothing changes.

    `sample` is what an earlier question took from a file, sent in its place.

    Raises
    ------
    DataError
        Where they cannot be read, or it was cancelled.
    """
    key = f"examined_{question}"
    asked = ([each and each.file_id for each in files], said)
    if st.session_state.get(f"{key}_cancel"):
        st.session_state[key] = asked, DataError("cancelled: choose the file again to look anew")
    known, found = st.session_state.get(key, (None, None))
    if known != asked:
        try:
            found = _found(question, _sent(files, sample), said)
        except DataError as error:
            found = error
        st.session_state[key] = asked, found
    if isinstance(found, DataError):
        raise found.with_traceback(None)
    return found


def _sent(
    files: Sequence[UploadedFile | None], sample: bytes | None
) -> list[tuple[str, BinaryIO] | None]:
    """Each file with its name; of a sample what was taken."""
    return [
        None if each is None else (each.name, each if sample is None else io.BytesIO(sample))
        for each in files
    ]


def _found(
    question: str, files: Sequence[tuple[str, BinaryIO] | None], said: dict[str, Any]
) -> Any:
    """What files show; leaving or cancelling ends the process."""
    running = actions.RunningExamination(
        store_root(), question, files, said, author=reader.author()
    )
    place = st.empty()
    try:
        if not running.wait(SHOWN_AFTER_S):
            with place.status("Looking into the file", expanded=True):
                line = st.empty()
                st.button("Cancel", key=f"examined_{question}_cancel")
                begun = time.monotonic()
                while not running.wait(ASKED_EVERY_S):
                    line.caption(f"{time.monotonic() - begun:.0f} s")
    finally:
        running.cancel()
        place.empty()
    if running.notice is not None:
        st.caption(escaping.escaped(running.notice))
    return running.result()
