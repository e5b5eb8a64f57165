"""A button that copies a text."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from app.widgets import copy_link

SCRIPT = Path(__file__).with_name("copy_text.js")

WIDTH = 190

_button = st.components.v2.component(
    "faultline_copy_text", html=copy_link.HTML, css=copy_link.CSS, js=SCRIPT.read_text()
)


def show(label: str, text: str) -> None:
    """The button; says so once the text is copied."""
    _button(key="copy_text", data={"label": label, "text": text}, width=WIDTH)
