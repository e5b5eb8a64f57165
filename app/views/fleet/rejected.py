"""The tab of records that could not be read: by reason, by what stands in them, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.fleet import ingests
from app.ask import FEW
from app.ask.cached import ask
from app.show import page
from app.words import numbers

if TYPE_CHECKING:
    from app.show.scope import Scope


def show(scope: Scope) -> None:
    """What is looked for, and a page of what was found."""
    held = ask(ingests.kept)
    if held.n_rows > held.n_kept:
        st.caption(
            f"{numbers.counted(held.n_rows, 'record')} could not be read; of "
            f"{numbers.count(held.n_kept)} the text is kept."
        )
    wanted = _wanted(held) if held.n_kept else ingests.Wanted()
    found = ask(ingests.matching, wanted)
    pages = max(1, -(-found // FEW))
    place = 1
    if pages > 1:
        place = st.number_input(
            f"Page of {pages:,}", min_value=1, max_value=pages, key="rejected_page", width=160
        )
    shown = ingests.rejected(ask, wanted, limit=FEW, offset=FEW * (int(place) - 1))
    page.blocks([shown], scope, titled=False)


def _wanted(held: ingests.Kept) -> ingests.Wanted:
    """The reason, and a text that stands in the record or the name of its file."""
    with st.container(horizontal=True):
        counts = dict(held.reasons)
        reason = st.selectbox(
            "Reason",
            [*counts],
            index=None,
            format_func=lambda name: f"{name}: {numbers.count(counts[name])}",
            placeholder="all",
            key="rejected_reason",
            width=420,
        )
        text = st.text_input(
            "In the record or the file's name",
            placeholder="Search all of them",
            key="rejected_text",
            width=320,
        )
    return ingests.Wanted(reason, text.strip())
