"""The style sheet of what the theme cannot express, and the product's mark."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

STYLE_SHEET = Path(__file__).with_name("style.css")
LOGO = Path(__file__).with_name("logo.svg")
ICON = Path(__file__).with_name("icon.svg")
"""Local files: a Material symbol as page icon would be fetched from another host."""


def apply() -> None:
    """Adds the style sheet, which takes no space, and the name above the navigation."""
    st.html(STYLE_SHEET)
    st.logo(LOGO, size="large")
