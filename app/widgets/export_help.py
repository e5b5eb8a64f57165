"""How to export each source, and the command that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.show import command_lines

if TYPE_CHECKING:
    from datetime import date


def show(*, start: date, end: date, cluster: str, timezone: str) -> None:
    """The commands of one source, for a period."""
    sources = actions.sources()
    chosen = st.selectbox(
        "Source",
        list(sources),
        format_func=lambda name: f"{name}: {sources[name].what}",
        key="export_source",
    )
    export, ingest = commands(chosen, start=start, end=end)
    st.markdown(f"Reads {sources[chosen].reads}. {sources[chosen].advice}")
    st.caption("Export")
    st.code(export, language=None, wrap_lines=True)
    st.caption("Ingest")
    command_lines.show([f"{ingest} --cluster {cluster} --timezone {timezone}"])


def commands(source: str, **period: date) -> tuple[str, str]:
    """Shell that writes a file of a source, and the command that reads it."""
    reader = actions.sources()[source]
    export, example = reader.script or reader.export, reader.example
    for name, day in period.items():
        export, example = (text.replace(f"{{{name}}}", f"{day}") for text in (export, example))
    return export, f"faultline ingest {source} {example}"
