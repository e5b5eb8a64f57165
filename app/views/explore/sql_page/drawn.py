"""A chart of the rows that a query answered; what the reader picks for it is in the address."""

from __future__ import annotations

import json
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.content import Chart, Missing
from app.figures.explore import result_chart
from app.show import chart, page
from app.views.explore.sql_page import editor
from app.words import numbers

if TYPE_CHECKING:
    import pandas as pd

    from app.show.scope import Scope
    from app.views.explore.sql_page.run import Rows

LINKED = "sql_chart"
"""In the address: what the reader picked for the chart."""
NOTHING_TO_DRAW = Missing(
    "sql_chart",
    "Nothing to draw.",
    "A chart needs rows with at least one column of numbers and another one beside it.",
)


def show(answer: Rows, scope: Scope) -> None:
    """Kind, axes and colour to pick, and the picture."""
    frame, suggested = answer.frame, answer.chart
    first = _linked(frame) or suggested
    if first is None:
        page.missing(NOTHING_TO_DRAW)
        return
    names, measured = [*frame.columns], result_chart.numeric(frame)
    pick = st.columns(4)
    # Keyed by the columns: another query's columns begin with what suits them.
    key = sha256("\n".join(names).encode()).hexdigest()[:12]
    axes = result_chart.Chart(
        kind=pick[0].selectbox(
            "Kind", result_chart.KINDS, result_chart.KINDS.index(first.kind), key=f"kind_{key}"
        ),
        x=pick[1].selectbox("Across", names, names.index(first.x), key=f"x_{key}"),
        y=pick[2].selectbox("Up", measured, measured.index(first.y), key=f"y_{key}"),
        colour=pick[3].selectbox(
            "Colour",
            names,
            None if first.colour is None else names.index(first.colour),
            placeholder="one colour",
            key=f"colour_{key}",
        ),
    )
    says = f"{axes.y} across {axes.x}, in {numbers.counted(len(frame), 'row')}."
    picked = json.dumps([axes.kind, axes.x, axes.y, axes.colour])
    if axes == suggested or len(picked) > editor.LONGEST_LINK:
        st.query_params.pop(LINKED, None)
    else:
        st.query_params[LINKED] = picked
    chart.show(
        Chart(
            "explore.result_chart",
            "Chart of the rows",
            says,
            (frame, axes),
            "sql_chart",
            rows=frame,
        ),
        scope,
        opens=partial(page.opened, scope=scope),
    )


def _linked(frame: pd.DataFrame) -> result_chart.Chart | None:
    """The chart of a link; None where these rows cannot be drawn so."""
    try:
        kind, x, y, colour = json.loads(st.query_params.get(LINKED, "null"))
    except (TypeError, ValueError, RecursionError):
        return None
    names = [*frame.columns]
    fits = kind in result_chart.KINDS and x in names and y in result_chart.numeric(frame)
    if not fits or colour not in (None, *names):
        return None
    return result_chart.Chart(kind=kind, x=x, y=y, colour=colour)
