"""Files that leave the dashboard: each is taken down in the audit once it is made."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from app import actions
from app.ask import reader
from app.ask.cached import store_root

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T", str, bytes)


def button(
    label: str,
    name: str,
    make: Callable[[], T],
    *,
    mime: str,
    key: str,
    action: str = "export",
    **look: Any,
) -> None:
    """A button that saves a file; once it is pressed the file is made, and taken down.

    Streamlit makes it beside the page: the person is asked for now.
    """
    root, person = store_root(), reader.author()

    def made() -> T:
        content = make()
        missed = actions.noted(root, action, {"file": name}, person=person)
        if missed is not None:
            logging.getLogger(__name__).warning("%s", missed)
        return content

    st.download_button(label, made, file_name=name, mime=mime, key=key, on_click="ignore", **look)
