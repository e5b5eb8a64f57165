"""Who is logged in, and the way out."""

from __future__ import annotations

import html

import streamlit as st

from app.ask import reader


def show() -> None:
    """A link above the filters; nothing where nobody was asked for a link."""
    if not reader.can_log_out():
        return
    person = reader.person()
    who = "" if person is None else f"{html.escape(person)} · "
    with st.sidebar, st.container(key="log_out"):
        st.html(f'{who}<a href="./logout">Log out</a>')
