"""What people say of an attempt, an incident or a node: the form, and all that was said."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.answers.failures.said import history as said_of
from app.answers.failures.said import made_at, what
from app.answers.failures.taxonomy import taxonomy
from app.ask import reader
from app.ask.cached import ask, store_root
from app.show import command_lines
from app.widgets import notice
from app.words import domains, escaping, numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.show.scope import Scope
    from data.state import Annotation

SHOWN = 20
"""Annotations shown, the newest; the command lists all."""


def show(target: str, scope: Scope, *, cause: str | None) -> None:
    """The form, and below it all that was said."""
    st.header("Confirm or change", anchor=False)
    form(target, with_cause=True, cause=cause)
    st.header("What people said", anchor=False)
    history(target, scope)


OF_INCIDENTS = {
    "owner": ("Owner", "Team"),
    "assignee": ("Assignee", "Who works on it"),
    "remedy": ("What we do about it", "What was done, and what will be"),
}
"""What can be said of an incident besides: label and placeholder."""
LONG = ("remedy", "note")
"""Texts of several lines."""


def form(target: str, *, with_cause: bool, cause: str | None = None) -> None:
    """Says a cause, a status or a note; of an incident also who has it and what is done about it.

    Parameters
    ----------
    target
        `attempt:<cluster>/<attempt_key>`, `incident:<id>` or `node:<cluster>/<node>`.
    with_cause
        Whether a cause can be said of it.
    cause
        The cause that the evidence names, which a click confirms.
    """
    if cause is not None and cause != "unknown":
        known = ask(taxonomy).causes.get(cause)
        title = known.title if known else cause
        if st.button(
            "Confirm this cause",
            key="said_confirm",
            icon=":material/check:",
            help=f"Says that it was: {escaping.escaped(title)}",
        ):
            _say(target, {"cause": cause})
    with st.form("said", border=False, clear_on_submit=True):
        said = _fields(target, with_cause=with_cause)
        sent = st.form_submit_button("Save", type="primary")
    if reader.person() is None:
        st.text_input(
            "Said by",
            key="author",
            placeholder="login of the server",
            persist_state="session",
            help="Stands beside what you say. Kept until you close this tab.",
        )
    if sent:
        _say(target, {field: value for field, value in said.items() if value})


def history(target: str, scope: Scope, annotations: Sequence[Annotation] | None = None) -> None:
    """All that was said, newest first; what holds can be undone.

    `annotations` may hold those of other targets too, which are named.
    """
    if annotations is None:
        annotations = ask(said_of, target)
    if not annotations:
        st.caption("Nobody has said anything of it yet.")
        return
    for each in annotations[:SHOWN]:
        _line(each, scope, what(each, target))
    if len(annotations) > SHOWN:
        line = command_lines.of_store(f"faultline annotate {target} --list")
        st.caption(f"{len(annotations) - SHOWN:,} more: {escaping.code(line)}")


def _fields(target: str, *, with_cause: bool) -> dict[str, str | None]:
    """What is filled in, by field; of an incident two fields stand beside one another."""
    of_incident = target.startswith("incident:")
    texts = (OF_INCIDENTS if of_incident else {}) | {"note": ("Note", "What you know")}
    fields: dict[str, Callable[[], str | None]] = {"cause": _cause} if with_cause else {}
    fields["status"] = _status
    fields |= {field: partial(_text, field, *words) for field, words in texts.items()}
    width, said, rest = 1 + of_incident, dict[str, str | None](), list(fields.items())
    while rest:
        row, rest = rest[:width], rest[width:]
        for place, (field, ask_for) in zip(st.columns(width), row, strict=False):
            with place:
                said[field] = ask_for()
    return said


def _status() -> str | None:
    """Open, acknowledged or resolved."""
    return st.selectbox(
        "Status", actions.STATUSES, index=None, placeholder="as it is", key="said_status"
    )


def _text(field: str, label: str, placeholder: str) -> str | None:
    """A field of text."""
    key = f"said_{field}"
    if field in LONG:
        return st.text_area(label, key=key, height=80, placeholder=placeholder)
    return st.text_input(label, key=key, placeholder=placeholder)


def _cause() -> str | None:
    """A cause of the taxonomy, by domain."""
    causes = ask(taxonomy).causes
    ordered = sorted(causes.values(), key=lambda c: (list(domains.TITLES).index(c.domain), c.title))
    return st.selectbox(
        "Cause",
        [cause.name for cause in ordered],
        index=None,
        format_func=lambda name: f"{causes[name].title} · {domains.title(causes[name].domain)}",
        placeholder="as it is",
        key="said_cause",
    )


def _say(target: str, said: dict[str, str]) -> None:
    """Writes it down; the page then runs again with what now holds."""
    if not said:
        st.warning("Choose a cause or a status, or write something.", icon=":material/warning:")
        return
    say([(target, field, value) for field, value in said.items()])


def say(said: Sequence[tuple[str, str, str]]) -> None:
    """Writes down targets, fields and values; the page then runs again with what now holds."""
    author = reader.author()
    with notice.explained():
        for target, field, value in said:
            actions.annotate(store_root(), target, field, value, author=author)
        fields = dict.fromkeys(field.replace("_", " ") for _, field, _ in said)
        st.toast(f"Saved: {', '.join(fields)}", icon=":material/check:")
        st.rerun()


def _line(each: Annotation, scope: Scope, field: str) -> None:
    """One annotation, with its undo."""
    text, button = st.columns([5, 1], vertical_alignment="center")
    when = numbers.moment(made_at(each), scope.timezone)
    undone = each.undone_at is not None
    write = escaping.escaped if each.field in LONG else escaping.code
    says = f"{escaping.escaped(field)} {write(each.value)}"
    line = f"{escaping.escaped(each.author)}, {when}: {says}"
    text.caption(
        f"~~{line}~~ undone by {escaping.escaped(each.undone_by or '')}" if undone else line
    )
    if not undone and button.button(
        "Undo", key=f"undo_{each.annotation_id}", type="tertiary", help="Takes it back"
    ):
        with notice.explained():
            actions.undo(
                store_root(),
                each.annotation_id,
                author=reader.author(),
            )
            st.rerun()
