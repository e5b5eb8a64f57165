"""Buttons that copy the address of the present view, or a text."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

HTML = """<button type="button" aria-live="polite">Copy</button>"""
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
WIDTH = 190
FOLDER = Path(__file__).parent

_link, _text = (
    st.components.v2.component(
        f"faultline_{name}", html=HTML, css=CSS, js=(FOLDER / f"{name}.js").read_text()
    )
    for name in ("copy_link", "copy_text")
)


def link() -> None:
    """The button. What it copies holds the filters and no token."""
    _link(key="copy_link")


def text(label: str, text: str) -> None:
    """The button; says so once the text is copied."""
    _text(key="copy_text", data={"label": label, "text": text}, width=WIDTH)


def page(label: str, address: str) -> None:
    """The same of the whole address of a page, for those who have no page open."""
    _text(key="copy_page", data={"label": label, "address": address}, width=WIDTH)
