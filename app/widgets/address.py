"""What the address says of a widget, looked at before the widget reads it."""

from __future__ import annotations

from streamlit.runtime.state import get_session_state


def says(key: str) -> str | None:
    """The text of a name, the last where it stands there twice; None where it is not there."""
    with get_session_state().query_params() as named:
        return named.get(key)


def take_out(key: str) -> None:
    """Takes a name out, in the browser too: its widget begins as on an address without it."""
    with get_session_state().query_params() as named:
        named.remove_param(key)
        named.set_initial_query_params_from_current()
