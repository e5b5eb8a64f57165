"""What people say of an attempt, an incident or a node: the form, and all that was said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import actions, loaders
from app.components import command_lines, notice, verbatim
from app.figures import numbers
from app.figures.failures import domains

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.loaders import Annotation

SHOWN = 20
"""Annotations shown, the newest; the command lists all."""


def form(target: str, *, with_cause: bool, found: str | None = None) -> None:
    """Says a cause, a status or a note.

    Parameters
    ----------
    target
        `attempt:<cluster>/<attempt_key>`, `incident:<id>` or `node:<cluster>/<node>`.
    with_cause
        Whether a cause can be said of it.
    found
        The cause that the evidence names, which a click confirms.
    """
    if found is not None and found != "unknown":
        title = loaders.taxonomy().causes[found].title if _known(found) else found
        if st.button(
            "Confirm this cause",
            key="said_confirm",
            icon=":material/check:",
            help=f"Says that it was: {verbatim.escaped(title)}",
        ):
            _say(target, {"cause": found})
    with st.form("said", border=False, clear_on_submit=True):
        said = {"cause": _cause()} if with_cause else {}
        said["status"] = st.selectbox(
            "Status", actions.STATUSES, index=None, placeholder="as it is", key="said_status"
        )
        said["note"] = st.text_area("Note", key="said_note", height=80, placeholder="What you know")
        sent = st.form_submit_button("Save", type="primary")
    st.text_input(
        "Said by",
        key="author",
        placeholder="login of the server",
        persist_state="session",
        help="Stands beside what you say. Kept until you close this tab.",
    )
    if sent:
        _say(target, {field: value for field, value in said.items() if value})


def history(target: str, scope: Scope) -> None:
    """All that was said, newest first; what holds can be undone."""
    found = loaders.said(target)
    if not found:
        st.caption("Nobody has said anything of it yet.")
        return
    for each in found[:SHOWN]:
        _line(each, scope)
    if len(found) > SHOWN:
        line = command_lines.of_store(f"faultline annotate {target} --list")
        st.caption(f"{len(found) - SHOWN:,} more: {verbatim.code(line)}")


def _known(cause: str) -> bool:
    """Whether the site's taxonomy has the cause."""
    return cause in loaders.taxonomy().causes


def _cause() -> str | None:
    """A cause of the taxonomy, by domain."""
    causes = loaders.taxonomy().causes
    ordered = sorted(causes.values(), key=lambda c: (list(domains.TITLES).index(c.domain), c.title))
    return st.selectbox(
        "Cause",
        [cause.name for cause in ordered],
        index=None,
        format_func=lambda name: f"{causes[name].title} · {domains.TITLES[causes[name].domain]}",
        placeholder="as it is",
        key="said_cause",
    )


def _say(target: str, said: dict[str, str]) -> None:
    """Writes it down; the page then runs again with what now holds."""
    if not said:
        st.warning("Choose a cause or a status, or write a note.", icon=":material/warning:")
        return
    author = st.session_state.get("author") or None
    with notice.explained():
        for field, value in said.items():
            actions.annotate(loaders.store_root(), target, field, value, author=author)
        st.toast(f"Saved: {', '.join(said)}", icon=":material/check:")
        st.rerun()


def _line(each: Annotation, scope: Scope) -> None:
    """One annotation, with its undo."""
    text, button = st.columns([5, 1], vertical_alignment="center")
    when = numbers.moment(loaders.time_of(each), scope.timezone)
    undone = each.undone_at is not None
    write = verbatim.escaped if each.field == "note" else verbatim.code
    line = f"{verbatim.escaped(each.author)}, {when}: {each.field} {write(each.value)}"
    text.caption(
        f"~~{line}~~ undone by {verbatim.escaped(each.undone_by or '')}" if undone else line
    )
    if not undone and button.button(
        "Undo", key=f"undo_{each.annotation_id}", type="tertiary", help="Takes it back"
    ):
        with notice.explained():
            actions.undo(
                loaders.store_root(),
                each.annotation_id,
                author=st.session_state.get("author") or None,
            )
            st.rerun()
