"""Lines of a log on a page: numbered, those that count on a coloured ground, gaps as dots."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import streamlit as st

from app.figures import template

if TYPE_CHECKING:
    from app.answers.content import Excerpt
    from app.show.scope import Scope


def show(excerpt: Excerpt, scope: Scope) -> None:
    """The lines under the name of their file."""
    palette = template.PALETTES[scope.mode]
    ground = template.translucent(palette.critical, 0.22)
    muted = f'<span style="color:{palette.muted}">{{}}</span>'
    written, before = [muted.format(html.escape(excerpt.title))], None
    for line in excerpt.lines:
        if before is not None and line.line_no > before + 1:
            written.append(muted.format("   ..."))
        before = line.line_no
        style = f' style="background:{ground}"' if line.counts else ""
        number = muted.format(f"{line.line_no:>6}")
        written.append(f"<span{style}>{number}  {html.escape(line.text)}</span>")
    st.html(
        '<pre style="margin:0;padding:0.5rem 0.75rem;overflow-x:auto;font-size:0.8125rem;'
        f'line-height:1.45;border:1px solid {palette.grid};border-radius:4px">'
        + "\n".join(written)
        + "</pre>"
    )
