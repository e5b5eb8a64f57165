"""Which link is slow?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from analytics.nodes.links.verdict import LEAST_RATIO
from app.answers.nodes import links
from app.show import page
from app.widgets import inputs, notice, page_head, upload

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.show.scope import Scope


def show(head: DeltaGenerator, scope: Scope) -> None:
    """The verdict on a file of delays; the sentence goes into the head of the page."""
    columns = st.columns([2, 2, 1], vertical_alignment="bottom")
    with columns[0]:
        sent = upload.chosen("Delays (CSV or Parquet)", key="delays")
    with columns[1]:
        switches = upload.chosen("Switches (host, switch), if known", key="switches")
    least = inputs.number(
        "Slow from",
        inputs.Within(1.01, 1_000.0),
        key="least_ratio",
        value=LEAST_RATIO,
        at=columns[2],
        step=0.05,
        help="Delay over the usual one from which something is named slow.",
    )
    answer = None
    if sent is not None:
        with notice.explained():
            answer = links.answer(upload.examined("links", [sent, switches], least_ratio=least))
    if sent is None or answer is None:
        with head:
            st.title("Which link is slow?", anchor=False)
        if sent is None:
            page.missing(links.NONE_GIVEN)
        return
    with head:
        terms = [number.term for number in answer.numbers]
        page_head.of_file(answer.sentence, sent.name, notes=answer.notes, terms=terms)
        page.headlines(answer.numbers, scope)
    page.blocks(answer.blocks, scope)
