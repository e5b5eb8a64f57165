"""What stands around every page: style sheet, the product's mark, who is logged in."""

from __future__ import annotations

import html
from pathlib import Path

import streamlit as st

from app.ask import reader

STYLE_SHEET = Path(__file__).with_name("style.css")
LOGO = Path(__file__).with_name("logo.svg")
ICON = Path(__file__).with_name("icon.svg")
"""Local files: a Material symbol as page icon would be fetched from another host."""


def style() -> None:
    """Adds the style sheet, which takes no space, and the name above the navigation."""
    st.html(STYLE_SHEET)
    st.logo(LOGO, size="large")


def log_out() -> None:
    """A link above the filters; nothing where nobody was asked for a link."""
    if not reader.can_log_out():
        return
    person = reader.person()
    who = "" if person is None else f"{html.escape(person)} · "
    with st.sidebar, st.container(key="log_out"):
        st.html(f'{who}<a href="./logout">Log out</a>')
