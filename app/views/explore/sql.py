"""What else do you want to know?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.answers.explore.queries import sample_rows, schema_of, sql_examples
from app.ask import cached, reader
from app.show import page
from app.views.explore.sql_page import editor, result, run
from app.widgets import filter_bar, notice, page_head
from app.words import escaping, numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.show.scope import Scope
    from data.saved_queries import SavedQueries, SavedQuery

RESERVED = ("user", "at", "end", "from", "to")
"""Names that DuckDB reads as something else where they stand alone."""
SHOWN = 50
EXAMPLES = 8
"""Examples in sight."""
FIRST = 60
"""Characters of a past query on its button."""


def basis(scope: Scope) -> str:
    """What a query rests on, in a line."""
    when = numbers.moment(cached.published_at(), scope.timezone)
    return f"Snapshot {scope.snapshot}, published {when}"


NOTES = ("What people said since then counts here from the next publish on.",)


def shelf() -> None:
    """What to write a query from, one tab each."""
    shelves = {"Examples": _examples, "Tables": _tables, "Saved": _saved, "History": _past}
    page.tabs(shelves, key="shelf")


def _tables() -> None:
    """Which tables are there, what do their columns mean, what does a row look like?"""
    schema = cached.ask(schema_of)
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
            rows = cached.ask(sample_rows, name)
            if rows.empty:
                st.caption(f"{name} holds no rows yet.")
            else:
                st.dataframe(rows, hide_index=True, width=700)
    st.caption(escaping.escaped(comment))
    columns = schema.columns[schema.columns["table"].eq(name)]
    with st.container(height=430, border=False, gap="small", key="sql_columns"):
        for row in columns.to_dict("records"):
            with st.container(gap=None):
                kind = ", ".join(filter(None, [_short(row["type"]), row["unit"]]))
                _column(name, row["column"], kind)
                st.caption(escaping.escaped(row["comment"]))


def _column(table: str, name: str, kind: str) -> None:
    """A column's name, which a click inserts, and its type and unit."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _inserts(name, kind=f"column_{table}")
        st.caption(kind, width="content")


def _short(type_: str) -> str:
    """DuckDB's own short name of a type."""
    return type_.lower().replace("timestamp with time zone", "timestamptz")


def _examples() -> None:
    """Which queries are there to start from?"""
    first, more = sql_examples()[:EXAMPLES], sql_examples()[EXAMPLES:]
    for each in first:
        _example(each.title, each.sql)
    with st.popover("More examples", type="tertiary", key="more_examples"):
        for each in more:
            _example(each.title, each.sql)


def _example(title: str, sql: str) -> None:
    """A button that puts the query into the editor."""
    st.button(title, key=f"example_{title}", type="tertiary", on_click=editor.put, args=(sql,))


def _saved() -> None:
    """The form that saves the query, and all that are saved."""
    with st.form("sql_save", border=False, clear_on_submit=True):
        name = st.text_input("Name", key="sql_name", placeholder="What does it answer?")
        sent = st.form_submit_button("Save the query", icon=":material/bookmark_add:")
    st.caption("A link to a saved query runs by itself; to any other it waits for Run.")
    _ask_author("Stands beside the queries you save. Kept until you close this tab.")
    if sent:
        _do(lambda: actions.save_query(cached.store_root(), name, editor.text(), author=_author()))
    _deleted()
    queries = _kept().saved()
    if not queries:
        st.caption("Nobody has saved a query yet. Saved queries are for everybody here.")
    for each in queries:
        _line(each)


def _past() -> None:
    """The queries of this session and, where a name is given, those asked under it before."""
    _ask_author(
        "With a name, your queries are remembered beyond this tab, for all who give that name."
    )
    mine = st.session_state.get("sql_past", [])
    author = _name()
    before = _kept().past(author) if author else []
    texts = {each.sql for each in mine}
    listed = [*mine, *(each for each in before if each.sql not in texts)][:SHOWN]
    if not listed:
        st.caption("No query was asked yet.")
    for index, each in enumerate(listed):
        first = " ".join(each.sql.split())
        st.button(
            escaping.code(first[:FIRST] + ("..." if len(first) > FIRST else "")),
            key=f"past_{index}",
            type="tertiary",
            on_click=editor.put,
            args=(each.sql,),
            help="Puts it into the editor",
        )
        st.caption(escaping.escaped(each.outcome[:200]))


def _line(each: SavedQuery) -> None:
    """One saved query: a click puts it into the editor; it can be renamed and deleted."""
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.button(
            escaping.escaped(each.name),
            key=f"saved_{each.query_id}",
            type="tertiary",
            on_click=editor.put,
            args=(each.sql,),
            help=f"Saved by {escaping.escaped(each.author)}. Puts it into the editor",
        )
        with st.popover("", type="tertiary", icon=":material/more_horiz:", help="Rename, delete"):
            name = st.text_input("New name", each.name, key=f"name_{each.query_id}")
            if st.button("Rename", key=f"rename_{each.query_id}"):
                renamed = (cached.store_root(), each.query_id, name)
                _do(lambda: actions.rename_query(*renamed, author=_author()))
            if st.button("Delete", key=f"delete_{each.query_id}", icon=":material/delete:"):
                st.session_state["sql_deleted"] = each
                _do(lambda: _kept().delete(each.query_id, author=_author()))


def _deleted() -> None:
    """What was deleted last, and the way back."""
    gone: SavedQuery | None = st.session_state.get("sql_deleted")
    if gone is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Deleted: {escaping.escaped(gone.name)}", width="content")
        if st.button("Undo", key="sql_restore", type="tertiary"):
            del st.session_state["sql_deleted"]
            _do(lambda: _kept().restore(gone.query_id, author=_author()))


def _ask_author(remark: str) -> None:
    """Who is asking: the same name as beside what one says of an attempt."""
    if reader.person() is not None:
        return
    st.text_input(
        "Your name", key="author", placeholder="not given", persist_state="session", help=remark
    )


def _name() -> str | None:
    return reader.author()


def _author() -> str:
    """Who acts: the name given, else the login."""
    return _name() or actions.login()


def _kept() -> SavedQueries:
    """Queries that people saved, and the last ones that each asked."""
    return actions.kept_queries(cached.store_root())


def _do(action: Callable[[], object]) -> None:
    """Does it; the page then runs again with what now holds."""
    with notice.explained():
        action()
        st.rerun()


def _inserts(name: str, *, kind: str) -> None:
    """A name that a click puts where the caret is."""
    written = name if name.isidentifier() and name not in RESERVED else f'"{name}"'
    st.button(
        name,
        key=f"insert_{kind}_{name}",
        type="tertiary",
        on_click=editor.insert,
        args=(written,),
        help="Puts the name where the cursor is",
    )


scope = filter_bar.of_store()
actions.prepare_queries()
if editor.follow_link():
    run.follow(scope)
run.settle()
page_head.of_one("Ask the store in SQL", basis(scope), scope, notes=NOTES)
left, right = st.columns([7, 3], gap="medium")
with left:
    editor.show(scope, run=lambda: run.start(scope))
    run.unread()
    run.buttons(scope)
    run.progress()
    result.show(scope)
with right:
    shelf()
