"""A button that copies the address of the present view."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

HTML = """<button type="button" aria-live="polite"></button>"""
CSS = """
button {
  width: 100%;
  min-height: 2.5rem;
  font: inherit;
  font-size: 0.875rem;
  color: var(--st-text-color);
  background: transparent;
  border: 1px solid var(--st-border-color);
  border-radius: var(--st-button-radius);
  cursor: pointer;
}
button:hover, button:focus-visible {
  color: var(--st-primary-color);
  border-color: var(--st-primary-color);
}
"""
SCRIPT = Path(__file__).with_name("copy_link.js")

_button = st.components.v2.component(
    "faultline_copy_link", html=HTML, css=CSS, js=SCRIPT.read_text()
)


def show() -> None:
    """The button. What it copies holds the filters and no token."""
    _button(key="copy_link")
