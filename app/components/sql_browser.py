"""Beside the editor: tables and their columns, examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import sql_editor, verbatim
from app.figures import numbers

if TYPE_CHECKING:
    from app.components.scope import Scope

RESERVED = ("user", "at", "end", "from", "to")
"""Names that DuckDB reads as something else where they stand alone."""


def basis(scope: Scope) -> str:
    """What a query rests on, in a line."""
    when = numbers.moment(loaders.published_at(), scope.timezone)
    return (
        f"Snapshot {scope.snapshot}, published {when}. What people said since then counts here "
        "from the next publish on"
    )


def tables() -> None:
    """Which tables are there, what do their columns mean, what does a row look like?"""
    schema = loaders.schema()
    sizes = dict(zip(schema.tables["table"], schema.tables["n_rows"], strict=True))
    name = st.selectbox(
        "Table",
        [*sizes],
        [*sizes].index("failures") if "failures" in sizes else 0,
        format_func=lambda table: f"{table} ({numbers.count(sizes[table])})",
        key="sql_table",
        help="In brackets: rows.",
    )
    comment = dict(zip(schema.tables["table"], schema.tables["comment"], strict=True))[name]
    with st.container(horizontal=True, vertical_alignment="center"):
        _inserts(name, kind="table")
        with st.popover("Sample rows", type="tertiary", icon=":material/table_rows:"):
            rows = loaders.sample_rows(name)
            if rows.empty:
                st.caption(f"{name} holds no rows yet.")
            else:
                st.dataframe(rows, hide_index=True, width=700)
    st.caption(verbatim.escaped(comment))
    found = schema.columns[schema.columns["table"].eq(name)]
    with st.container(height=430, border=False, gap="small", key="sql_columns"):
        for row in found.itertuples(index=False):
            _column(name, row.column, f"{_short(row.type)}{row.unit and ', '}{row.unit}")
            st.caption(verbatim.escaped(row.comment))


def _column(table: str, name: str, kind: str) -> None:
    """A column's name, which a click inserts, and its type and unit."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _inserts(name, kind=f"column_{table}")
        st.caption(kind, width="content")


def _short(type_: str) -> str:
    """DuckDB's own short name of a type."""
    return type_.lower().replace("timestamp with time zone", "timestamptz")


def examples() -> None:
    """Which queries are there to start from?"""
    for each in loaders.sql_examples():
        st.button(
            each.title,
            key=f"example_{each.title}",
            type="tertiary",
            on_click=sql_editor.put,
            args=(each.sql,),
        )
    st.caption("A click puts the query into the editor, in place of what is there.")


def _inserts(name: str, *, kind: str) -> None:
    """A name that a click puts where the caret is."""
    written = name if name.isidentifier() and name not in RESERVED else f'"{name}"'
    st.button(
        name,
        key=f"insert_{kind}_{name}",
        type="tertiary",
        on_click=sql_editor.insert,
        args=(written,),
        help="Puts the name where the cursor is",
    )
