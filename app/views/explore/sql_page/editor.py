"""The editor of a query: colours, line numbers, the place of an error, Ctrl+Enter runs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.explore.queries import schema_of
from app.ask.cached import ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.show.scope import Scope

KEY = "sql_editor"
TEXT = "sql_text"
"""In the session: the query as last written, whatever page was open since."""
LINKED = "sql"
"""In the address: the query, for links that restore the view."""
BROUGHT = "sql_brought"
"""In the session: the query that a link brought."""
LONGEST_LINK = 6_000
"""Characters of a query that an address holds safely."""
PLACEHOLDER = "SELECT ... or pick an example on the right. Ctrl+Enter runs it."
HTML = """<div class="editor"><pre aria-hidden="true"></pre>
<textarea spellcheck="false" autocapitalize="off" autocomplete="off" aria-label="SQL query">
</textarea></div>"""
SCRIPT = Path(__file__).with_name("editor.js")
STYLE = Path(__file__).with_name("editor.css")

_editor = st.components.v2.component(
    "faultline_sql_editor", html=HTML, css=STYLE.read_text(), js=SCRIPT.read_text()
)


def text() -> str:
    """The query as it was last told.

    Looked up in the editor itself: the callback of a button may come before the editor's.
    """
    _typed()
    return str(st.session_state.get(TEXT, ""))


def put(sql: str) -> None:
    """Puts another query into the editor."""
    _typed()
    st.session_state[TEXT] = sql
    st.session_state["sql_version"] = st.session_state.get("sql_version", 0) + 1
    st.session_state.pop("sql_failed", None)


def insert(name: str) -> None:
    """Puts a name where the caret is."""
    count = st.session_state.get("sql_insert", {}).get("count", 0) + 1
    st.session_state["sql_insert"] = {"text": name, "count": count}


def follow_link() -> bool:
    """The query of a link, once: it fills the editor; whether it did."""
    linked = st.query_params.get(LINKED)
    if linked is None or linked == st.session_state.get("sql_linked"):
        return False
    if linked != text():
        put(linked)
    st.session_state["sql_linked"] = st.session_state[BROUGHT] = linked
    return True


def show(scope: Scope, *, run: Callable[[], None]) -> None:
    """The editor; `run` is called when the reader presses Ctrl+Enter."""
    failed = st.session_state.get("sql_failed")
    _editor(
        key=KEY,
        data={
            "sql": text(),
            "version": st.session_state.get("sql_version", 0),
            "insert": st.session_state.get("sql_insert"),
            "place": failed.place if failed is not None and failed.sql == text() else None,
            "tables": [*ask(schema_of).tables["table"]],
            "placeholder": PLACEHOLDER,
            "mode": scope.mode,
        },
        on_sql_change=_typed,
        on_run_change=lambda: _typed_and(run),
    )
    _link()


def _typed() -> None:
    """Takes over what was written, once."""
    told = st.session_state.get(KEY, {}).get("sql")
    if told and told["mark"] != st.session_state.get("sql_mark"):
        st.session_state["sql_mark"] = told["mark"]
        st.session_state[TEXT] = told["text"]


def _typed_and(run: Callable[[], None]) -> None:
    """Takes over what was written, and runs it."""
    query = st.session_state[KEY].get("run")
    if query is not None:
        _typed()
        st.session_state[TEXT] = query
        run()


def _link() -> None:
    """The query in the address, so that a copied link holds it."""
    if 0 < len(text()) <= LONGEST_LINK:
        st.query_params[LINKED] = text()
        st.session_state["sql_linked"] = text()
    else:
        st.query_params.pop(LINKED, None)
