"""What people say of an alert or a rule is written down at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.widgets import notice

if TYPE_CHECKING:
    from collections.abc import Callable

MUTES = {"Mute for a day": 1, "Mute for a week": 7, "Mute for four weeks": 28}
"""What a menu offers, and for how many days."""


def act(do: Callable[[], object], told: str) -> None:
    """Writes it down; the page then runs again."""
    with notice.explained():
        do()
        st.toast(told, icon=":material/check:")
        st.rerun()
