"""Who reads a page: whose link it is, as the server's gate tells it."""

from __future__ import annotations

import streamlit as st

PERSON = "X-Faultline-Person"
SESSION = "X-Faultline-Session"


def person() -> str | None:
    """Name of the token of this session; None where it has none, or nobody was asked for one."""
    return st.context.headers.get(PERSON)


def author() -> str | None:
    """Who says something: the person of the token, else the name that was typed, else None."""
    return person() or st.session_state.get("author") or None


def can_log_out() -> bool:
    """Whether there is a session to end."""
    return SESSION in st.context.headers
