"""A figure in its place, with its downloads: SVG and PNG made by the browser, CSV of its data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from app.show.chart import CONFIG, _images

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    import plotly.graph_objects as go

    from app.show.scope import Scope


def show(
    figure: go.Figure,
    data: pd.DataFrame,
    *,
    name: str,
    scope: Scope,
    opens: Callable[[str], None] | None = None,
) -> None:
    """Places a figure and, in its corner, what it can be taken away as.

    Parameters
    ----------
    figure, data
        The figure and what it draws.
    name
        Unique on the page; part of the names of the downloaded files.
    opens
        Shows what is behind a mark that the reader clicks, by the first of its custom data.
    """
    key = f"figure_{name}"
    with st.container(gap=None, key=f"block_{name}"):
        picked = _draw(figure, key=key, pickable=opens is not None)
        with (
            st.container(horizontal=True, horizontal_alignment="right", key=f"menu_{name}"),
            st.popover("Download", type="tertiary", icon=":material/download:"),
        ):
            _images(key=f"images_{name}", data={"key": key, "name": scope.file_stem(name)})
            st.download_button(
                "CSV",
                lambda: scope.csv(data),
                file_name=f"{scope.file_stem(name)}.csv",
                mime="text/csv",
                key=f"csv_{name}",
                on_click="ignore",
                type="tertiary",
            )
    if opens is not None:
        _open_picked(picked, key=key, opens=opens)


def _draw(figure: go.Figure, *, key: str, pickable: bool) -> str | None:
    """Places the figure; what the reader picked in it."""
    state: Any = st.plotly_chart(
        figure,
        theme=None,
        key=key,
        config=CONFIG,
        alt=figure.layout.title.text,
        on_select="rerun" if pickable else "ignore",
        selection_mode="points",
    )
    points = state["selection"]["points"] if pickable else []
    data = points[0].get("customdata") if points else None
    return str(data[0]) if data and data[0] else None


def _open_picked(picked: str | None, *, key: str, opens: Callable[[str], None]) -> None:
    """Opens what was picked, once: a selection outlives the run that made it."""
    seen = f"opened_{key}"
    fresh = picked is not None and picked != st.session_state.get(seen)
    st.session_state[seen] = picked
    if fresh and picked is not None:
        opens(picked)
