"""A chart in its place, with its downloads: SVG and PNG made by the browser, CSV of its data."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from app.answers.content import Part
from app.answers.reliability.rollouts import marks
from app.ask import FEW
from app.ask.cached import ask, kept
from app.figures import narrow, rollouts, template
from app.show import export, links
from app.words import escaping
from app.words.periods import custom_period

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import date

    import plotly.graph_objects as go

    from app.answers.content import Chart
    from app.show.scope import Scope

OF_ITS_OWN = "reliability.trend"
"""Draws roll-outs with their names."""
CONFIG = {"displayModeBar": False}
"""Dragging along time sets the period, else it zooms; the downloads have a menu of their own."""
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
    options = dict(chart.options) | ({"timezone": scope.timezone} if chart.zoned else {})
    rolled_out = ask(marks, scope.selection) if chart.kind != OF_ITS_OWN else ()
    options |= {"mode": scope.mode, "note": ""}  # the head of the page says it; files say it again
    figure = kept(
        _drawn,
        chart.kind,
        chart.data,
        options,
        rolled_out,
        zooms="period" in scope.uses,
        fits_phone=scope.narrow,
    )
    key = f"figure_{chart.key}"
    with st.container(gap=None, key=f"block_{chart.key}"):
        picked = _draw(figure, key, scope, zone=scope.timezone if chart.zoned else "UTC")
        with (
            st.container(horizontal=True, horizontal_alignment="right", key=f"menu_{chart.key}"),
            st.popover("Download", type="tertiary", icon=":material/download:"),
        ):
            stem = scope.file_stem(chart.key)
            note = scope.origin if chart.whole else scope.note
            _images(key=f"images_{chart.key}", data={"key": key, "name": stem, "note": note})
            export.button(
                "CSV",
                f"{stem}.csv",
                lambda: scope.csv(_listed(chart)),
                mime="text/csv",
                key=f"csv_{chart.key}",
                type="tertiary",
            )
    seen = f"opened_{key}"
    fresh = picked is not None and picked != st.session_state.get(seen)
    st.session_state[seen] = picked  # a selection outlives the run that made it
    if not fresh or picked is None:
        return
    if isinstance(picked, dict):
        links.stay(picked)
        return
    if isinstance(chart.opens, Part) and picked[0]:
        opens(chart.opens.behind({"mark": picked[0]}))
    elif isinstance(chart.opens, str) and picked[0]:
        links.go_to_mark(chart.opens, picked[0], scope, during=chart.during)
    else:
        st.dialog(escaping.escaped(chart.title), width="large")(_behind)(picked[-1], _listed(chart))


def _listed(chart: Chart) -> pd.DataFrame:
    """The data of a chart as rows."""
    if chart.rows is None:
        listed: pd.DataFrame = import_module(f"app.figures.{chart.kind}").frame(
            *chart.data, **chart.options
        )
        return listed
    return chart.rows if isinstance(chart.rows, pd.DataFrame) else chart.rows.frame()


def zoomed(begin: str, end: str, zone: str, timezone: str) -> dict[str, str]:
    """Filters of the period that was drawn along an axis in `zone`.

    >>> zoomed("2026-10-02 00:30:10.5", "2026-10-01", "UTC", "Europe/Berlin")
    {'period': 'custom', 'from': '2026-10-01T02:00', 'to': '2026-10-02T02:30'}

    An hour that the clock skips or has twice is taken forward, or as the first of the two.

    >>> zoomed("2026-03-29 02:30", "2026-10-25 02:30", "Europe/Berlin", "UTC")
    {'period': 'custom', 'from': '2026-03-29T01:00', 'to': '2026-10-25T00:30'}
    """
    told = [pd.Timestamp(at) for at in (begin, end)]
    local = [at.tz_localize(zone, ambiguous=True, nonexistent="shift_forward") for at in told]
    first, last = sorted(at.tz_convert(timezone) for at in local)
    return custom_period(first, last)


def _drawn(
    kind: str,
    data: tuple[Any, ...],
    options: dict[str, Any],
    rolled_out: Sequence[tuple[date, date, str]],
    *,
    zooms: bool,
    fits_phone: bool,
) -> go.Figure:
    """The figure; where it runs along time roll-outs are marked, and dragging across it marks a
    period."""
    figure: go.Figure = import_module(f"app.figures.{kind}").figure(*data, **options)
    along_time = re.search("%-?[A-Za-z]", figure.layout.xaxis.tickformat or "") is not None
    if along_time:
        rollouts.marked(figure, rolled_out, template.PALETTES[options["mode"]])
    if fits_phone:
        return narrow.fitted(figure)
    if zooms and along_time:
        figure.update_layout(dragmode="select", selectdirection="h")
    return figure


def _behind(says: str, rows: pd.DataFrame) -> None:
    """What a mark says, and what its chart is drawn from."""
    st.markdown(escaping.escaped(re.sub("<[^>]*>", "", says.replace("<br>", ", "))))
    st.dataframe(rows.head(FEW), hide_index=True)


def _draw(
    figure: go.Figure, key: str, scope: Scope, *, zone: str
) -> tuple[str, ...] | dict[str, str] | None:
    """Places the figure; the custom data of the mark that the reader picked, or the period."""
    zooms = figure.layout.dragmode == "select"
    state: Any = st.plotly_chart(
        figure,
        theme=None,
        key=key,
        config=CONFIG,
        alt=figure.layout.title.text.replace("<br>", " "),
        on_select="rerun",
        selection_mode=("points", "box") if zooms else "points",
    )
    boxes = state["selection"]["box"]
    if boxes:
        begin, end = boxes[0]["x"][:2]
        return zoomed(begin, end, zone, scope.timezone)
    points = state["selection"]["points"]
    data = points[0].get("customdata") if points else None
    if not data:
        return None
    return (data,) if isinstance(data, str) else tuple(str(each or "") for each in data)
