"""What a query answered: rows, a chart of them, files; or why it did not."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from app.components import empty_state, figure_block, verbatim
from app.figures import numbers
from app.figures.explore import result_chart
from app.reports import query_files

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.components.sql_run import Answer, Failed
    from app.loaders import QueryResult

ROWS_SHOWN = 1_000
"""Rows sent to the browser; the files hold all."""
HEIGHT = 420
UNSCROLLED = 12
EXPLAINED = ("explain_key", "explain_value")
WHOLE = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
    "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
)  # fmt: skip
LARGEST = 2**63 - 1
"""Whole number that a column of them holds; a column with a larger one holds 16 digits."""
TITLES = {"csv": "CSV", "parquet": "Parquet", "json": "JSON", "xlsx": "XLSX"}


def show(scope: Scope) -> None:
    """The answer of the last query, if there is one."""
    failed: Failed | None = st.session_state.get("sql_failed")
    answer: Answer | None = st.session_state.get("sql_answer")
    if failed is not None:
        _why(failed)
    elif answer is not None:
        _answered(answer, scope)
    elif "sql_job" not in st.session_state:
        empty_state.no_query()


def frame_of(result: QueryResult) -> pd.DataFrame:
    """The rows as a frame: times, numbers and words as such, what is nested as JSON."""
    columns = {}
    for index, (name, type_) in enumerate(zip(result.names, result.types, strict=True)):
        columns[name] = _column([row[index] for row in result.rows], type_)
    return pd.DataFrame(columns)


def _column(values: list[Any], type_: str) -> pd.Series:
    """One column; text where its values fit no type of a frame."""
    known = [value for value in values if value is not None]
    one = not type_.endswith("]")  # else a list of them
    if type_ in WHOLE and all(abs(value) <= LARGEST for value in known):
        return pd.Series(values, dtype="Int64")
    if type_ in ("DOUBLE", "FLOAT", *WHOLE) or (one and type_.startswith("DECIMAL")):
        return pd.Series([None if v is None else float(v) for v in values], dtype="float64")
    if type_ == "BOOLEAN":
        return pd.Series(values, dtype="boolean")
    # A time outside the years 1 to 9999 came as text; one outside pandas' years stays text, too.
    if type_ == "DATE" or (one and type_.startswith("TIMESTAMP")):
        with contextlib.suppress(ValueError, OverflowError):
            if not any(isinstance(value, str) for value in known):
                return pd.to_datetime(pd.Series(values, dtype="object"), utc="ZONE" in type_)
    texts = [None if value is None else query_files.text_of(value) for value in values]
    return pd.Series(texts, dtype="string")


def _why(failed: Failed) -> None:
    """The reason, and the line with a caret below the word."""
    reason = verbatim.escaped(failed.reason[:1].upper() + failed.reason[1:])
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


def _answered(answer: Answer, scope: Scope) -> None:
    """How many rows, then rows and chart."""
    result = answer.result
    if result.columns == EXPLAINED:
        st.caption(f"A plan, in {result.seconds:.2f} s")
        st.code("\n".join(str(row[1]) for row in result.rows), language=None)
        return
    frame = frame_of(result)
    with st.container(horizontal=True, vertical_alignment="center", key="sql_answered"):
        st.markdown(_counts(result))
        _downloads(answer, scope)
    rows, chart = st.tabs(["Rows", "Chart"], key="sql_tab", on_change="rerun")
    if rows.open:
        with rows:
            _grid(frame)
    if chart.open:
        with chart:
            _chart(frame, scope)


def _counts(result: QueryResult) -> str:
    """How many rows came, how fast, and whether all did."""
    rows = numbers.counted(len(result.rows), "row")
    if result.truncated:
        return (
            f"**The first {rows}** in {result.seconds:.2f} s. There are more: aggregate, or "
            "narrow the query."
        )
    return f"**{rows}** in {result.seconds:.2f} s"


def _downloads(answer: Answer, scope: Scope) -> None:
    """The files, each written once it is asked for."""
    with st.popover("Download", type="tertiary", icon=":material/download:"):
        for kind, title in TITLES.items():
            st.download_button(
                title,
                lambda write=query_files.WRITERS[kind]: write(answer.result, answer.asked),
                file_name=f"{scope.file_stem('query')}.{kind}",
                mime=query_files.MIME[kind],
                key=f"sql_file_{kind}",
                on_click="ignore",
                type="tertiary",
            )
        st.caption(
            "All rows of the answer. JSON, Parquet and XLSX hold the query and the filters too; "
            "CSV holds the filters."
        )


def _grid(frame: pd.DataFrame) -> None:
    """The rows; times in UTC, as the query sees them."""
    config = {
        name: st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss", help="UTC")
        for name in frame.select_dtypes(["datetime", "datetimetz"]).columns
    }
    st.dataframe(
        frame.head(ROWS_SHOWN),
        hide_index=True,
        column_config=config,
        height="content" if len(frame) <= UNSCROLLED else HEIGHT,
        key="sql_rows",
    )
    if len(frame) > ROWS_SHOWN:
        st.caption(f"The first {ROWS_SHOWN:,} rows are shown; the files hold all {len(frame):,}.")


def _chart(frame: pd.DataFrame, scope: Scope) -> None:
    """Kind, axes and colour to pick, and the picture."""
    first = result_chart.suggested(frame)
    if first is None:
        empty_state.nothing_to_draw()
        return
    names, measured = [*frame.columns], result_chart.numeric(frame)
    pick = st.columns(4)
    # Keyed by the columns: another query's columns begin with what suits them.
    key = "_".join(names)
    chart = result_chart.Chart(
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
    figure = result_chart.figure(frame, chart, mode=scope.mode, note=scope.note)
    figure_block.show(figure, frame, name="sql_chart", scope=scope)
