"""What a query answered: rows and files; or why it did not."""

from __future__ import annotations

import json
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.content import Chart, Missing
from app.answers.explore import queries
from app.figures.explore import result_chart
from app.reports import query_files
from app.show import chart, export, page
from app.views.explore.sql_page import editor
from app.words import escaping, moments, numbers

if TYPE_CHECKING:
    import pandas as pd

    from app.show.scope import Scope
    from app.views.explore.sql_page.run import Failed, Rows
    from data.sandbox import QueryResult

ROWS_SHOWN = 1_000
CELLS_SHOWN = 100_000
"""Sent to the browser at every run of the page; the files hold all rows."""
HEIGHT = 420
UNSCROLLED = 12
EXPLAINED = ("explain_key", "explain_value")
NO_QUERY = Missing(
    "no_query",
    "No query was run yet.",
    "Write one, or pick an example.",
)
TITLES = {"csv": "CSV", "parquet": "Parquet", "json": "JSON", "xlsx": "XLSX"}


def show(scope: Scope) -> None:
    """The answer of the last query, if there is one."""
    failed: Failed | None = st.session_state.get("sql_failed")
    answer: Rows | None = st.session_state.get("sql_answer")
    if failed is not None:
        _why(failed)
    elif answer is not None:
        _answered(answer, scope)
    elif "sql_job" not in st.session_state:
        page.missing(NO_QUERY)


def _why(failed: Failed) -> None:
    """The reason, and the line with a caret below the word."""
    reason = escaping.escaped(failed.reason[:1].upper() + failed.reason[1:])
    if failed.cancelled:
        st.caption(reason)
        return
    with st.container(gap="xsmall"):
        st.error(reason, icon=":material/error:")
        if failed.place is None:
            return
        line, column, length = failed.place
        lines = failed.sql.split("\n")
        mark = " " * (column - 1) + "^" * max(length, 1)
        st.code(f"{lines[line - 1]}\n{mark}", language=None)


def _answered(answer: Rows, scope: Scope) -> None:
    """How many rows, then rows and chart."""
    result = answer.result
    if result.columns == EXPLAINED:
        st.caption(f"A plan, in {result.seconds:.2f} s")
        st.code("\n".join(str(row[1]) for row in result.rows), language=None)
        return
    of_query = scope.of_query(queries.named(answer.asked.sql))
    with st.container(horizontal=True, vertical_alignment="center", key="sql_answered"):
        st.markdown(_counts(result))
        _downloads(answer, of_query)
    if of_query.brief:
        st.caption(escaping.escaped(of_query.brief))
    tabs = {"Rows": lambda: _grid(answer.frame), "Chart": lambda: _chart(answer, of_query)}
    page.tabs(tabs, key="sql_tab")


def _counts(result: QueryResult) -> str:
    """How many rows came, how fast, and whether all did."""
    rows = numbers.counted(len(result.rows), "row")
    columns = ""
    if result.columns_left_out:
        shown = query_files.columns_shown(result)
        columns = f" The first {shown}: name those that you need."
    if result.truncated:
        return (
            f"**The first {rows}** in {result.seconds:.2f} s. There are more: aggregate, or "
            f"narrow the query.{columns}"
        )
    return f"**{rows}** in {result.seconds:.2f} s{'.' * bool(columns)}{columns}"


def _downloads(answer: Rows, scope: Scope) -> None:
    """The files, each written once it is asked for."""
    with st.popover("Download", type="tertiary", icon=":material/download:"):
        for kind, title in TITLES.items():
            export.button(
                title,
                f"{scope.file_stem('query')}.{kind}",
                partial(query_files.WRITERS[kind], answer.result, answer.asked),
                mime=query_files.MIME[kind],
                key=f"sql_file_{kind}",
                type="tertiary",
            )
        st.caption(
            "All rows of the answer. JSON, Parquet and XLSX hold the query and the filters too; "
            "CSV holds the filters."
        )


def _grid(frame: pd.DataFrame) -> None:
    """The rows; times in UTC, as the query sees them."""
    config = {
        name: st.column_config.DatetimeColumn(format=moments.GRID["second"], help="UTC")
        for name in frame.select_dtypes(["datetime", "datetimetz"]).columns
    }
    shown = min(ROWS_SHOWN, CELLS_SHOWN // max(len(frame.columns), 1))
    st.dataframe(
        frame.head(shown),
        hide_index=True,
        column_config=config,
        height="content" if len(frame) <= UNSCROLLED else HEIGHT,
        key="sql_rows",
    )
    if len(frame) > shown:
        st.caption(f"The first {shown:,} rows are shown; the files hold all {len(frame):,}.")


LINKED = "sql_chart"
"""In the address: what the reader picked for the chart."""
NOTHING_TO_DRAW = Missing(
    "sql_chart",
    "Nothing to draw.",
    "A chart needs rows with at least one column of numbers and another one beside it.",
)


def _chart(answer: Rows, scope: Scope) -> None:
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
