"""An incident to take away: copied or saved as Markdown, saved as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.ask.cached import ask
from app.reports import kinds
from app.show import export, files, html, markdown
from app.widgets import copy_button

if TYPE_CHECKING:
    from collections.abc import Callable


def show(incident_id: str) -> None:
    """Three buttons; the files are what `faultline incident` prints."""
    report = ask(kinds.report, "incident", about=incident_id)
    text = markdown.render(report)
    copy_button.text("Copy as Markdown", text)
    _save("Markdown", lambda: text, name=files.name(report, "md"), mime="text/markdown")
    _save("HTML", lambda: html.render(report), name=files.name(report, "html"), mime="text/html")


def _save(label: str, content: Callable[[], str], *, name: str, mime: str) -> None:
    """A button that saves a file."""
    st.download_button(
        label,
        export.told(name, content, action="report"),
        file_name=name,
        mime=mime,
        key=f"report_{label}",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
    )
