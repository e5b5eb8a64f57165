"""Queries that people saved, and the ones asked before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import actions, loaders
from app.components import notice, sql_editor, verbatim

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.loaders import SavedQuery

SHOWN = 50
FIRST = 60
"""Characters of a past query on its button."""


def saved() -> None:
    """The form that saves the query, and all that are saved."""
    with st.form("sql_save", border=False, clear_on_submit=True):
        name = st.text_input("Name", key="sql_name", placeholder="What does it answer?")
        sent = st.form_submit_button("Save the query", icon=":material/bookmark_add:")
    _author("Stands beside the queries you save. Kept until you close this tab.")
    if sent:
        _do(
            lambda: actions.save_query(
                loaders.store_root(), name, sql_editor.text(), author=_name()
            )
        )
    _deleted()
    found = loaders.kept_queries().saved()
    if not found:
        st.caption("Nobody has saved a query yet. Saved queries are for everybody here.")
    for each in found:
        _line(each)


def past() -> None:
    """The queries of this session and, where a name is given, those asked under it before."""
    _author("With a name, your queries are remembered beyond this tab, for all who give that name.")
    mine = st.session_state.get("sql_past", [])
    author = _name()
    before = loaders.kept_queries().past(author) if author else []
    told = {each.sql for each in mine}
    listed = [*mine, *(each for each in before if each.sql not in told)][:SHOWN]
    if not listed:
        st.caption("No query was asked yet.")
    for index, each in enumerate(listed):
        first = " ".join(each.sql.split())
        st.button(
            verbatim.code(first[:FIRST] + ("..." if len(first) > FIRST else "")),
            key=f"past_{index}",
            type="tertiary",
            on_click=sql_editor.put,
            args=(each.sql,),
            help="Puts it into the editor",
        )
        st.caption(verbatim.escaped(each.outcome[:200]))


def _line(each: SavedQuery) -> None:
    """One saved query: a click puts it into the editor; it can be renamed and deleted."""
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.button(
            verbatim.escaped(each.name),
            key=f"saved_{each.query_id}",
            type="tertiary",
            on_click=sql_editor.put,
            args=(each.sql,),
            help=f"Saved by {verbatim.escaped(each.author)}. Puts it into the editor",
        )
        with st.popover("", type="tertiary", icon=":material/more_horiz:", help="Rename, delete"):
            name = st.text_input("New name", each.name, key=f"name_{each.query_id}")
            if st.button("Rename", key=f"rename_{each.query_id}"):
                _do(
                    lambda: actions.rename_query(
                        loaders.store_root(), each.query_id, name, author=_name()
                    )
                )
            if st.button("Delete", key=f"delete_{each.query_id}", icon=":material/delete:"):
                st.session_state["sql_deleted"] = each
                _do(
                    lambda: actions.delete_query(
                        loaders.store_root(), each.query_id, author=_name()
                    )
                )


def _deleted() -> None:
    """What was deleted last, and the way back."""
    gone: SavedQuery | None = st.session_state.get("sql_deleted")
    if gone is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Deleted: {verbatim.escaped(gone.name)}", width="content")
        if st.button("Undo", key="sql_restore", type="tertiary"):
            del st.session_state["sql_deleted"]
            _do(lambda: actions.restore_query(loaders.store_root(), gone.query_id, author=_name()))


def _author(remark: str) -> None:
    """Who is asking: the same name as beside what one says of an attempt."""
    st.text_input(
        "Your name", key="author", placeholder="not given", persist_state="session", help=remark
    )


def _name() -> str | None:
    return st.session_state.get("author") or None


def _do(action: Callable[[], object]) -> None:
    """Does it; the page then runs again with what now holds."""
    with notice.explained():
        action()
        st.rerun()
