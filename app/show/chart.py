"""A chart in its place, with its downloads: SVG and PNG made by the browser, CSV of its data."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.answers.content import Part
from app.ask.cached import kept
from app.show import export, links

if TYPE_CHECKING:
    from collections.abc import Callable

    import plotly.graph_objects as go

    from app.answers.content import Chart
    from app.show.scope import Scope

CONFIG = {"displayModeBar": False}
"""Dragging zooms and a double click resets; the downloads have a menu of their own."""
HTML = """<button type="button" data-format="svg">SVG</button>
<button type="button" data-format="png">PNG</button>"""
CSS = """
button {
  display: block;
  width: 100%;
  padding: 0.25rem 0;
  font: inherit;
  font-size: 0.875rem;
  text-align: left;
  color: var(--st-text-color);
  background: none;
  border: none;
  cursor: pointer;
}
button:hover, button:focus-visible { color: var(--st-primary-color); }
"""
SCRIPT = Path(__file__).with_name("figure_images.js")

_images = st.components.v2.component(
    "faultline_figure_images", html=HTML, css=CSS, js=SCRIPT.read_text()
)


def show(chart: Chart, scope: Scope, *, opens: Callable[[Part], None]) -> None:
    """Draws a chart and, in its corner, offers what it can be taken away as.

    `opens` shows the rows of a part that a mark names.

    Its kind names a module of `app.figures` with `figure`, which draws its data, and `frame`,
    which lists them.
    """
    drawing = import_module(f"app.figures.{chart.kind}")
    options = dict(chart.options) | ({"timezone": scope.timezone} if chart.zoned else {})
    note = scope.origin if chart.whole else scope.note
    figure = kept(drawing.figure, *chart.data, **options, mode=scope.mode, note=note)
    key = f"figure_{chart.key}"
    with st.container(gap=None, key=f"block_{chart.key}"):
        picked = _draw(figure, key=key, pickable=chart.opens is not None)
        with (
            st.container(horizontal=True, horizontal_alignment="right", key=f"menu_{chart.key}"),
            st.popover("Download", type="tertiary", icon=":material/download:"),
        ):
            stem = scope.file_stem(chart.key)
            _images(key=f"images_{chart.key}", data={"key": key, "name": stem})
            st.download_button(
                "CSV",
                export.told(
                    f"{stem}.csv",
                    lambda: scope.csv(drawing.frame(*chart.data, **chart.options)),
                ),
                file_name=f"{stem}.csv",
                mime="text/csv",
                key=f"csv_{chart.key}",
                on_click="ignore",
                type="tertiary",
            )
    if chart.opens is not None:
        seen = f"opened_{key}"
        fresh = picked is not None and picked != st.session_state.get(seen)
        st.session_state[seen] = picked  # a selection outlives the run that made it
        if fresh and picked is not None:
            if isinstance(chart.opens, Part):
                opens(chart.opens.behind({"mark": picked}))
            else:
                links.go_to_mark(chart.opens, picked)


def _draw(figure: go.Figure, *, key: str, pickable: bool) -> str | None:
    """Places the figure; the first of the custom data of the mark that the reader picked."""
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
